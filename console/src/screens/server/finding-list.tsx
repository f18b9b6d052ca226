import { Link, type LinkProps } from "@tanstack/react-router";
import type { ReactNode } from "react";
import type { Finding } from "../../../../src/client/index.ts";
import { visible } from "../../ui/text.ts";

const dots = { ok: "bg-good", warning: "bg-warn", error: "bg-bad" } as const;

/** The screens that show more about findings of a name. */
const screens: Readonly<Record<string, NonNullable<LinkProps["to"]>>> = {
  "spec problems": "/console/specs/problems",
  guidelines: "/console/guidelines",
  specs: "/console/specs",
  dispatches: "/console/dispatches",
  agents: "/console/agents",
};

/** Findings of the doctor, the most severe first. */
export function FindingList({ findings }: { readonly findings: readonly Finding[] }): ReactNode {
  return (
    <ul className="divide-y divide-line">
      {findings.map(({ name, status, message, hint }) => (
        <li key={`${name} ${message}`} className="flex items-start gap-3 px-4 py-2 text-sm">
          <span
            className={`mt-1.5 size-2 shrink-0 rounded-full ${dots[status]}`}
            role="img"
            aria-label={status}
          />
          <span className="w-32 shrink-0 text-soft">
            {screens[name] === undefined ? (
              name
            ) : (
              <Link to={screens[name]} className="text-accent underline">
                {name}
              </Link>
            )}
          </span>
          <span className="min-w-0 flex-1">
            <span className="block foreign">{visible(message)}</span>
            {hint === undefined ? null : (
              <span className="block whitespace-pre-wrap text-faint text-xs foreign">{visible(hint)}</span>
            )}
          </span>
        </li>
      ))}
    </ul>
  );
}

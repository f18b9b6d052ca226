import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import type { Diagnostic } from "../../../../src/client/index.ts";
import { Chip } from "../../ui/chips.tsx";
import { SourceLink } from "../../ui/source-link.tsx";
import { visible } from "../../ui/text.ts";

const linkStyle = "min-w-0 text-accent text-xs hover:underline foreign";

interface ProblemRowProps {
  readonly problem: Diagnostic;
  /** The block or guideline that it is about. */
  readonly link: { readonly spec: string } | { readonly guideline: string } | undefined;
}

/** A diagnostic with its place in the source. */
export function ProblemRow({ problem, link }: ProblemRowProps): ReactNode {
  const { severity, rule, message, path, line } = problem;
  return (
    <div className="flex flex-wrap items-baseline gap-x-3 gap-y-1 px-4 py-2 text-sm sm:px-6">
      <Chip tone={severity === "error" ? "bad" : "warn"}>{`${severity}: ${rule}`}</Chip>
      <span className="min-w-0 flex-1 basis-60 foreign">{visible(message.slice(0, 2_000))}</span>
      <span className="flex w-full min-w-0 flex-wrap gap-x-4">
        <SourceLink path={path} line={line} />
        {link === undefined ? null : "spec" in link ? (
          <Link to="/console/specs/$id" params={{ id: link.spec }} preload={false} className={linkStyle}>
            {visible(link.spec)}
          </Link>
        ) : (
          <Link
            to="/console/guidelines/$id"
            params={{ id: link.guideline }}
            preload={false}
            className={linkStyle}
          >
            the rule
          </Link>
        )}
      </span>
    </div>
  );
}

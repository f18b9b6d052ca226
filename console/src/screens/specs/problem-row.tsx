import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import type { Diagnostic } from "../../../../src/client/index.ts";
import { Chip } from "../../ui/chips.tsx";
import { CopyButton } from "../../ui/copy-button.tsx";
import { SourceLink } from "../../ui/source-link.tsx";
import { visible } from "../../ui/text.ts";

const linkStyle = "min-w-0 text-accent text-xs hover:underline foreign";

interface ProblemRowProps {
  readonly problem: Diagnostic;
  /** The block or guideline that it is about. */
  readonly link: { readonly spec: string } | { readonly guideline: string } | undefined;
  /** The entry of the configuration that leaves it out. */
  readonly ignoreEntry?: string | undefined;
}

/** A diagnostic with its places in the sources, and the text that mends it. */
export function ProblemRow({ problem, link, ignoreEntry }: ProblemRowProps): ReactNode {
  const { severity, rule, message, path, line, column, fix, other } = problem;
  return (
    <div className="flex flex-wrap items-baseline gap-x-3 gap-y-1 px-4 py-2 text-sm sm:px-6">
      <Chip tone={severity === "error" ? "bad" : "warn"}>{`${severity}: ${rule}`}</Chip>
      <span className="min-w-0 flex-1 basis-60 foreign">{visible(message.slice(0, 2_000))}</span>
      {fix === undefined ? null : (
        <span className="w-full min-w-0 text-soft text-xs">
          Fix: <code className="font-mono text-good foreign">{visible(fix.text.slice(0, 500))}</code>
        </span>
      )}
      <span className="flex w-full min-w-0 flex-wrap items-center gap-x-4 gap-y-1">
        <SourceLink path={path} line={line} column={column} />
        {other === undefined ? null : (
          <span className="flex min-w-0 gap-x-1 text-soft text-xs">
            and <SourceLink path={other.path} line={other.line} />
          </span>
        )}
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
        {ignoreEntry === undefined ? null : (
          <span className="-ml-1.5">
            <CopyButton label="Copy ignore entry" title={ignoreEntry} textOf={() => ignoreEntry} />
          </span>
        )}
      </span>
    </div>
  );
}

import type { ReactNode } from "react";
import type { ErrorCause } from "../../../src/client/index.ts";
import { SourceLink } from "./source-link.tsx";
import { visible } from "./text.ts";

interface EventErrorLike {
  readonly type: string;
  readonly message: string;
  readonly cause?: ErrorCause | undefined;
}

/** An error with its causes, down to the line of the project's code that threw. */
export function ErrorBox({ error }: { readonly error: EventErrorLike }): ReactNode {
  return (
    <div className="rounded-lg border border-bad/40 bg-bad-back p-3 text-sm">
      <p className="font-medium text-bad foreign">
        <span className="font-mono text-xs">{error.type}</span> {visible(error.message)}
      </p>
      {error.cause === undefined ? null : <Cause cause={error.cause} />}
    </div>
  );
}

function Cause({ cause }: { readonly cause: ErrorCause }): ReactNode {
  return (
    <div className="mt-2 border-bad/40 border-l-2 pl-3 text-ink">
      <p className="foreign">
        <span className="font-mono text-xs">{cause.name}</span>: {visible(cause.message)}
      </p>
      {cause.path === undefined ? null : (
        <p>
          <SourceLink path={cause.path} line={cause.line} />
        </p>
      )}
      {cause.cause === undefined ? null : <Cause cause={cause.cause} />}
    </div>
  );
}

import type { UseQueryResult } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { KitError } from "../../../src/client/index.ts";
import { Button } from "./button.tsx";
import { Icon, type IconName } from "./icons.tsx";

interface NoticeProps {
  readonly icon: IconName;
  readonly title: string;
  readonly children?: ReactNode;
  /** The user's next step. */
  readonly action?: ReactNode;
}

/** Shown in place of content: nothing yet, not found, not allowed, broken. */
export function Notice({ icon, title, children, action }: NoticeProps): ReactNode {
  return (
    <div className="mx-auto flex max-w-md flex-col items-center gap-3 px-6 py-14 text-center">
      <span className="grid size-10 place-items-center rounded-full border border-line bg-panel text-faint">
        <Icon name={icon} size={18} />
      </span>
      <p className="text-base font-medium text-ink">{title}</p>
      {children === undefined ? null : <div className="text-sm text-soft foreign">{children}</div>}
      {action}
    </div>
  );
}

const titles: Readonly<Partial<Record<string, string>>> = {
  forbidden: "You are not allowed to see this",
  unauthorized: "Sign in to see this",
  not_found: "There is no such thing",
  run_not_found: "There is no such run",
  agent_not_found: "There is no such agent",
  agent_not_webhook: "This agent is not served",
  spec_not_found: "There is no such spec",
  guideline_not_found: "There is no such guideline",
  unavailable: "The server cannot be reached",
  too_many_requests: "Too many requests",
};

/** Shows the server's error, and a button to try again. */
export function ErrorNotice({
  error,
  onRetry,
}: {
  readonly error: unknown;
  readonly onRetry?: () => void;
}): ReactNode {
  const code = error instanceof KitError ? error.code : "internal_error";
  const message = error instanceof Error ? error.message : String(error);
  // A server that answers has a reason of its own.
  const isReason = code === "unavailable" && error instanceof KitError && error.meta?.status !== undefined;
  const isAllowed = code !== "forbidden" && code !== "unauthorized";
  return (
    <div role="alert">
      <Notice
        icon={isAllowed ? "warning" : "key"}
        title={isReason ? message : (titles[code] ?? "This did not work")}
        action={
          onRetry === undefined || !isAllowed ? undefined : (
            <Button icon="retry" onClick={onRetry}>
              Try again
            </Button>
          )
        }
      >
        {isReason ? undefined : message}
      </Notice>
    </div>
  );
}

/** Grey bars in place of content that is loading. */
export function Loading({ rows = 6 }: { readonly rows?: number }): ReactNode {
  return (
    <div role="status" aria-label="Loading" className="flex flex-col gap-3 p-4">
      {Array.from({ length: rows }, (_, row) => (
        <div
          // biome-ignore lint/suspicious/noArrayIndexKey: the bars are all the same.
          key={row}
          className="h-4 animate-pulse-soft rounded bg-raised"
          style={{ width: `${90 - ((row * 37) % 45)}%` }}
        />
      ))}
    </div>
  );
}

interface AnswerProps<Value> {
  readonly query: UseQueryResult<Value>;
  readonly loading?: ReactNode;
  readonly children: (value: Value) => ReactNode;
}

/** An answer of the server, or the error. An older answer stays visible if a newer request fails. */
export function Answer<Value>({ query, loading = <Loading />, children }: AnswerProps<Value>): ReactNode {
  if (query.data !== undefined) return children(query.data);
  if (query.isError) return <ErrorNotice error={query.error} onRetry={() => void query.refetch()} />;
  return loading;
}

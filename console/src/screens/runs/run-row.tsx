import type { ReactNode } from "react";
import type { RunRecord, RunWait } from "../../../../src/client/index.ts";
import { ListRow } from "../../ui/list-row.tsx";
import { firstWords, formatDuration, visible } from "../../ui/text.ts";
import { Moment } from "../../ui/time.tsx";
import { describeCause } from "./describe-cause.ts";

/** One run in a list. */
export function RunRow({ run }: { readonly run: RunRecord }): ReactNode {
  const { run_id, workflow, status, payload, accepted_at, started_at, duration_ms, error, cause } = run;
  const words = firstWords(payload);
  return (
    <ListRow
      link={{ to: "/console/runs/$runId", params: { runId: run_id } }}
      status={status}
      title={workflow}
      aside={`…${run_id.slice(-6)}${words === "" ? "" : ` · ${words}`}`}
      detail={<Detail run={run} cause={cause === undefined ? undefined : describeCause(cause)} />}
      isBad={error !== undefined && status === "failed"}
      figure={duration_ms === undefined ? undefined : formatDuration(duration_ms)}
      at={started_at ?? accepted_at}
    />
  );
}

function Detail({
  run: { error, problem, waiting_for },
  cause,
}: {
  readonly run: RunRecord;
  readonly cause: string | undefined;
}): ReactNode {
  const begun = cause === undefined ? "" : `began by ${visible(cause)}`;
  const [wait, ...others] = waiting_for ?? [];
  if (problem === undefined && error === undefined && wait === undefined) return begun;
  return (
    <>
      {problem !== undefined ? (
        `cannot go on: ${visible(problem.message.slice(0, 300))}`
      ) : error !== undefined ? (
        visible(describeError(error).slice(0, 300))
      ) : wait === undefined ? null : (
        <Wait wait={wait} others={others.length} />
      )}
      {begun === "" ? null : ` · ${begun}`}
    </>
  );
}

/** A wait of a run as a sentence. */
export function Wait({
  wait: { signal, run_id, until },
  others = 0,
}: {
  readonly wait: RunWait;
  readonly others?: number;
}): ReactNode {
  const time = until === undefined ? null : <Moment at={until} />;
  return (
    <>
      {signal !== undefined ? (
        <>
          waits for <bdi>{visible(signal)}</bdi>
          {time === null ? null : <>, at most until {time}</>}
        </>
      ) : run_id !== undefined ? (
        `waits for the run …${run_id.slice(-6)}`
      ) : (
        <>sleeps until {time}</>
      )}
      {others === 0 ? null : ` and ${others} more`}
    </>
  );
}

type RunError = NonNullable<RunRecord["error"]>;

/** The innermost cause of an error says why, where the error itself only says which step failed. */
function describeError({ message, cause }: RunError): string {
  let innermost = cause;
  while (innermost?.cause !== undefined) innermost = innermost.cause;
  return innermost === undefined || message.includes(innermost.message)
    ? message
    : `${message} ${innermost.message}`;
}

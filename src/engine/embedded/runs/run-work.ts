import { KitError } from "../../../base/kit-error.ts";
import { isRetryableCode } from "../../../protocol/error-code.ts";
import { query } from "../../../sqlite/statements.ts";
import { type EngineHandlers, runStream, type WorkContext } from "../../contract.ts";
import { isLost } from "../../engine-base.ts";
import { createExecution, type Execution, type ExecutionEnd } from "../../execution/execution.ts";
import type { ExecutionHost } from "../../execution/execution-core.ts";
import type { RunRow } from "../../execution/run-journal.ts";
import type { EmbeddedBase } from "../embedded-base.ts";
import { toEventError } from "../work/to-event-error.ts";
import type { Work, WorkEnd } from "../work/work-lines.ts";
import { isRisky, lineOfRun } from "./run-rows.ts";

/** Which run it is, without what it says. */
export type RunPlace = Pick<RunRow, "id" | "run_id" | "crashes" | "owner">;

export interface RunWork {
  /** A queued run as work for its line. */
  toWork(place: RunPlace, handlers: EngineHandlers): Work;
  /** Running executions of this process, by run id. */
  readonly executions: ReadonlyMap<string, Execution>;
}

export interface RunWorkOptions {
  /** A run has ended, and that is on disk. */
  readonly ended: (runId: string) => void;
  /** A run waits for a time from now on. */
  readonly waits: () => void;
  /** A run has joined the queue. */
  readonly queued: () => void;
}

const over: WorkEnd = { ended: true };
/** After a store that could not be written. */
const retryMs = 1_000;
/** After the third crash; doubled with each further one. */
const riskyPauseMs = 500;

/** Takes runs from their queue, and sees each to its end or to its next long wait. */
export function createRunWork(
  host: ExecutionHost & { readonly base: EmbeddedBase },
  options: RunWorkOptions,
): RunWork {
  const { database, clock, time, lease, stopping, draining, commit } = host.base;
  const executions = new Map<string, Execution>();
  // One that was claimed and could not be begun is claimed again.
  const claim = query<RunRow>(
    database,
    `UPDATE runs SET status = 'running', started_at = coalesce(started_at, ?)
     WHERE id = ? AND status IN ('queued', 'running') RETURNING *`,
  );
  const isCancelling = query(database, "SELECT 1 FROM runs WHERE id = ? AND cancelling = 1");
  const dequeue = query(database, "DELETE FROM run_queue WHERE run = ?");
  const enqueue = query(database, "INSERT INTO run_queue (run) VALUES (?)");
  const settle = query(
    database,
    `UPDATE runs SET ended_at = ?, status = iif(cancelling, 'cancelled', ?), result = iif(cancelling, NULL, ?),
       error = iif(cancelling, NULL, ?), cancelling = 0 WHERE id = ? AND status = 'running'`,
  );
  const putBack = query<Pick<RunRow, "status">>(
    database,
    `UPDATE runs SET ended_at = iif(cancelling, ?, NULL), wake_at = iif(cancelling, NULL, ?),
       status = iif(cancelling, 'cancelled', ?), cancelling = 0 WHERE id = ? AND status = 'running' RETURNING status`,
  );

  async function begin(
    place: RunPlace,
    handlers: EngineHandlers,
    releaseSlot: WorkContext["releaseSlot"],
  ): Promise<WorkEnd> {
    const { fence, signal } = lease;
    try {
      const run = await commit(
        () => {
          dequeue.run(place.id);
          return claim.get(clock.now(), place.id);
        },
        { fence },
      );
      if (run === undefined) return over;
      const lastEvent = await host.events.last(runStream(run.run_id));
      const execution = createExecution(host, handlers, { run, fence, lastEvent, releaseSlot });
      const leave = (): void => execution.leave(signal.aborted ? signal.reason : stopping.reason);
      if (signal.aborted || stopping.aborted) leave();
      executions.set(run.run_id, execution);
      // A caller may have cancelled the run before its execution existed.
      if (isCancelling.get(run.id) !== undefined) execution.cancel();
      const end = await execution.end.finally(() => executions.delete(run.run_id));
      return await write(run, end, { fence, signal, failure: toFailure(end, run, handlers) });
    } catch {
      return signal.aborted ? over : { retryAt: time.now() + retryMs };
    }
  }

  /** Puts down what has become of it, once the store can be written: no result is to be worked for twice. */
  async function write(
    run: RunRow,
    end: ExecutionEnd,
    tenure: { readonly fence: number; readonly signal: AbortSignal; readonly failure: string | null },
  ): Promise<WorkEnd> {
    for (;;) {
      if (tenure.signal.aborted) return over;
      try {
        const status = await commit(() => note(run, end, tenure.failure), { fence: tenure.fence });
        if (status === "queued") options.queued();
        else if (status === "waiting") options.waits();
        else options.ended(run.run_id);
        return over;
      } catch (error) {
        const passes = error instanceof KitError && isRetryableCode(error.code) && !isLost(error);
        if (!passes || draining.aborted) return over;
        await clock.sleep(retryMs, draining).catch(() => undefined);
      }
    }
  }

  /** In a transaction. Gives the status that the run has now. */
  function note(run: RunRow, end: ExecutionEnd, failure: string | null): RunRow["status"] {
    const now = clock.now();
    switch (end.kind) {
      case "completed":
        settle.run(now, "completed", end.result, null, run.id);
        return "completed";
      case "failed":
        settle.run(now, "failed", null, failure, run.id);
        return "failed";
      case "cancelled":
        settle.run(now, "cancelled", null, null, run.id);
        return "cancelled";
      case "left":
        return requeue(run, "queued", null);
      case "suspended":
        // A signal may have come while it was being suspended.
        return host.journal.canGoOn(run.id)
          ? requeue(run, "queued", null)
          : requeue(run, "waiting", end.wakeAt ?? null);
    }
  }

  function requeue(run: RunRow, status: "queued" | "waiting", wakeAt: number | null): RunRow["status"] {
    const now = putBack.get(clock.now(), wakeAt, status, run.id)?.status ?? status;
    if (now === "queued") enqueue.run(run.id);
    return now;
  }

  return {
    executions,
    toWork(place, handlers) {
      // Something else may be what the process dies of: a risky waits a little, and longer the second
      // time, so that it is not at work when that strikes again.
      const notBefore = isRisky(place) ? time.now() + riskyPauseMs * 2 ** (place.crashes - 3) : 0;
      return {
        id: place.run_id,
        line: lineOfRun(place),
        owner: place.owner,
        begin: async (releaseSlot) =>
          time.now() < notBefore ? { retryAt: notBefore } : await begin(place, handlers, releaseSlot),
      };
    },
  };
}

/** The error in the record of a failed run. */
function toFailure(end: ExecutionEnd, { workflow }: RunRow, { causeOf }: EngineHandlers): string | null {
  if (end.kind !== "failed") return null;
  const told = toEventError(end.error, causeOf);
  const isOurs = end.error instanceof KitError && told.message === end.error.message;
  const message = isOurs ? told.message : `The workflow ${JSON.stringify(workflow)} failed.`;
  return JSON.stringify({ ...told, message });
}

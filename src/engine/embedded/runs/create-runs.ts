import { isoTime } from "../../../base/clock.ts";
import type { RunRecord } from "../../../protocol/run.ts";
import { query } from "../../../sqlite/statements.ts";
import { type Engine, type EngineHandlers, type EventLog, runStream } from "../../contract.ts";
import type { EngineLimits, EnginePart } from "../../engine-base.ts";
import type { Dispatcher } from "../../execution/execution-core.ts";
import type { RunRow } from "../../execution/run-journal.ts";
import type { EmbeddedBase } from "../embedded-base.ts";
import type { EmbeddedEventLog } from "../events/create-event-log.ts";
import { createWaiters } from "../work/waiters.ts";
import { createJournalRows } from "./journal-rows.ts";
import { createRecovery, createWakeUps } from "./requeue-runs.ts";
import { createRunAdmission, createSignalSender } from "./run-admission.ts";
import { createRunList, hasEnded, lineOfRun, toRunRecord } from "./run-rows.ts";
import { createRunWork, type RunPlace } from "./run-work.ts";

export type Runs = EnginePart &
  Pick<Engine, "startRun" | "getRun" | "listRuns" | "awaitRun" | "cancelRun" | "signal">;

export interface RunsOptions {
  readonly limits: EngineLimits;
  readonly events: EmbeddedEventLog;
  /** Admits the inputs that a run dispatches. */
  readonly admit: Dispatcher;
}

type QueuedPlace = RunPlace & { readonly number: number };

const pruned = 100;
/** Ends so close to the last one may not have got into their streams before their process died. */
const lastMs = 1_000;

/** Invocations of workflows, from admission to their end. */
export function createRuns(base: EmbeddedBase, options: RunsOptions): Runs {
  const { blobs, clock, database, lease, lines } = base;
  const { events, limits } = options;
  const waiters = createWaiters();
  const journal = createJournalRows(database);
  const startRun = createRunAdmission(base, limits);
  const send = createSignalSender(base, journal, () => handlers?.checkSignal);
  const list = createRunList(base);
  const recover = createRecovery(base);
  const wakeUps = createWakeUps(base, { queued: enqueueNew });
  const work = createRunWork(
    { base, events, journal, admit: options.admit },
    { ended: noteEnd, waits: () => wakeUps.arm(), queued: enqueueNew },
  );
  const sql = statements(base);
  let handlers: EngineHandlers | undefined;
  /** The highest number of the queue that is enqueued in this process. */
  let seen = 0;
  let tenure: AbortSignal | undefined;
  /** When the writing of other processes was last looked for. */
  let lookedAt = 0;

  function isWorking(): boolean {
    return tenure !== undefined && !tenure.aborted && tenure === lease.signal && !base.stopping.aborted;
  }

  function enqueueNew(): void {
    if (handlers === undefined || !isWorking()) return;
    for (const place of sql.queuedAfter.all(seen)) {
      seen = place.number;
      lines.join(work.toWork(place, handlers));
    }
  }

  function noteEnd(runId: string): void {
    try {
      events.end(runStream(runId));
    } catch {
      // Another process writes the stream now, and ends it when it hears of this.
    }
    waiters.wake(runId);
  }

  /** Ends the streams of runs that another process has cancelled, or that a crashed process has ended. */
  function endStreams(rows: readonly Pick<RunRow, "run_id">[]): void {
    for (const { run_id } of rows) noteEnd(run_id);
  }

  /** Tells those who wait for ends that another process may have written. */
  function wakeEnded(): void {
    for (const id of waiters.ids()) {
      const row = sql.byId.get(id);
      if (row === undefined || hasEnded(row.status)) waiters.wake(id);
    }
  }

  function toRecord(row: RunRow): RunRecord {
    return toRunRecord(row, blobs, {
      waits: hasEnded(row.status) ? [] : journal.waits(row.id, base.time.toWall),
      event_count: events.count(runStream(row.run_id)),
    });
  }

  function leaveAll(signal: AbortSignal): void {
    for (const execution of work.executions.values()) execution.leave(signal.reason);
  }

  async function cancel(runId: string): Promise<boolean> {
    const row = await base.commit(() => {
      const cancelled = sql.cancel.get(clock.now(), runId);
      if (cancelled !== undefined) sql.dequeue.run(cancelled.id);
      return cancelled;
    });
    if (row === undefined) return false;
    if (row.status === "running") work.executions.get(runId)?.cancel();
    else {
      lines.leave({ id: runId, line: lineOfRun(row) });
      await sayCancelled(events, row, clock.now());
      noteEnd(runId);
    }
    return true;
  }

  /** The runs that a run has started, and theirs. */
  function below(runId: string): string[] {
    return sql.children.all(runId).flatMap(({ run_id }) => [run_id, ...below(run_id)]);
  }

  async function cancelWithChildren(runId: string): Promise<boolean> {
    const cancelled = await cancel(runId);
    // A process that ends in between leaves the rest to the next start.
    if (cancelled) for (const child of below(runId)) await cancel(child);
    return cancelled;
  }

  base.stopping.addEventListener("abort", () => leaveAll(base.stopping), { once: true });

  return {
    async startRun(request) {
      const receipt = await startRun(request);
      enqueueNew();
      return receipt;
    },

    async getRun(runId) {
      const row = sql.byId.get(runId);
      return row === undefined ? undefined : toRecord(row);
    },

    async listRuns(filter = {}) {
      const { items, ...rest } = list(filter);
      return { items: items.map(toRecord), ...rest };
    },

    async awaitRun(runId, { signal } = {}) {
      for (;;) {
        signal?.throwIfAborted();
        const row = sql.byId.get(runId);
        if (row === undefined) return undefined;
        if (hasEnded(row.status)) return toRecord(row);
        await waiters.wait(runId, signal);
      }
    },

    cancelRun: cancelWithChildren,

    async signal(runId, signal) {
      await send(runId, signal);
      enqueueNew();
      work.executions.get(runId)?.checkWaits();
    },

    async start(given) {
      const { signal } = lease;
      signal.addEventListener(
        "abort",
        () => {
          wakeUps.stop();
          leaveAll(signal);
        },
        { once: true },
      );
      await base.commit(recover, { fenced: true });
      handlers = given;
      tenure = signal;
      seen = 0;
      enqueueNew();
      wakeUps.arm();
      lookedAt = clock.now();
      endStreams(sql.endedLast.all(lastMs));
      wakeEnded();
      for (const { run_id } of sql.orphans.all()) await cancelWithChildren(run_id);
    },

    onForeignWrite() {
      if (isWorking()) {
        enqueueNew();
        for (const { run_id } of sql.cancelling.all()) work.executions.get(run_id)?.cancel();
        for (const execution of work.executions.values()) execution.checkWaits();
        endStreams(sql.cancelledSince.all(Math.min(lookedAt, clock.now()) - lastMs));
        lookedAt = clock.now();
      }
      wakeEnded();
    },

    close: waiters.close,

    async prune(endedBefore) {
      const rows = sql.endedBefore.all(endedBefore, pruned);
      // Its events go first: a run without them can be pruned again, events without a run cannot be found.
      for (const { run_id } of rows) await events.delete(runStream(run_id));
      await base.commit(
        () => {
          for (const { id } of rows) {
            journal.delete(id);
            sql.remove.run(id);
          }
        },
        { fenced: true },
      );
      return rows.length === pruned;
    },
  };
}

function statements({ database }: EmbeddedBase) {
  return {
    byId: query<RunRow>(database, "SELECT * FROM runs WHERE run_id = ?"),
    queuedAfter: query<QueuedPlace>(
      database,
      `SELECT number, id, run_id, crashes, owner FROM run_queue JOIN runs ON id = run WHERE number > ? ORDER BY number`,
    ),
    dequeue: query(database, "DELETE FROM run_queue WHERE run = ?"),
    cancel: query<RunRow>(
      database,
      `UPDATE runs SET cancelling = (status = 'running'), ended_at = iif(status = 'running', NULL, ?),
         wake_at = NULL, status = iif(status = 'running', status, 'cancelled')
       WHERE run_id = ? AND status IN ('queued', 'running', 'waiting') RETURNING *`,
    ),
    children: query<Pick<RunRow, "run_id">>(
      database,
      "SELECT run_id FROM runs INDEXED BY runs_by_parent WHERE parent = ? ORDER BY id",
    ),
    orphans: query<Pick<RunRow, "run_id">>(
      database,
      `SELECT child.run_id FROM runs AS child INDEXED BY runs_by_parent JOIN runs AS above ON above.run_id = child.parent
       WHERE child.parent IS NOT NULL AND child.status IN ('queued', 'running', 'waiting')
         AND (above.status = 'cancelled' OR above.cancelling = 1)`,
    ),
    cancelling: query<Pick<RunRow, "run_id">>(
      database,
      "SELECT run_id FROM runs INDEXED BY runs_cancelling WHERE cancelling = 1",
    ),
    endedLast: query<Pick<RunRow, "run_id">>(
      database,
      `SELECT run_id FROM runs INDEXED BY runs_by_end
       WHERE ended_at >= (SELECT max(ended_at) FROM runs WHERE ended_at IS NOT NULL) - ? LIMIT 10000`,
    ),
    cancelledSince: query<Pick<RunRow, "run_id">>(
      database,
      "SELECT run_id FROM runs INDEXED BY runs_by_end WHERE ended_at >= ? AND status = 'cancelled'",
    ),
    endedBefore: query<Pick<RunRow, "id" | "run_id">>(
      database,
      "SELECT id, run_id FROM runs INDEXED BY runs_by_end WHERE ended_at < ? LIMIT ?",
    ),
    remove: query(database, "DELETE FROM runs WHERE id = ?"),
  };
}

/**
 * Ends the stream of a run that was cancelled while nothing of it was at work: its handler, who says so as a
 * rule, is not there. A process that does not hold the lease cannot write it, and the stream just ends.
 */
async function sayCancelled(events: EventLog, run: RunRow, now: number): Promise<void> {
  const { run_id, workflow, started_at, accepted_at } = run;
  const stream = runStream(run_id);
  try {
    events.append(stream, {
      type: "run_end",
      workflow,
      reason: "cancelled",
      is_error: true,
      is_aborted: true,
      duration_ms: now - (started_at ?? accepted_at),
      index: (await events.last(stream)) + 1,
      timestamp: isoTime(now),
      instance_id: run_id,
      operation_id: run_id,
      run_id,
    });
  } catch {
    // The run is cancelled all the same, and its record says so.
  }
}

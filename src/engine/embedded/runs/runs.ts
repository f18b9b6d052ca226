import type { RunJournalEntry, RunRecord } from "../../../protocol/run.ts";
import type { WaitingSignal } from "../../../protocol/waiting.ts";
import { query } from "../../../sqlite/statements.ts";
import type {
  Engine,
  EngineHandlers,
  Page,
  RunFilter,
  RunReceipt,
  RunRequest,
  RunSignal,
  WaitingListing,
  WaitOptions,
} from "../../contract.ts";
import { runStream } from "../../event-log-contract.ts";
import type { EngineLimits } from "../../shared/engine-base.ts";
import type { StoredEventLog } from "../../shared/events/event-log.ts";
import { createWaiters, type Waiters } from "../../shared/queue/waiters.ts";
import type { Dispatcher } from "../../shared/runs/execution-core.ts";
import { RunJobs, recordCancelled } from "../../shared/runs/run-jobs.ts";
import {
  forgetFailures,
  hasEnded,
  lineOfRun,
  notFailed,
  type QueuedRun,
  type RunRow,
  toRunRecord,
  unknownRun,
} from "../../shared/runs/run-store.ts";
import type { EmbeddedBase, EnginePart } from "../embedded-base.ts";
import { createJournalRows, type JournalRows } from "./journal-rows.ts";
import { createHeldQueue, createRecovery, createWakeUps, type WakeUps } from "./requeue-runs.ts";
import {
  createRunAdmission,
  createRunList,
  createRunRows,
  createSignalSender,
  type RunAdmission,
} from "./run-rows.ts";
import { createWaitingSignals } from "./waiting-signals.ts";

export interface RunsOptions {
  readonly limits: EngineLimits;
  readonly events: StoredEventLog;
  /** Admits the inputs that a run dispatches. */
  readonly admit: Dispatcher;
}

type NumberedRun = QueuedRun & { readonly number: number };

const pruned = 100;
/** Runs that ended in this period before the last end: a process that died then may not have ended their streams. */
const lastEndsMs = 1_000;

/** Invocations of workflows, from admission to their end. */
export class Runs
  implements
    EnginePart,
    Pick<
      Engine,
      "startRun" | "getRun" | "readJournal" | "listRuns" | "awaitRun" | "retryRun" | "cancelRun" | "signal"
    >
{
  readonly #base: EmbeddedBase;
  readonly #events: StoredEventLog;
  readonly #waiters: Waiters = createWaiters();
  readonly #journals: JournalRows;
  readonly #admission: RunAdmission;
  readonly #send: ReturnType<typeof createSignalSender>;
  readonly #list: ReturnType<typeof createRunList>;
  readonly #waitingSignals: ReturnType<typeof createWaitingSignals>;
  readonly #recover: () => void;
  readonly #queueHeld: () => void;
  readonly #wakeUps: WakeUps;
  readonly #jobs: RunJobs;
  readonly #sql: ReturnType<typeof statements>;
  #handlers: EngineHandlers | undefined;
  /** The highest number of `run_queue` that this process has enqueued. */
  #seen = 0;
  #tenure: AbortSignal | undefined;
  /** When this process last checked for writes of other processes. */
  #polledAt = 0;

  constructor(base: EmbeddedBase, { limits, events, admit }: RunsOptions) {
    const journals = createJournalRows(base);
    this.#base = base;
    this.#events = events;
    this.#journals = journals;
    this.#admission = createRunAdmission(base, limits);
    this.#send = createSignalSender(base, journals, () => this.#handlers?.checkSignal);
    this.#list = createRunList(base);
    this.#waitingSignals = createWaitingSignals(base);
    this.#recover = createRecovery(base);
    this.#queueHeld = createHeldQueue(base);
    this.#wakeUps = createWakeUps(base, { queued: () => this.#enqueueNew() });
    this.#jobs = new RunJobs(
      { base, events, journals, admit, awaitRun: (id, options) => this.awaitRun(id, options) },
      {
        store: createRunRows(base, journals),
        ended: (runId) => this.#noteEnd(runId),
        waits: () => this.#wakeUps.arm(),
        queued: () => this.#enqueueNew(),
      },
    );
    this.#sql = statements(base);
    base.stopping.addEventListener("abort", () => this.#leaveAll(base.stopping), { once: true });
  }

  async startRun(request: RunRequest): Promise<RunReceipt> {
    const receipt = await this.#admission.start(request);
    this.#enqueueNew();
    return receipt;
  }

  async getRun(runId: string): Promise<RunRecord | undefined> {
    const row = this.#sql.byId.get(runId);
    return row === undefined ? undefined : await this.#toRecord(row);
  }

  async readJournal(
    runId: string,
    page: { readonly after: number; readonly limit: number },
  ): Promise<readonly RunJournalEntry[] | undefined> {
    const row = this.#sql.byId.get(runId);
    return row === undefined ? undefined : this.#journals.page(row.id, page);
  }

  async listRuns(filter: RunFilter = {}): Promise<Page<RunRecord>> {
    const { items, ...rest } = this.#list(filter);
    return { items: await this.#toRecords(items), ...rest };
  }

  async listWaitingSignals(listing: WaitingListing): Promise<Page<WaitingSignal>> {
    return this.#waitingSignals(listing);
  }

  async awaitRun(runId: string, { signal }: WaitOptions = {}): Promise<RunRecord | undefined> {
    for (;;) {
      signal?.throwIfAborted();
      const row = this.#sql.byId.get(runId);
      if (row === undefined) return undefined;
      if (hasEnded(row.status)) return await this.#toRecord(row);
      await this.#waiters.wait(runId, signal);
    }
  }

  async retryRun(runId: string): Promise<RunRecord> {
    const row = await this.#base.commit(() => {
      const run = this.#sql.byId.get(runId);
      if (run === undefined) throw unknownRun();
      if (run.status !== "failed") throw notFailed();
      this.#admission.checkRoom(run.owner);
      for (const forget of this.#sql.forgetFailures) forget.run(run.id);
      this.#sql.enqueue.run(run.id);
      return this.#sql.retry.get(run.id) ?? run;
    });
    this.#enqueueNew();
    return await this.#toRecord(row);
  }

  async cancelRun(runId: string): Promise<boolean> {
    const cancelled = await this.#cancel(runId);
    // If the process ends in between, the next start cancels the other children.
    if (cancelled) for (const child of this.#descendants(runId)) await this.#cancel(child);
    return cancelled;
  }

  async resumeHeld(): Promise<void> {
    if (!this.#isWorking()) return;
    await this.#base.commit(this.#queueHeld, { fenced: true });
    this.#enqueueNew();
  }

  async signal(runId: string, signal: RunSignal): Promise<void> {
    await this.#send(runId, signal);
    this.#enqueueNew();
    this.#jobs.executions.get(runId)?.checkWaits();
  }

  async start(handlers: EngineHandlers): Promise<void> {
    const { lease, clock } = this.#base;
    const { signal } = lease;
    const leave = (): void => {
      this.#wakeUps.stop();
      this.#leaveAll(signal);
    };
    signal.addEventListener("abort", leave, { once: true });
    const recover = (): void => {
      this.#recover();
      this.#queueHeld();
    };
    await this.#base.commit(recover, { fenced: true });
    this.#handlers = handlers;
    this.#tenure = signal;
    this.#seen = 0;
    this.#enqueueNew();
    this.#wakeUps.arm();
    this.#polledAt = clock.now();
    this.#endStreams(this.#sql.endedLast.all(lastEndsMs));
    this.#wakeEnded();
    for (const { run_id } of this.#sql.orphans.all()) await this.cancelRun(run_id);
  }

  onForeignWrite(): void {
    const { executions } = this.#jobs;
    if (this.#isWorking()) {
      const now = this.#base.clock.now();
      this.#enqueueNew();
      for (const { run_id } of this.#sql.cancelling.all()) this.#jobs.cancel(run_id);
      for (const execution of executions.values()) execution.checkWaits();
      this.#endStreams(this.#sql.cancelledSince.all(Math.min(this.#polledAt, now) - lastEndsMs));
      this.#polledAt = now;
    }
    this.#wakeEnded();
  }

  close(reason: unknown): void {
    this.#waiters.close(reason);
  }

  async prune(endedBefore: number): Promise<boolean> {
    const rows = this.#sql.endedBefore.all(endedBefore, pruned);
    // Events are deleted first: a run without events can be pruned later, but events without a run cannot be found.
    for (const { run_id } of rows) await this.#events.delete(runStream(run_id));
    await this.#base.commit(
      () => {
        for (const { id } of rows) {
          this.#journals.delete(id);
          this.#sql.remove.run(id);
        }
      },
      { fenced: true },
    );
    return rows.length === pruned;
  }

  #isWorking(): boolean {
    const { lease, stopping } = this.#base;
    const tenure = this.#tenure;
    return tenure !== undefined && !tenure.aborted && tenure === lease.signal && !stopping.aborted;
  }

  #enqueueNew(): void {
    if (this.#handlers === undefined || !this.#isWorking()) return;
    for (const run of this.#sql.queuedAfter.all(this.#seen)) {
      this.#seen = run.number;
      this.#base.queue.join(this.#jobs.toJob(run, this.#handlers));
    }
  }

  #noteEnd(runId: string): void {
    try {
      this.#events.end(runStream(runId));
    } catch {
      // Another process writes the stream now, and ends it when it notices the run's end.
    }
    this.#waiters.wake(runId);
    // The end has queued the runs that were suspended until then.
    this.#enqueueNew();
  }

  /** Ends the streams of runs that another process has cancelled, or that a crashed process has ended. */
  #endStreams(rows: readonly Pick<RunRow, "run_id">[]): void {
    for (const { run_id } of rows) this.#noteEnd(run_id);
  }

  /** Wakes the callers that wait for an end that another process has written. */
  #wakeEnded(): void {
    for (const id of this.#waiters.ids()) {
      const row = this.#sql.byId.get(id);
      if (row === undefined || hasEnded(row.status)) this.#waiters.wake(id);
    }
  }

  async #toRecord(row: RunRow): Promise<RunRecord> {
    const [record] = await this.#toRecords([row]);
    if (record === undefined) throw new Error("A run has no record.");
    return record;
  }

  async #toRecords(rows: readonly RunRow[]): Promise<RunRecord[]> {
    const waits = rows.map((row) => (hasEnded(row.status) ? [] : this.#journals.waits(row.id)));
    const counts = await this.#events.counts(rows.map(({ run_id }) => runStream(run_id)));
    return rows.map((row, position) =>
      toRunRecord(row, this.#base, {
        waits: waits[position] ?? [],
        event_count: counts.get(runStream(row.run_id)) ?? 0,
      }),
    );
  }

  #leaveAll(signal: AbortSignal): void {
    for (const execution of this.#jobs.executions.values()) execution.leave(signal.reason);
  }

  async #cancel(runId: string): Promise<boolean> {
    const { clock, queue } = this.#base;
    const row = await this.#base.commit(() => {
      const cancelled = this.#sql.cancel.get(clock.now(), runId);
      if (cancelled !== undefined) this.#sql.dequeue.run(cancelled.id);
      return cancelled;
    });
    if (row === undefined) return false;
    if (row.status === "running") this.#jobs.cancel(runId);
    else {
      queue.leave({ id: runId, line: lineOfRun(row) });
      await recordCancelled(this.#events, row, clock.now());
      this.#noteEnd(runId);
    }
    return true;
  }

  /** The ids of a run's descendants. */
  #descendants(runId: string): string[] {
    return this.#sql.children.all(runId).flatMap(({ run_id }) => [run_id, ...this.#descendants(run_id)]);
  }
}

function statements({ database }: EmbeddedBase) {
  return {
    byId: query<RunRow>(database, "SELECT * FROM runs WHERE run_id = ?"),
    queuedAfter: query<NumberedRun>(
      database,
      `SELECT number, id, run_id, crashes, owner FROM run_queue JOIN runs ON id = run WHERE number > ? ORDER BY number`,
    ),
    dequeue: query(database, "DELETE FROM run_queue WHERE run = ?"),
    enqueue: query(database, "INSERT INTO run_queue (run) VALUES (?)"),
    forgetFailures: forgetFailures("run_journal", "?1").map((sql) => query(database, sql)),
    retry: query<RunRow>(
      database,
      `UPDATE runs SET status = 'queued', ended_at = NULL, error = NULL, result = NULL, crashes = 0, crashed_at = 0
       WHERE id = ? RETURNING *`,
    ),
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

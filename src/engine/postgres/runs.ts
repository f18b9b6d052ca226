import { Batcher } from "../../postgres/batcher.ts";
import type { RunJournalEntry, RunRecord } from "../../protocol/run.ts";
import type { WaitingSignal } from "../../protocol/waiting.ts";
import type {
  Engine,
  Page,
  RunFilter,
  RunReceipt,
  RunRequest,
  RunSignal,
  WaitingListing,
  WaitOptions,
} from "../contract.ts";
import { runStream } from "../event-log-contract.ts";
import { sleepUntil } from "../shared/durable-time.ts";
import type { StoredEventLog } from "../shared/events/event-log.ts";
import { createWaiters, type Waiters } from "../shared/queue/waiters.ts";
import type { Dispatcher } from "../shared/runs/execution-core.ts";
import { RunJobs, recordCancelled } from "../shared/runs/run-jobs.ts";
import {
  hasEnded,
  lineOfRun,
  listedRuns,
  parseRunCursor,
  type QueuedRun,
  type RunRow,
  toRunRecord,
  unknownRun,
} from "../shared/runs/run-store.ts";
import { awaitEnd } from "./await-end.ts";
import { listWaitingSignals, readList } from "./lists.ts";
import type { PostgresBase } from "./postgres-base.ts";
import { JournalRows } from "./run-journal.ts";
import {
  admitRun,
  awaitedEnds,
  queueHeld,
  RunRows,
  recoverRuns,
  retryRun,
  sendSignal,
  wakeAwaiting,
} from "./run-rows.ts";
import { shardOf } from "./shards.ts";

export interface RunsOptions {
  readonly events: StoredEventLog;
  /** Admits the inputs that a run dispatches. */
  readonly admit: Dispatcher;
}

const sweepRows = 2_000;
const wokenAtATime = 500;
const pruned = 100;

/** Invocations of workflows, from admission to their end. */
export class Runs
  implements
    Pick<
      Engine,
      "startRun" | "getRun" | "readJournal" | "listRuns" | "awaitRun" | "retryRun" | "cancelRun" | "signal"
    >
{
  readonly #base: PostgresBase;
  readonly #events: StoredEventLog;
  readonly #waiters: Waiters = createWaiters();
  readonly #journals: JournalRows;
  readonly #jobs: RunJobs;
  /** Queries for the queued runs of this node's shards, in order. */
  readonly #polls: Batcher<null, void>;
  #alarm: AbortController | undefined;

  constructor(base: PostgresBase, { events, admit }: RunsOptions) {
    this.#base = base;
    this.#events = events;
    this.#journals = new JournalRows(base);
    this.#jobs = new RunJobs(
      {
        base,
        events,
        journals: this.#journals,
        admit,
        awaitRun: (id, options) => this.awaitRun(id, options),
      },
      {
        store: new RunRows(base),
        ended: (runId) => this.#noteEnd(runId),
        waits: () => void this.#arm(),
        queued: () => this.#pollSoon(),
      },
    );
    this.#polls = new Batcher((all) => this.#poll().then(() => all.map(() => undefined)));
    base.stopping.addEventListener("abort", () => this.#leaveAll(base.stopping.reason), { once: true });
  }

  async startRun(request: RunRequest): Promise<RunReceipt> {
    const receipt = await admitRun(this.#base, request);
    this.#announce(receipt.run_id);
    return receipt;
  }

  async getRun(runId: string): Promise<RunRecord | undefined> {
    const row = await this.#find(runId);
    return row === undefined ? undefined : (await this.#toRecords([row]))[0];
  }

  async readJournal(
    runId: string,
    page: { readonly after: number; readonly limit: number },
  ): Promise<readonly RunJournalEntry[] | undefined> {
    const row = await this.#find(runId);
    return row === undefined ? undefined : await this.#journals.page(row.id, page);
  }

  async listRuns(filter: RunFilter = {}): Promise<Page<RunRecord>> {
    const { workflow, cursor } = filter;
    const page = await readList<RunRow, RunRow>(
      this.#base,
      { filter, listed: listedRuns },
      {
        from: "$s.runs",
        before: parseRunCursor(cursor),
        columns: { workflow },
        size: ({ payload, result }) => payload.length + (result?.length ?? 0),
        toItem: (row) => row,
        toCursor: ({ id }) => String(id),
      },
    );
    return { ...page, items: await this.#toRecords(page.items) };
  }

  listWaitingSignals(listing: WaitingListing): Promise<Page<WaitingSignal>> {
    return listWaitingSignals(this.#base, listing);
  }

  async awaitRun(runId: string, { signal }: WaitOptions = {}): Promise<RunRecord | undefined> {
    const row = await awaitEnd(runId, {
      waiters: this.#waiters,
      signal,
      read: () => this.#find(runId),
      hasEnded: ({ status }) => hasEnded(status),
    });
    return row === undefined ? undefined : (await this.#toRecords([row]))[0];
  }

  async retryRun(runId: string): Promise<RunRecord> {
    const row = await retryRun(this.#base, runId);
    this.#announce(runId);
    const [record] = await this.#toRecords([row]);
    if (record === undefined) throw unknownRun();
    return record;
  }

  async cancelRun(runId: string): Promise<boolean> {
    const cancelled = await this.#cancel(runId);
    // If this node ends in between, the node that takes its shards over cancels the other children.
    if (cancelled) for (const child of await this.#descendants(runId)) await this.#cancel(child);
    return cancelled;
  }

  async resumeHeld(): Promise<void> {
    for (const runId of await queueHeld(this.#base)) this.#announce(runId);
  }

  async signal(run_id: string, signal: RunSignal): Promise<void> {
    const isQueued = await sendSignal(this.#base, this.#journals, { run_id, signal });
    if (isQueued) this.#announce(run_id);
    else if (!this.onSignal(run_id)) this.#base.news.publish(["signal", run_id]);
  }

  /** Handles the news that a run was queued. */
  onQueued(runId: string): void {
    if (this.#isOwn(runId)) this.#pollSoon();
  }

  /** Handles the news that a run has ended. Another node can have cancelled one whose stream this node writes. */
  onEnded(runId: string): void {
    if (this.#isOwn(runId)) this.#recordEnd(runId).catch(() => undefined);
    this.#waiters.wake(runId);
  }

  /** Handles the news that a running run was cancelled. */
  onCancel(runId: string): void {
    this.#jobs.cancel(runId);
  }

  /** Handles the news that a run has a signal. Returns whether this node executes the run. */
  onSignal(runId: string): boolean {
    const execution = this.#jobs.executions.get(runId);
    execution?.checkWaits();
    return execution !== undefined;
  }

  /** Requeues the runs that former owners of shards were executing, and enqueues the queued runs. */
  async takeOver(shards: readonly number[]): Promise<void> {
    for (const { run_id } of await recoverRuns(this.#base, shards)) await this.#recordEnd(run_id);
    await queueHeld(this.#base, shards);
    for (const run_id of await awaitedEnds(this.#base, shards)) await this.#wakeAwaiting(run_id);
    await this.#polls.add(null);
    await this.#arm();
    const orphans = await this.#base.database.rows<Pick<RunRow, "run_id">>(
      `SELECT child.run_id FROM $s.runs AS child JOIN $s.runs AS above ON above.run_id = child.parent
       WHERE child.shard = ANY($1) AND child.status IN ('queued', 'running', 'waiting')
         AND (above.status = 'cancelled' OR above.cancelling)`,
      [shards],
    );
    for (const { run_id } of orphans) await this.cancelRun(run_id);
  }

  /** Ends the executions of shards that this node no longer owns: their new owner continues the runs. */
  leave(shards: ReadonlySet<number>, reason: unknown): void {
    for (const [run_id, execution] of this.#jobs.executions)
      if (shards.has(shardOf({ run_id }))) execution.leave(reason);
  }

  /** Finds changes without news: queued runs, signals, cancelled runs. */
  async sweep(): Promise<void> {
    const { database } = this.#base;
    await this.#polls.add(null);
    await this.#arm();
    const working = [...this.#jobs.executions.keys()];
    if (working.length === 0) return;
    const states = await database.rows<{ run_id: string; cancelling: boolean; signalled: boolean }>(
      `SELECT run_id, cancelling, EXISTS (SELECT 1 FROM $s.run_signals WHERE run = runs.id AND NOT taken) AS signalled
       FROM $s.runs WHERE run_id = ANY($1)`,
      [working],
    );
    for (const { run_id, cancelling, signalled } of states) {
      const execution = this.#jobs.executions.get(run_id);
      if (cancelling) execution?.cancel();
      else if (signalled) execution?.checkWaits();
    }
  }

  /** Wakes callers that wait for an end without news. */
  async wakeEnded(): Promise<void> {
    const waited = this.#waiters.ids();
    if (waited.length === 0) return;
    const rows = await this.#base.database.rows<Pick<RunRow, "run_id">>(
      "SELECT run_id FROM $s.runs WHERE run_id = ANY($1) AND ended_at IS NULL",
      [waited],
    );
    const open = new Set(rows.map(({ run_id }) => run_id));
    for (const id of waited) if (!open.has(id)) this.#waiters.wake(id);
  }

  /** Whether no run of a shard is executed on this node. */
  isIdle(shard: number): boolean {
    return [...this.#jobs.executions.keys()].every((run_id) => shardOf({ run_id }) !== shard);
  }

  /** Whether a query for queued runs is running. */
  get isPolling(): boolean {
    return this.#polls.isBusy;
  }

  close(reason: unknown): void {
    this.#alarm?.abort();
    this.#waiters.close(reason);
  }

  async prune(endedBefore: number): Promise<boolean> {
    const { database } = this.#base;
    const rows = await database.rows<Pick<RunRow, "id" | "run_id">>(
      `SELECT id, run_id FROM $s.runs WHERE ended_at < $1 LIMIT ${pruned}`,
      [endedBefore],
    );
    // Events are deleted first: a run without events can be pruned later, but events without a run cannot be found.
    for (const { run_id } of rows) await this.#events.delete(runStream(run_id));
    const ids = rows.map(({ id }) => id);
    await database.transaction(async (ask) => {
      await ask("DELETE FROM $s.run_journal WHERE run = ANY($1)", [ids]);
      await ask("DELETE FROM $s.run_signals WHERE run = ANY($1)", [ids]);
      await ask("DELETE FROM $s.runs WHERE id = ANY($1)", [ids]);
    });
    return rows.length === pruned;
  }

  async #find(runId: string): Promise<RunRow | undefined> {
    return await this.#base.database.row<RunRow>("SELECT * FROM $s.runs WHERE run_id = $1", [runId]);
  }

  #isOwn(run_id: string): boolean {
    return !this.#base.leaseOf({ run_id }).signal.aborted;
  }

  #announce(run_id: string): void {
    this.#base.wake([{ run_id }]);
    if (this.#isOwn(run_id)) this.#pollSoon();
    else this.#base.news.publish(["run", run_id]);
  }

  #pollSoon(): void {
    this.#polls.add(null).catch(() => undefined);
  }

  async #poll(): Promise<void> {
    const handlers = this.#base.handlers();
    const { queue, database, ownership, draining } = this.#base;
    if (handlers === undefined || draining.aborted) return;
    const rows = await database.rows<QueuedRun>(
      `SELECT id, run_id, crashes, owner FROM $s.runs WHERE shard = ANY($1) AND status = 'queued'
       ORDER BY queued_as LIMIT ${sweepRows}`,
      [ownership.shards],
    );
    for (const run of rows) {
      const { run_id } = run;
      // The execution that has requeued its run can still be the head of the line: the run joins after it.
      if (this.#isOwn(run_id) && !queue.isWaiting({ id: run_id, line: lineOfRun(run) }))
        queue.join(this.#jobs.toJob(run, handlers));
    }
  }

  /** Queues the runs whose wake-up time has passed, and sets the timer to the next wake-up time. */
  async #arm(): Promise<void> {
    const { database, ownership, time, stopping } = this.#base;
    if (this.#base.handlers() === undefined || stopping.aborted) return;
    this.#alarm?.abort();
    const alarm = new AbortController();
    this.#alarm = alarm;
    try {
      const woken = await database.rows(
        `UPDATE $s.runs SET status = 'queued', wake_at = NULL, queued_as = nextval('$s.run_queue')
         WHERE id IN (SELECT id FROM $s.runs WHERE wake_at <= $1 AND status = 'waiting' AND shard = ANY($2)
           ORDER BY wake_at LIMIT ${wokenAtATime} FOR UPDATE SKIP LOCKED) RETURNING 1`,
        [time.now(), ownership.shards],
      );
      if (woken.length > 0) this.#pollSoon();
      const next = await database.row<{ at: number | null }>(
        "SELECT min(wake_at) AS at FROM $s.runs WHERE wake_at IS NOT NULL AND shard = ANY($1)",
        [ownership.shards],
      );
      if (next?.at === null || next?.at === undefined || alarm.signal.aborted) return;
      sleepUntil(time, next.at, alarm.signal).then(
        () => void this.#arm(),
        () => undefined,
      );
    } catch {
      // The next sweep tries again.
    }
  }

  async #toRecords(rows: readonly RunRow[]): Promise<RunRecord[]> {
    const open = rows.filter(({ status }) => !hasEnded(status)).map(({ id }) => id);
    const waits = await this.#journals.waits(open);
    const counts = await this.#events.counts(rows.map(({ run_id }) => runStream(run_id)));
    return rows.map((row) =>
      toRunRecord(row, this.#base, {
        waits: waits.get(row.id) ?? [],
        event_count: counts.get(runStream(row.run_id)) ?? 0,
      }),
    );
  }

  #leaveAll(reason: unknown): void {
    for (const execution of this.#jobs.executions.values()) execution.leave(reason);
  }

  async #cancel(runId: string): Promise<boolean> {
    const { clock, queue, database, news } = this.#base;
    const row = await database.row<RunRow>(
      `UPDATE $s.runs SET cancelling = (status = 'running'), wake_at = NULL,
         ended_at = CASE WHEN status = 'running' THEN NULL ELSE $1::bigint END,
         status = CASE WHEN status = 'running' THEN status ELSE 'cancelled' END
       WHERE run_id = $2 AND status IN ('queued', 'running', 'waiting') RETURNING *`,
      [clock.now(), runId],
    );
    if (row === undefined) return false;
    if (row.status === "running") {
      this.onCancel(runId);
      news.publish(["cancel", runId]);
      return true;
    }
    queue.leave({ id: runId, line: lineOfRun(row) });
    await this.#recordEnd(runId);
    return true;
  }

  async #descendants(runId: string): Promise<readonly string[]> {
    const rows = await this.#base.database.rows<Pick<RunRow, "run_id">>(
      `WITH RECURSIVE below AS (
         SELECT run_id, id FROM $s.runs WHERE parent = $1
         UNION SELECT r.run_id, r.id FROM $s.runs AS r JOIN below ON r.parent = below.run_id)
       SELECT run_id FROM below ORDER BY id`,
      [runId],
    );
    return rows.map(({ run_id }) => run_id);
  }

  async #recordEnd(runId: string): Promise<void> {
    const row = await this.#find(runId);
    if (row?.status === "cancelled") await recordCancelled(this.#events, row, this.#base.clock.now());
    this.#noteEnd(runId);
  }

  #noteEnd(runId: string): void {
    try {
      this.#events.end(runStream(runId));
    } catch {
      // Another node writes the stream, and ends it when it gets the news: `onEnded`.
    }
    this.#waiters.wake(runId);
    this.#base.news.publish(["ended", runId]);
    // If this fails, the next `takeOver` does it.
    this.#wakeAwaiting(runId).catch(() => undefined);
  }

  async #wakeAwaiting(runId: string): Promise<void> {
    for (const waiting of await wakeAwaiting(this.#base, runId)) this.#announce(waiting);
  }
}

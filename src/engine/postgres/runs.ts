import { Batcher } from "../../postgres/batcher.ts";
import { runStream } from "../../protocol/session-name.ts";
import type { WaitingSignal } from "../../protocol/waiting.ts";
import type { Page, RunReceipt, RunRequest, RunSignal, WaitingListing } from "../contract.ts";
import { sleepUntil } from "../shared/durable-time.ts";
import { recordCancelled } from "../shared/runs/run-jobs.ts";
import { hasEnded, lineOfRun, type QueuedRun, type RunRow } from "../shared/runs/run-store.ts";
import { Runs, type RunsOptions } from "../shared/runs/runs.ts";
import { listWaitingSignals } from "./lists.ts";
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

const sweepRows = 2_000;
const wokenAtATime = 500;
/** How soon a due run is tried again that another transaction had locked. */
const lockedMs = 20;
const pruned = 100;

/** The runs of a database: the node that owns the shard of a run executes it. */
export class PostgresRuns extends Runs<PostgresBase> {
  readonly #journals: JournalRows;
  readonly #rows: RunRows;
  /** Queries for the queued runs of this node's shards, in order. */
  readonly #polls: Batcher<null, void>;
  #alarm: AbortController | undefined;

  constructor(base: PostgresBase, options: RunsOptions) {
    const journals = new JournalRows(base);
    const rows = new RunRows(base);
    super(base, { store: rows, journals }, options);
    this.#journals = journals;
    this.#rows = rows;
    this.#polls = new Batcher((all) => this.#poll().then(() => all.map(() => undefined)));
  }

  protected accept(request: RunRequest): Promise<RunReceipt> {
    return admitRun(this.base, request);
  }

  protected requeueFailed(runId: string): Promise<RunRow> {
    return retryRun(this.base, runId);
  }

  protected armWakeUps(): void {
    void this.#arm();
  }

  listWaitingSignals(listing: WaitingListing): Promise<Page<WaitingSignal>> {
    return listWaitingSignals(this.base, listing);
  }

  async resumeHeld(): Promise<void> {
    for (const runId of await queueHeld(this.base)) this.announce(runId);
  }

  async signal(run_id: string, signal: RunSignal): Promise<void> {
    const isQueued = await sendSignal(this.base, this.#journals, { run_id, signal });
    if (isQueued) this.announce(run_id);
    else if (!this.onSignal(run_id)) this.base.news.publish(["signal", run_id]);
  }

  /** Handles the news that a run was queued. */
  onQueued(runId: string): void {
    if (this.#isOwn(runId)) this.enqueueNew();
  }

  /** Handles the news that a run has ended. */
  onEnded(runId: string): void {
    this.ends.wake(runId);
  }

  /** Handles the news that a run ended on a node that does not own it: the owner writes its stream, and notes a cancellation there. */
  async onEndedElsewhere(runId: string): Promise<void> {
    if (!this.#isOwn(runId)) return;
    const row = await this.#rows.find(runId);
    // A failed run can have been continued before the news came.
    if (row === undefined || !hasEnded(row.status)) return;
    if (row.status === "cancelled") await recordCancelled(this.events, row, this.base.clock.now());
    super.noteEnd(runId);
  }

  /** Handles the news that a running run was cancelled. */
  onCancel(runId: string): void {
    this.jobs.cancel(runId);
  }

  /** Handles the news that a run has a signal. Returns whether this node executes the run. */
  onSignal(runId: string): boolean {
    const execution = this.jobs.executions.get(runId);
    execution?.checkWaits();
    return execution !== undefined;
  }

  /** Requeues the runs that former owners of shards were executing, and enqueues the queued runs. */
  async takeOver(shards: readonly number[]): Promise<void> {
    // A node without open runs, which looks every few seconds, asks nothing else.
    if (!(await this.#rows.areOpen(shards))) return;
    for (const row of await recoverRuns(this.base, shards)) await this.recordEnd(row);
    await queueHeld(this.base, shards);
    for (const run_id of await awaitedEnds(this.base, shards)) await this.#wakeAwaiting(run_id);
    await this.#polls.add(null);
    await this.#arm();
    const orphans = await this.base.database.rows<Pick<RunRow, "run_id">>(
      `SELECT child.run_id FROM $s.runs AS child JOIN $s.runs AS above ON above.run_id = child.parent
       WHERE child.shard = ANY($1) AND child.status IN ('queued', 'running', 'waiting')
         AND (above.status = 'cancelled' OR above.cancelling)`,
      [shards],
    );
    for (const { run_id } of orphans) await this.cancelRun(run_id);
  }

  /** Ends the executions of shards that this node no longer owns: their new owner continues the runs. */
  leave(shards: ReadonlySet<number>, reason: unknown): void {
    for (const [run_id, execution] of this.jobs.executions)
      if (shards.has(shardOf({ run_id }))) execution.leave(reason);
  }

  /** Finds changes without news: queued runs, signals, cancelled runs. */
  async sweep(): Promise<void> {
    const { database } = this.base;
    await this.#polls.add(null);
    await this.#arm();
    const working = [...this.jobs.executions.keys()];
    if (working.length === 0) return;
    const states = await database.rows<{ run_id: string; cancelling: boolean; signalled: boolean }>(
      `SELECT run_id, cancelling, EXISTS (SELECT 1 FROM $s.run_signals WHERE run = runs.id AND NOT taken) AS signalled
       FROM $s.runs WHERE run_id = ANY($1)`,
      [working],
    );
    for (const { run_id, cancelling, signalled } of states) {
      const execution = this.jobs.executions.get(run_id);
      if (cancelling) execution?.cancel();
      else if (signalled) execution?.checkWaits();
    }
  }

  /** Wakes callers that wait for an end without news. */
  wakeEnded(): Promise<void> {
    return this.ends.wakeEnded();
  }

  /** Whether this node works on no run of a shard: the next owner of one that is ending would get a stream that nothing ends. */
  isIdle(shard: number): boolean {
    return this.jobs.runsAtWork.every((run_id) => shardOf({ run_id }) !== shard);
  }

  /** Whether a query for queued runs is running. */
  get isPolling(): boolean {
    return this.#polls.isBusy;
  }

  override close(reason: unknown): void {
    this.#alarm?.abort();
    super.close(reason);
  }

  async prune(endedBefore: number): Promise<boolean> {
    const { database } = this.base;
    const rows = await database.rows<Pick<RunRow, "id" | "run_id">>(
      `SELECT id, run_id FROM $s.runs WHERE ended_at < $1 LIMIT ${pruned}`,
      [endedBefore],
    );
    // Events are deleted first: a run without events can be pruned later, but events without a run cannot be found.
    for (const { run_id } of rows) await this.events.delete(runStream(run_id));
    const ids = rows.map(({ id }) => id);
    await database.transaction(async (ask) => {
      await ask("DELETE FROM $s.run_journal WHERE run = ANY($1)", [ids]);
      await ask("DELETE FROM $s.run_signals WHERE run = ANY($1)", [ids]);
      await ask("DELETE FROM $s.runs WHERE id = ANY($1)", [ids]);
    });
    return rows.length === pruned;
  }

  #isOwn(run_id: string): boolean {
    return !this.base.leaseOf({ run_id }).signal.aborted;
  }

  protected announce(run_id: string): void {
    this.base.wake([{ run_id }]);
    if (this.#isOwn(run_id)) this.enqueueNew();
    else this.base.news.publish(["run", run_id]);
  }

  protected enqueueNew(): void {
    this.#polls.add(null).catch(() => undefined);
  }

  async #poll(): Promise<void> {
    const handlers = this.base.handlers();
    const { queue, database, ownership, draining } = this.base;
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
        queue.join(this.jobs.toJob(run, handlers));
    }
  }

  /** Queues the runs whose wake-up time has passed, and sets the timer to the next wake-up time. */
  async #arm(): Promise<void> {
    const { database, ownership, time, stopping } = this.base;
    if (this.base.handlers() === undefined || stopping.aborted) return;
    this.#alarm?.abort();
    const alarm = new AbortController();
    this.#alarm = alarm;
    try {
      const due = await database.row<{ woken: number; next: number | null }>(
        `WITH woken AS (
           UPDATE $s.runs SET status = 'queued', wake_at = NULL, queued_as = nextval('$s.run_queue')
           WHERE id IN (SELECT id FROM $s.runs WHERE wake_at <= $1 AND status = 'waiting' AND shard = ANY($2)
             ORDER BY wake_at LIMIT ${wokenAtATime} FOR UPDATE SKIP LOCKED) RETURNING id)
         SELECT (SELECT count(*)::int FROM woken) AS woken,
           (SELECT min(wake_at) FROM $s.runs WHERE wake_at IS NOT NULL AND shard = ANY($2) AND id NOT IN (SELECT id FROM woken)) AS next`,
        [time.now(), ownership.shards],
      );
      const { woken = 0, next = null } = due ?? {};
      if (woken > 0) this.enqueueNew();
      if (next === null || alarm.signal.aborted) return;
      // A run that is still due is locked, as by a signal for it, or one of more than are woken at a time.
      const at = woken === wokenAtATime ? next : Math.max(next, time.now() + lockedMs);
      sleepUntil(time, at, alarm.signal).then(
        () => void this.#arm(),
        () => undefined,
      );
    } catch {
      // The next sweep tries again.
    }
  }

  protected override noteCancelled(runId: string): void {
    super.noteCancelled(runId);
    this.base.news.publish(["cancel", runId]);
  }

  protected override noteEnd(runId: string): void {
    super.noteEnd(runId);
    this.base.news.publish(["ended", runId]);
    if (!this.#isOwn(runId)) this.base.news.publish(["ended_elsewhere", runId]);
    // If this fails, the next `takeOver` does it.
    this.#wakeAwaiting(runId).catch(() => undefined);
  }

  async #wakeAwaiting(runId: string): Promise<void> {
    for (const waiting of await wakeAwaiting(this.base, runId)) this.announce(waiting);
  }
}

import { lowestId } from "../../base/id.ts";
import { Batcher } from "../../postgres/batcher.ts";
import type { DispatchReceipt } from "../../protocol/dispatch.ts";
import type { SessionKey } from "../../protocol/session-entry.ts";
import type { AdmitRequest, LinePlace, WaitOptions, WorkContext } from "../contract.ts";
import { type DispatchRow, isRiskySql, type QueuedDispatch } from "../shared/dispatches/dispatch-store.ts";
import { Dispatches } from "../shared/dispatches/dispatches.ts";
import { closing } from "../shared/engine-base.ts";
import { lineOf, ownerOfInput } from "../shared/queue/owners.ts";
import { joinsSql } from "../shared/stored-rows.ts";
import { DispatchAdmission } from "./dispatch-admission.ts";
import { DispatchRows } from "./dispatch-rows.ts";
import type { PostgresBase } from "./postgres-base.ts";
import { shardOf } from "./shards.ts";

type RecoveredDispatch = QueuedDispatch & { readonly risky: boolean };

const columns = `seq, dispatch_id, agent, instance_id, session, owner, ${joinsSql}, ${isRiskySql} AS risky`;
/** Searches go back by this many numbers, because a higher `seq` can become visible before a lower one of the same moment. */
const seqMargin = 1_000;
const sweepRows = 2_000;
const pruned = 500;
/** How often a call that is not stored checks whether the work of its shard is taken over. */
const recoveryStepMs = 10;

/** The inputs of a database: the node that owns the shard of an instance runs them. */
export class PostgresDispatches extends Dispatches<PostgresBase> {
  readonly #admission: DispatchAdmission;
  /** Queries for the queued inputs of sessions. */
  readonly #polls: Batcher<SessionKey, void>;
  /** The shards in which the work of former owners was requeued, with the fence of this node at that time. */
  readonly #recovered = new Map<number, number>();
  /** The highest `seq` that this node has enqueued. */
  #seen = 0;

  constructor(base: PostgresBase) {
    super(base, new DispatchRows(base), base.limits);
    this.#admission = new DispatchAdmission(base, {
      attached: (scope) => this.calls.waiting(scope),
      admitted: (sessions) => this.#announce(sessions),
    });
    this.#polls = new Batcher<SessionKey, void>((all) => this.#poll(all));
  }

  async admit(request: AdmitRequest): Promise<DispatchReceipt> {
    return await this.#admission.admit(request);
  }

  /** `Engine.inLine`, on the node that owns the instance. */
  async inLine<Value>(
    session: LinePlace,
    work: (context: WorkContext) => Promise<Value>,
    options?: WaitOptions,
  ): Promise<Value> {
    const release = await this.base.ownership.hold(shardOf(session), options?.signal);
    try {
      await this.#admission.checkRoomInLine(session, ownerOfInput(session));
      // First enqueues the inputs that any node has accepted before.
      await this.#untilRecovered(session, options?.signal);
      await this.#polls.add(session);
      if (this.base.leaseOf(session).signal.aborted || this.base.draining.aborted) throw closing();
      this.#admission.checkLine(session);
      return await this.calls.run(session, work, options?.signal);
    } finally {
      release();
    }
  }

  protected requeueFailed(id: string): Promise<void> {
    return this.#admission.redrive(id);
  }

  protected override noteEnd(id: string): void {
    super.noteEnd(id);
    this.base.news.publish(["ended", id]);
  }

  protected override noteCancelled(row: DispatchRow): void {
    super.noteCancelled(row);
    this.base.news.publish(["cancel", row.dispatch_id]);
    this.base.wake([row]);
  }

  /** Handles the news that inputs were queued in a session. */
  onQueued(key: SessionKey): void {
    if (this.#isOwn(key)) this.#polls.add(key).catch(() => undefined);
  }

  /** Handles the news that a dispatch has ended. */
  onEnded(id: string): void {
    this.ends.wake(id);
  }

  /** Handles the news that a dispatch that has begun was cancelled. */
  onCancel(id: string): void {
    this.attempts.cancel(id);
  }

  /** Requeues the work that former owners of shards were running, and enqueues the queued inputs. */
  async takeOver(shards: readonly number[]): Promise<void> {
    const { ownership } = this.base;
    const fences = shards.map((shard) => [shard, ownership.leaseOfShard(shard).fence] as const);
    await this.#recover(shards);
    for (const [shard, fence] of fences) this.#recovered.set(shard, fence);
    const rows = await this.base.database.rows<RecoveredDispatch>(
      `SELECT ${columns} FROM $s.dispatches WHERE shard = ANY($1) AND ended_at IS NULL AND status = 'queued' ORDER BY seq`,
      [shards],
    );
    this.#join(rows, this.#recovered);
  }

  /** Finds changes without news: new inputs, and cancelled ones. */
  async sweep(): Promise<void> {
    const { database, ownership } = this.base;
    const recovered = new Map(this.#recovered);
    const rows = await database.rows<RecoveredDispatch>(
      `SELECT ${columns} FROM $s.dispatches WHERE shard = ANY($1) AND ended_at IS NULL AND status = 'queued' AND seq > $2
       ORDER BY seq LIMIT ${sweepRows}`,
      [ownership.shards, this.#seen - seqMargin],
    );
    this.#join(rows, recovered);
    const running = this.attempts.running().map(({ dispatch_id }) => dispatch_id);
    const retrying = this.attempts.retrying();
    if (running.length + retrying.length === 0) return;
    const states = await database.rows<{ dispatch_id: string; status: string; cancelling: boolean }>(
      "SELECT dispatch_id, status, cancelling FROM $s.dispatches WHERE dispatch_id = ANY($1)",
      [[...running, ...retrying.map(({ dispatch_id }) => dispatch_id)]],
    );
    const queued = new Set(states.filter(({ status }) => status === "queued").map((row) => row.dispatch_id));
    for (const { dispatch_id, cancelling } of states) if (cancelling) this.attempts.cancel(dispatch_id);
    for (const dispatch of retrying) if (!queued.has(dispatch.dispatch_id)) this.attempts.leave(dispatch);
  }

  /** Whether no work of a shard runs on this node. */
  isIdle(shard: number): boolean {
    // A waiting attached call counts too, because another node could not continue it.
    for (const session of this.calls.lines) if (shardOf(session) === shard) return false;
    for (const session of this.attempts.sessionsAtWork) if (shardOf(session) === shard) return false;
    return true;
  }

  /** Whether a query for queued inputs is running. */
  get isPolling(): boolean {
    return this.#polls.isBusy;
  }

  async prune(endedBefore: number): Promise<boolean> {
    const rows = await this.base.database.rows(
      `DELETE FROM $s.dispatches WHERE dispatch_id IN (SELECT dispatch_id FROM $s.dispatches
         WHERE dispatch_id < $2 AND ended_at < $1 ORDER BY dispatch_id LIMIT ${pruned}) RETURNING 1`,
      [endedBefore, lowestId("dispatch", endedBefore)],
    );
    return rows.length === pruned;
  }

  #isOwn(key: SessionKey): boolean {
    return !this.base.leaseOf(key).signal.aborted;
  }

  /** Whether inputs that a former owner had begun are requeued: until then, later inputs of their sessions would overtake them. */
  #isRecovered(key: SessionKey, recovered: ReadonlyMap<number, number> = this.#recovered): boolean {
    return recovered.get(shardOf(key)) === this.base.leaseOf(key).fence;
  }

  async #untilRecovered(key: SessionKey, signal: AbortSignal | undefined): Promise<void> {
    while (this.#isOwn(key) && !this.#isRecovered(key) && !this.base.draining.aborted)
      await this.base.clock.sleep(recoveryStepMs, signal);
  }

  #announce(sessions: readonly SessionKey[]): void {
    const unique = new Map(sessions.map((key) => [lineOf(key), key]));
    this.base.wake([...unique.values()]);
    for (const key of unique.values()) {
      if (this.#isOwn(key)) this.#polls.add(key).catch(() => undefined);
      else this.base.news.publish(["session", key.agent, key.instance_id, key.session]);
    }
  }

  /** Enqueues the queued inputs of sessions, in order, whichever node has accepted them. */
  async #poll(keys: readonly SessionKey[]): Promise<readonly undefined[]> {
    const unique = [...new Map(keys.map((key) => [lineOf(key), key])).values()];
    const recovered = new Map(this.#recovered);
    const rows = await this.base.database.rows<RecoveredDispatch>(
      `SELECT queued.* FROM unnest($1::int[], $2::text[], $3::text[], $4::text[]) AS asked (shard, agent, instance_id, session),
         LATERAL (SELECT ${columns} FROM $s.dispatches AS d WHERE d.shard = asked.shard AND ended_at IS NULL
           AND d.agent = asked.agent AND d.instance_id = asked.instance_id AND d.session = asked.session AND status = 'queued'
           OFFSET 0) AS queued
       ORDER BY seq`,
      [
        unique.map((key) => shardOf(key)),
        unique.map(({ agent }) => agent),
        unique.map(({ instance_id }) => instance_id),
        unique.map(({ session }) => session),
      ],
    );
    this.#join(rows, recovered);
    return keys.map(() => undefined);
  }

  /** `recovered` is a copy from before the rows were read: rows that were read earlier can lack requeued inputs. */
  #join(rows: readonly RecoveredDispatch[], recovered: ReadonlyMap<number, number>): void {
    const handlers = this.base.handlers();
    if (handlers === undefined || this.base.draining.aborted) return;
    const { queue } = this.base;
    for (const { risky, ...dispatch } of rows) {
      if (!this.#isOwn(dispatch) || !this.#isRecovered(dispatch, recovered)) continue;
      if (queue.has({ id: dispatch.dispatch_id, line: lineOf(dispatch) })) continue;
      this.#seen = Math.max(this.#seen, dispatch.seq);
      queue.join(this.attempts.toJob(dispatch, handlers, risky));
    }
  }

  /** Wakes callers that wait for an end without news. */
  wakeEnded(): Promise<void> {
    return this.ends.wakeEnded();
  }

  /**
   * Requeues the attempts with an older fence than that of their shard, also cancelled ones, which end once they are claimed. They
   * count if their node has died, except those that only waited.
   */
  async #recover(shards: readonly number[]): Promise<void> {
    await this.base.database.run(
      `UPDATE $s.dispatches AS d SET status = 'queued',
         spent = spent + CASE WHEN own.former IS NULL OR idle THEN 0 ELSE 1 END,
         charged = CASE WHEN own.former IS NULL OR idle THEN charged ELSE array_append(charged, own.former) END
       FROM $s.shards AS own
       WHERE d.shard = ANY($1) AND d.ended_at IS NULL AND d.status = 'running' AND own.shard = d.shard AND d.fence < own.fence`,
      [shards],
    );
  }
}

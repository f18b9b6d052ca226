import { KitError } from "../../base/kit-error.ts";
import { Batcher } from "../../postgres/batcher.ts";
import type { Owned } from "../cluster.ts";
import { closing } from "../shared/engine-base.ts";
import type { PostgresBase } from "./postgres-base.ts";
import { queueHeld } from "./run-rows.ts";
import { lockedShards, lockSpaceOf, shardOf } from "./shards.ts";

/**
 * Calls a node of its choice for the work of instances and runs, until the work is done. It need not be reliable: the nodes
 * find lost calls in the rows.
 */
export interface Executor {
  /** The executor's name, for operators. */
  readonly name: string;
  /** These instances and runs have work: the executor calls `turn` for each soon, on any node. Called often; must not throw. */
  wake(keys: readonly Owned[], why?: Wake): void;
  /** From now on, the executor can call this node. */
  start(turn: Turn): Promise<void>;
  /** From now on, the executor must not call this node. */
  stop(): Promise<void>;
  /** The problem that has kept the executor from calling this node, or from getting calls, for longer than a moment. */
  problem(): KitError | undefined;
}

/** `found`: no node does the due work, so an earlier call was lost, or is stuck at a dead node. */
export type Wake = "new" | "found";

/**
 * Does the work of an instance or a run, or waits while another node does it. Returns the ms until its next work is due;
 * `undefined` if nothing waits for a time. Rejects if the executor must call another node. `lost` fires if the executor has
 * passed the call to another node.
 */
export type Turn = (key: Owned, leaseSignal: AbortSignal) => Promise<number | undefined>;

interface State {
  /** Whether work runs, or could begin now. */
  readonly busy: boolean;
  /** When the next work that waits for a time is due. */
  readonly at: number | null;
}

interface DueRow {
  readonly agent: string | null;
  readonly instance_id: string | null;
  readonly run_id: string | null;
}

/** How often the keeper looks for due work that no node does. */
export const findMs = 1_000;
/** The keeper calls again for work that has been due for this time. */
const lateMs = 1_500;
const mostFound = 500;
/** If a node is not called for this time, although work is due, it reports a problem. */
const uncalledMs = 15_000;
/** A turn ends after this time, and the executor calls again, so that no turn meets a time limit of the executor. */
const longestTurnMs = 30_000;
/** The first and the longest pause between two reads of a turn's rows. */
const firstPauseMs = 10;
const longestPauseMs = 250;
/** How often a turn requests a shard again that another node holds. */
const wantMs = 2_500;

/** Does the work of a node that an executor calls. */
export class CalledWork {
  readonly #base: PostgresBase;
  readonly #executor: Executor;
  readonly #states: Batcher<Owned, State>;
  /** The number of open turns per shard. */
  readonly #open = new Map<number, number>();
  /** The first of the searches in a row that found due work, by `performance.now`. */
  #dueSince: number | undefined;
  #calledAt = 0;
  /** The nodes for whose code this keeper has tried the held runs again. */
  #triedFor = "";

  constructor(base: PostgresBase, executor: Executor) {
    this.#base = base;
    this.#executor = executor;
    this.#states = new Batcher<Owned, State>((keys) => this.#read(keys));
  }

  get name(): string {
    return this.#executor.name;
  }

  async start(): Promise<void> {
    await this.#executor.start((key, leaseSignal) => this.#turn(key, leaseSignal));
  }

  async stop(): Promise<void> {
    await this.#executor.stop();
  }

  /** The problem that delays accepted work, for operators. */
  problem(): KitError | undefined {
    const since = Math.max(this.#dueSince ?? Number.POSITIVE_INFINITY, this.#calledAt);
    const isUncalled = performance.now() - since > uncalledMs;
    return this.#executor.problem() ?? (isUncalled ? notCalled(this.#executor.name) : undefined);
  }

  /** Takes the shard of an instance that no node holds: an executor makes no call for an instance without work. */
  async tryHold(key: Owned): Promise<void> {
    const { ownership, handlers } = this.#base;
    const shard = shardOf(key);
    if (handlers() === undefined || !ownership.leaseOfShard(shard).signal.aborted) return;
    ownership.want([shard]);
    await ownership.beatNow().catch(() => undefined);
    if (!this.#open.has(shard)) ownership.withdraw(shard);
  }

  /** On the keeper: calls for due work that no node does. */
  async find(): Promise<void> {
    const { database, ownership, clock, draining } = this.#base;
    if (draining.aborted) return;
    if (!ownership.isKeeper) {
      this.#dueSince = undefined;
      this.#triedFor = "";
    }
    // The node that holds shard 0 is the keeper.
    ownership.want([0]);
    if (!ownership.isKeeper) return;
    await this.#retryHeld();
    const rows = await database.rows<DueRow>(
      `SELECT DISTINCT agent, instance_id, run_id FROM (
         SELECT shard, agent, instance_id, NULL AS run_id, coalesce(next_attempt_at, accepted_at) AS since
           FROM $s.dispatches WHERE status = 'queued' AND ended_at IS NULL
         UNION ALL SELECT shard, agent, instance_id, NULL, 0 FROM $s.dispatches
           WHERE status = 'running' AND ended_at IS NULL
         UNION ALL SELECT shard, NULL, NULL, run_id, accepted_at FROM $s.runs WHERE status = 'queued'
         UNION ALL SELECT shard, NULL, NULL, run_id, 0 FROM $s.runs WHERE status = 'running'
         UNION ALL SELECT shard, NULL, NULL, run_id, wake_at FROM $s.runs WHERE status = 'waiting' AND wake_at IS NOT NULL
       ) AS due
       WHERE since < $1 AND shard NOT IN (${lockedShards("$2")}) LIMIT ${mostFound}`,
      [clock.now() - lateMs, lockSpaceOf(database)],
    );
    this.#dueSince = rows.length === 0 ? undefined : (this.#dueSince ?? performance.now());
    this.#executor.wake(
      rows.map(({ agent, instance_id, run_id }) =>
        run_id === null ? { agent: agent ?? "", instance_id: instance_id ?? "" } : { run_id },
      ),
      "found",
    );
  }

  /** Tries held runs again once nodes have come or gone: no node takes over a shard whose runs only wait. */
  async #retryHeld(): Promise<void> {
    const { database } = this.#base;
    const [row] = await database.rows<{ readonly nodes: string | null }>(
      "SELECT string_agg(node, ' ' ORDER BY node) AS nodes FROM $s.nodes",
    );
    const nodes = row?.nodes ?? "";
    if (nodes === this.#triedFor) return;
    const queued = await queueHeld(this.#base);
    this.#triedFor = nodes;
    this.#executor.wake(queued.map((run_id) => ({ run_id })));
  }

  async #turn(key: Owned, leaseSignal: AbortSignal): Promise<number | undefined> {
    const { ownership } = this.#base;
    const shard = shardOf(key);
    this.#calledAt = performance.now();
    this.#open.set(shard, (this.#open.get(shard) ?? 0) + 1);
    try {
      return await this.#untilDone(key, leaseSignal);
    } finally {
      const otherTurns = (this.#open.get(shard) ?? 1) - 1;
      if (otherTurns > 0) this.#open.set(shard, otherTurns);
      else this.#open.delete(shard);
      if (otherTurns === 0) ownership.withdraw(shard);
    }
  }

  async #untilDone(key: Owned, leaseSignal: AbortSignal): Promise<number | undefined> {
    const { clock, ownership, draining } = this.#base;
    const shard = shardOf(key);
    const until = performance.now() + longestTurnMs;
    let wantAt = 0;
    for (let pause = firstPauseMs; ; pause = Math.min(longestPauseMs, pause * 2)) {
      leaseSignal.throwIfAborted();
      const { busy, at } = await this.#states.add(key);
      if (!busy) return at === null ? undefined : Math.max(0, at - clock.now());
      if (performance.now() > until) return 0;
      if (draining.aborted || this.#isFull(shard)) throw closing();
      if (performance.now() >= wantAt) {
        ownership.want([shard]);
        wantAt = performance.now() + wantMs;
      }
      await clock.sleep(pause, leaseSignal);
    }
  }

  /** Whether this node has no free slot for a shard that it does not own, so that another node should do the work. */
  #isFull(shard: number): boolean {
    const { queue, ownership } = this.#base;
    return queue.free <= 0 && ownership.others > 0 && ownership.leaseOfShard(shard).signal.aborted;
  }

  async #read(keys: readonly Owned[]): Promise<readonly State[]> {
    const instance = (key: Owned) => ("run_id" in key ? undefined : key);
    const rows = await this.#base.database.rows<State & { readonly number: string }>(
      `SELECT number, CASE
           WHEN asked.run_id IS NOT NULL THEN coalesce(r.status IN ('queued', 'running') OR r.wake_at <= $5, false)
           ELSE EXISTS (SELECT 1 FROM $s.dispatches AS d WHERE d.shard = asked.shard AND d.ended_at IS NULL
             AND d.agent = asked.agent AND d.instance_id = asked.instance_id
             AND (d.status = 'running' OR coalesce(d.next_attempt_at, 0) <= $5))
         END AS busy,
         CASE WHEN asked.run_id IS NOT NULL THEN r.wake_at ELSE (SELECT min(next_attempt_at) FROM $s.dispatches AS d
           WHERE d.shard = asked.shard AND d.ended_at IS NULL AND d.agent = asked.agent AND d.instance_id = asked.instance_id
             AND d.status = 'queued') END AS at
       FROM unnest($1::text[], $2::text[], $3::text[], $4::int[]) WITH ORDINALITY
         AS asked (agent, instance_id, run_id, shard, number)
       LEFT JOIN $s.runs AS r ON r.run_id = asked.run_id ORDER BY number`,
      [
        keys.map((key) => instance(key)?.agent ?? null),
        keys.map((key) => instance(key)?.instance_id ?? null),
        keys.map((key) => ("run_id" in key ? key.run_id : null)),
        keys.map((key) => shardOf(key)),
        this.#base.clock.now(),
      ],
    );
    return rows;
  }
}

function notCalled(name: string): KitError {
  return new KitError({
    code: "unavailable",
    message: `${name} accepts the calls for work, but does not call this node, so work waits.`,
    hint: `Check the state of the calls in ${name}, that the registered address leads to the nodes, and that no other cluster has registered an object with the same name.`,
  });
}

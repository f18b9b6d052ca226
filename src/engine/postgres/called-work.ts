import { KitError } from "../../base/kit-error.ts";
import { Batcher } from "../../postgres/batcher.ts";
import type { Owned } from "../cluster.ts";
import { closing } from "../shared/engine-base.ts";
import type { PostgresBase } from "./postgres-base.ts";
import { lockedShards, shardOf } from "./shards.ts";

/**
 * Calls some node, which is its choice, for what instances and runs have to do, until they have done it. It need not be
 * reliable: what it loses is found in the rows.
 */
export interface Executor {
  /** Its name, for operators. */
  readonly name: string;
  /** These have something to do: soon, `turn` is to be called for each, on some node. Called often; it must not throw. */
  wake(keys: readonly Owned[], why?: Wake): void;
  /** This node can be called from now on. */
  start(turn: Turn): Promise<void>;
  /** This node is not called any more. */
  stop(): Promise<void>;
  /** The reason that has kept it from calling this node, or from hearing of work, for longer than a moment. */
  problem(): KitError | undefined;
}

/** `found`: no node works on it though it is due, so an earlier call was lost, or is stuck with a node that is gone. */
export type Wake = "new" | "found";

/**
 * Does what an instance or a run has to do, or waits while another node does it. Gives in how many ms the next of it is due; undefined
 * where nothing waits for a time. Rejects where another node is to be called instead. `lost`: the call has become another node's.
 */
export type Turn = (key: Owned, lost: AbortSignal) => Promise<number | undefined>;

interface State {
  /** Something works, or could begin now. */
  readonly busy: boolean;
  /** When the next of what waits for a time is due. */
  readonly at: number | null;
}

interface DueRow {
  readonly agent: string | null;
  readonly instance_id: string | null;
  readonly run_id: string | null;
}

/** How often a node looks for what is due and no node works on. */
export const findMs = 1_000;
/** The keeper calls again for work that is due for so long. */
const lateMs = 1_500;
const mostFound = 500;
/** A node that is not called for so long, while work is due, is spoken of. */
const uncalledMs = 15_000;
/** A turn is over after this time, and the executor told to call again: so none meets a time limit of the executor. */
const longestTurnMs = 30_000;
/** Between two looks of a turn at the rows, at first and at most. */
const firstLookMs = 10;
const longestLookMs = 250;
/** How often a turn asks again for a shard that another node holds. */
const wantMs = 2_500;

/** The work of a node that an executor calls. */
export class CalledWork {
  readonly #base: PostgresBase;
  readonly #executor: Executor;
  readonly #states: Batcher<Owned, State>;
  /** How many turns of a shard are open. */
  readonly #open = new Map<number, number>();
  /** Since when this node finds work that is due whenever it looks, by `performance.now`. */
  #dueSince: number | undefined;
  #calledAt = 0;

  constructor(base: PostgresBase, executor: Executor) {
    this.#base = base;
    this.#executor = executor;
    this.#states = new Batcher<Owned, State>((keys) => this.#read(keys));
  }

  get name(): string {
    return this.#executor.name;
  }

  async start(): Promise<void> {
    await this.#executor.start((key, lost) => this.#turn(key, lost));
  }

  async stop(): Promise<void> {
    await this.#executor.stop();
  }

  /** The reason that accepted work waits, for operators. */
  problem(): KitError | undefined {
    const since = Math.max(this.#dueSince ?? Number.POSITIVE_INFINITY, this.#calledAt);
    const isUncalled = performance.now() - since > uncalledMs;
    return this.#executor.problem() ?? (isUncalled ? notCalled(this.#executor.name) : undefined);
  }

  /** Takes an instance that no node holds: Restate calls for none that rests. */
  async tryHold(key: Owned): Promise<void> {
    const { ownership, handlers } = this.#base;
    const shard = shardOf(key);
    if (handlers() === undefined || !ownership.leaseOfShard(shard).signal.aborted) return;
    ownership.want([shard]);
    await ownership.turnNow().catch(() => undefined);
    if (!this.#open.has(shard)) ownership.forgo(shard);
  }

  /** One node calls for what is due and no node works on. */
  async find(): Promise<void> {
    const { database, ownership, clock, draining } = this.#base;
    if (draining.aborted) return;
    if (!ownership.isKeeper) this.#dueSince = undefined;
    // The node that holds the first shard does what the whole database needs.
    ownership.want([0]);
    if (!ownership.isKeeper) return;
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
      [clock.now() - lateMs, ownership.lockSpace],
    );
    this.#dueSince = rows.length === 0 ? undefined : (this.#dueSince ?? performance.now());
    this.#executor.wake(
      rows.map(({ agent, instance_id, run_id }) =>
        run_id === null ? { agent: agent ?? "", instance_id: instance_id ?? "" } : { run_id },
      ),
      "found",
    );
  }

  async #turn(key: Owned, lost: AbortSignal): Promise<number | undefined> {
    const { ownership } = this.#base;
    const shard = shardOf(key);
    this.#calledAt = performance.now();
    this.#open.set(shard, (this.#open.get(shard) ?? 0) + 1);
    try {
      return await this.#untilDone(key, lost);
    } finally {
      const others = (this.#open.get(shard) ?? 1) - 1;
      if (others > 0) this.#open.set(shard, others);
      else this.#open.delete(shard);
      if (others === 0) ownership.forgo(shard);
    }
  }

  async #untilDone(key: Owned, lost: AbortSignal): Promise<number | undefined> {
    const { clock, ownership, draining } = this.#base;
    const shard = shardOf(key);
    const until = performance.now() + longestTurnMs;
    let wantAt = 0;
    for (let pause = firstLookMs; ; pause = Math.min(longestLookMs, pause * 2)) {
      lost.throwIfAborted();
      const { busy, at } = await this.#states.add(key);
      if (!busy) return at === null ? undefined : Math.max(0, at - clock.now());
      if (performance.now() > until) return 0;
      if (draining.aborted || this.#isFull(shard)) throw closing();
      if (performance.now() >= wantAt) {
        ownership.want([shard]);
        wantAt = performance.now() + wantMs;
      }
      await clock.sleep(pause, lost);
    }
  }

  /** A node without a free slot leaves what is not its own to others. */
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
    message: `${name} accepts the calls for work, but does not call this node: work waits.`,
    hint: `Check in ${name} what happens to the calls, that the registered address leads to the nodes, and that no other cluster has registered an object with the same name.`,
  });
}

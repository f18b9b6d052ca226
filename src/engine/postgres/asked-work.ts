import type { Engine } from "../contract.ts";
import type { PostgresBase } from "./postgres-base.ts";
import { lockedShards } from "./shards.ts";

/**
 * An engine for a process that lives as long as a request: a function of a platform. It takes up the work that comes to it and the
 * shards of that alone, listens to no news, and holds nothing after its drain.
 */
export interface BriefEngine extends Engine {
  /** Takes up what is due in the whole database too, until the drain: runs whose time has come, inputs and schedules. */
  takeDue(): Promise<void>;
  /** Resolves once nothing of what was taken up is at work, or waits for a slot. What waits for a time or a decision is at rest. */
  atRest(): Promise<void>;
}

export interface AskedWorkOptions {
  /** Starts the runs of schedules that are due. */
  startScheduled(): Promise<void>;
  /** Removes what has ended long ago. */
  prune(): Promise<void>;
  /** Whether queued work is being looked for in the rows. */
  isLooking(): boolean;
}

/** Between two polls for what is due. */
export const pollMs = 250;
/** Between two polls whether everything is at rest. */
const restPollMs = 25;

/**
 * Takes up work for a node without a share: what comes to the node, as long as it lives, and, once it is told so, all that is due in
 * the database and that no other node holds.
 */
export class AskedWork implements Pick<BriefEngine, "takeDue" | "atRest"> {
  readonly #base: PostgresBase;
  readonly #options: AskedWorkOptions;
  #takesAll = false;

  constructor(base: PostgresBase, options: AskedWorkOptions) {
    this.#base = base;
    this.#options = options;
  }

  get takesAll(): boolean {
    return this.#takesAll;
  }

  async takeDue(): Promise<void> {
    const { ownership, clock } = this.#base;
    this.#takesAll = true;
    // The node that holds the first shard does what the whole database needs.
    ownership.want([0]);
    await ownership.turnNow();
    // A node that was found to be silent loses its shards a moment later.
    await clock.sleep(pollMs);
    await this.poll();
    await this.#options.startScheduled();
    await this.#options.prune();
  }

  async atRest(): Promise<void> {
    const { draining, clock } = this.#base;
    // Work that has ended may have led to other work, which is found a moment later.
    for (let quietPolls = 0; quietPolls < 2 && !draining.aborted; ) {
      quietPolls = this.#isBusy() ? 0 : quietPolls + 1;
      await clock.sleep(restPollMs);
    }
  }

  /** Asks for the shards in which something is due that no node holds, as many as there are free slots. */
  async poll(): Promise<void> {
    const { database, ownership, clock, queue, draining } = this.#base;
    const known = this.#takesAll ? null : ownership.known;
    if (known?.length === 0 || draining.aborted) return;
    const rows = await database.rows<{ readonly shard: number }>(
      `SELECT shard FROM (
         SELECT shard, accepted_at AS since FROM $s.dispatches
           WHERE ended_at IS NULL AND (status = 'running' OR coalesce(next_attempt_at, 0) <= $1)
         UNION ALL
         SELECT shard, coalesce(wake_at, accepted_at) AS since FROM $s.runs
           WHERE status IN ('queued', 'running') OR (status = 'waiting' AND wake_at <= $1)
       ) AS due
       WHERE ($2::int[] IS NULL OR shard = ANY($2)) AND shard NOT IN (${lockedShards("$3")})
       GROUP BY shard ORDER BY min(since) LIMIT $4`,
      [clock.now(), known, ownership.lockSpace, Math.max(0, queue.free)],
    );
    ownership.want(rows.map(({ shard }) => shard));
  }

  #isBusy(): boolean {
    const { ownership, queue } = this.#base;
    return ownership.isTaking || this.#options.isLooking() || !queue.isAtRest;
  }
}

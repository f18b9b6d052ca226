import type { Engine } from "../contract.ts";
import type { PostgresBase } from "./postgres-base.ts";
import { lockedShards, lockSpaceOf } from "./shards.ts";

/**
 * An engine for a process that lives as long as a request: a serverless function. It takes only the shards of the work that
 * comes to it, does not listen to news, and holds nothing after its drain.
 */
export interface BriefEngine extends Engine {
  /** Until the drain, also takes all due work of the database: inputs, runs and schedules. */
  takeDue(): Promise<void>;
  /** Resolves once none of the taken work runs or waits for a slot. Work that waits for a time or a decision is at rest. */
  atRest(): Promise<void>;
}

export interface AskedWorkOptions {
  /** Queues the runs that wait because of their code. */
  resumeHeld(): Promise<void>;
  /** Starts the runs of due schedules. */
  startScheduled(): Promise<void>;
  /** Removes work that ended before the retention period. */
  prune(): Promise<void>;
  /** Whether a query for queued work is running. */
  isPolling(): boolean;
}

/** The pause between two polls for due work. */
export const pollMs = 250;
/** The pause between two checks whether all work is at rest. */
const restPollMs = 25;

/**
 * Takes work for a node without a share of the shards: the work that comes to the node and, after `takeDue`, all due work
 * in the database that no other node holds.
 */
export class AskedWork implements Pick<BriefEngine, "takeDue" | "atRest"> {
  readonly #base: PostgresBase;
  readonly #options: AskedWorkOptions;
  takesAll = false;
  #hasResumed = false;

  constructor(base: PostgresBase, options: AskedWorkOptions) {
    this.#base = base;
    this.#options = options;
  }

  async takeDue(): Promise<void> {
    const { ownership, clock } = this.#base;
    this.takesAll = true;
    // The node that holds shard 0 does the chores of the whole database.
    ownership.want([0]);
    await ownership.beatNow();
    // A silent node loses its shards a moment after it was detected.
    await clock.sleep(pollMs);
    // No process takes over a shard whose runs only wait, and the code of this one may be right.
    if (!this.#hasResumed) await this.#options.resumeHeld();
    this.#hasResumed = true;
    await this.poll();
    await this.#options.startScheduled();
    await this.#options.prune();
  }

  async atRest(): Promise<void> {
    const { draining, clock } = this.#base;
    for (let quietPolls = 0; quietPolls < 2 && !draining.aborted; ) {
      // Ended work has freed slots for other due work, and can have caused some.
      if (!this.#isBusy()) await this.poll().catch(() => undefined);
      quietPolls = this.#isBusy() ? 0 : quietPolls + 1;
      await clock.sleep(restPollMs);
    }
  }

  /** Requests the unowned shards with due work, as many as there are free slots. */
  async poll(): Promise<void> {
    const { database, ownership, clock, queue, draining } = this.#base;
    const requested = this.takesAll ? null : ownership.everRequested;
    if (requested?.length === 0 || draining.aborted) return;
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
      [clock.now(), requested, lockSpaceOf(database), Math.max(0, queue.free)],
    );
    ownership.want(rows.map(({ shard }) => shard));
  }

  #isBusy(): boolean {
    const { ownership, queue } = this.#base;
    return ownership.isTaking || this.#options.isPolling() || !queue.isAtRest;
  }
}

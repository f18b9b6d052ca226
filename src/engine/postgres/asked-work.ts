import type { PostgresBase } from "./postgres-base.ts";

/** Between two looks for what is due. */
export const lookMs = 250;

/**
 * What a node without a share takes up: the work that comes to it, as long as it lives, and, once it is told so, whatever is due in the
 * database and no other node holds.
 */
export class AskedWork {
  readonly #base: PostgresBase;
  #takesAll = false;

  constructor(base: PostgresBase) {
    this.#base = base;
  }

  get takesAll(): boolean {
    return this.#takesAll;
  }

  /** From now on the node takes up what is due, whoever has accepted it. */
  async takeAll(): Promise<void> {
    const { ownership } = this.#base;
    this.#takesAll = true;
    await ownership.look();
    // A node that was found to be silent loses its shards a moment later.
    await this.#base.clock.sleep(lookMs);
    await this.look();
  }

  /** Asks for the shards in which something is due that no node holds, as many as there are free slots. */
  async look(): Promise<void> {
    const { database, ownership, clock, queue, draining } = this.#base;
    const known = this.#takesAll ? null : ownership.known;
    if (known?.length === 0 || draining.aborted) return;
    const rows = await database.rows<{ readonly shard: number }>(
      `SELECT shard FROM (
         SELECT shard, accepted_at AS since FROM $s.dispatches
           WHERE status = 'running' OR (status = 'queued' AND coalesce(next_attempt_at, 0) <= $1)
         UNION ALL
         SELECT shard, coalesce(wake_at, accepted_at) AS since FROM $s.runs
           WHERE status IN ('queued', 'running') OR (status = 'waiting' AND wake_at <= $1)
       ) AS due
       WHERE ($2::int[] IS NULL OR shard = ANY($2)) AND shard NOT IN (${ownership.lockedShards("$3")})
       GROUP BY shard ORDER BY min(since) LIMIT $4`,
      [clock.now(), known, ownership.lockSpace, Math.max(0, queue.free)],
    );
    ownership.want(rows.map(({ shard }) => shard));
  }
}

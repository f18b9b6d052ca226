import { shardCount } from "./shards.ts";

/** How often a node looks into the rows for what news tell: work and ends. */
export const sweepMs = 250;
/** The same while news arrive: only lost ones are found late. */
const quietSweepMs = 2_500;
/** How often a node with less than its share looks for free shards although no node has come or gone. */
const freeShardsMs = 2_000;

/** Returns a function that tells whether the next sweep is due. */
export function sweepPace(): (isQuiet: boolean) => boolean {
  let sweptAt = Number.NEGATIVE_INFINITY;
  return (isQuiet) => {
    if (isQuiet && performance.now() - sweptAt < quietSweepMs) return false;
    sweptAt = performance.now();
    return true;
  };
}

/**
 * The searches of a node for free shards. If the shards are no multiple of the nodes, some nodes have one less than their share, and
 * look only now and then.
 */
export class FreeShardSearch {
  #others = -1;
  #searchedAt = Number.NEGATIVE_INFINITY;

  /** Whether a node with so many shards and so many other nodes looks for more. */
  isDue(owned: number, others: number): boolean {
    const now = performance.now();
    const isShort = owned < Math.floor(shardCount / (others + 1));
    if (!isShort && others === this.#others && now - this.#searchedAt < freeShardsMs) return false;
    this.#others = others;
    this.#searchedAt = now;
    return true;
  }

  /** Makes the next search due. */
  hurry(): void {
    this.#searchedAt = Number.NEGATIVE_INFINITY;
  }
}

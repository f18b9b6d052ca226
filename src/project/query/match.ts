import type { BlockClass } from "../store/block-class.ts";

/** The page of a match, and the counts of all of it. */
export interface Match {
  readonly keys: readonly number[];
  readonly counts: MatchCounts;
  readonly nextCursor?: string;
}

export interface MatchCounts {
  readonly total: number;
  readonly byFramework: Readonly<Record<string, number>>;
}

/** Adds up the blocks of a match, given per class. */
export function toCounts(
  perClass: Iterable<readonly [classId: number, blocks: number]>,
  classes: ReadonlyMap<number, BlockClass>,
): MatchCounts {
  const byFramework: Record<string, number> = {};
  let total = 0;
  for (const [id, blocks] of perClass) {
    const framework = classes.get(id)?.framework;
    if (blocks === 0 || framework === undefined) continue;
    byFramework[framework] = (byFramework[framework] ?? 0) + blocks;
    total += blocks;
  }
  return { total, byFramework: Object.fromEntries(Object.entries(byFramework).sort()) };
}

import { classOf } from "../index/block-key.ts";

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
export function toCounts(perClass: Iterable<readonly [classCode: number, blocks: number]>): MatchCounts {
  const byFramework: Record<string, number> = {};
  let total = 0;
  for (const [code, blocks] of perClass) {
    if (blocks === 0) continue;
    const { framework } = classOf(code);
    byFramework[framework] = (byFramework[framework] ?? 0) + blocks;
    total += blocks;
  }
  return { total, byFramework: Object.fromEntries(Object.entries(byFramework).sort()) };
}

import { firstNumberOf, idKinds } from "./block-id.ts";
import type { BlockEntry } from "./file-entry.ts";

/** Numbers the blocks of a whole project, given in path, then position order. */
export interface BlockNumbering {
  next(block: BlockEntry): number;
  /**
   * Bases whose numbers are not right yet, because another file declares the base or has X-3 as its
   * own; they can only be told when all blocks are known.
   */
  unsettled(): string[];
}

export function createBlockNumbering(): BlockNumbering {
  const wished = new Map<string, number>();
  const sequences = new Map<string, number>();
  const declared = new Set<string>();
  return {
    next({ kind, base }) {
      if (kind === idKinds.declared) {
        declared.add(base);
        return firstNumberOf(kind);
      }
      const counts = kind === idKinds.sequence ? sequences : wished;
      const n = counts.get(base) ?? firstNumberOf(kind);
      counts.set(base, n + 1);
      return n;
    },
    unsettled() {
      const bases = new Set<string>();
      for (const base of declared) if (wished.has(base)) bases.add(base);
      for (const base of [...wished.keys(), ...declared]) {
        const parent = parentBaseOf(base);
        if (parent !== undefined && wished.has(parent)) bases.add(parent);
      }
      return [...bases];
    },
  };
}

/** X for X-3: a base that may want to give out the same id. */
export function parentBaseOf(base: string): string | undefined {
  const hyphen = base.lastIndexOf("-");
  return hyphen > 0 && /^[1-9]\d*$/.test(base.slice(hyphen + 1)) ? base.slice(0, hyphen) : undefined;
}

import { idKinds } from "./block-id.ts";
import { parentBaseOf } from "./block-numbering.ts";
import type { IndexDatabase } from "./index-database.ts";

/**
 * Bases whose numbering may differ once blocks of the given bases came or went: they themselves, and
 * X for a base X-3, because X-3 is taken while it is somebody's base.
 */
export function basesToNumber(touched: Iterable<string>): Set<string> {
  const bases = new Set<string>();
  for (const base of touched) {
    bases.add(base);
    const parent = parentBaseOf(base);
    if (parent !== undefined) bases.add(parent);
  }
  return bases;
}

/**
 * Numbers the blocks of a base, in path, then position order, as `assignIds` does for a whole
 * project; a property test holds the two together. Writes only what differs.
 *
 * @see specs/assign-ids.ts
 */
export function numberBlocks(database: IndexDatabase, base: string): void {
  const blocks = database.all<[key: number, kind: number, n: number]>(
    `SELECT b.key, b.kind, b.n FROM blocks b JOIN files f ON f.id = b.file
     WHERE b.base = ? ORDER BY f.path, b.position`,
    base,
  );
  let sequence = 0;
  // A declared id is nobody else's: the first block that only wished for it counts from 2.
  let last = blocks.some(([, kind]) => kind === idKinds.declared) ? 1 : 0;
  for (const [key, kind, n] of blocks) {
    let number = 1;
    if (kind === idKinds.sequence) {
      number = sequence;
      sequence += 1;
    } else if (kind === idKinds.base) {
      last += 1;
      while (last > 1 && isTaken(database, `${base}-${last}`)) last += 1;
      number = last;
    }
    if (number !== n) database.run("UPDATE blocks SET n = ? WHERE key = ?", number, key);
  }
}

function isTaken(database: IndexDatabase, id: string): boolean {
  return database.get("SELECT 1 FROM blocks WHERE base = ? AND kind <> 1 LIMIT 1", id) !== undefined;
}

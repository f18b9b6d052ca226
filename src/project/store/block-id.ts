import type { DraftId } from "../../specs/adapter.ts";
import { numberGroup, parentBaseOf } from "../../specs/model/assign-ids.ts";
import type { Connection } from "../../sqlite/connection.ts";

export type IdKind = DraftId["kind"];

/** The base of a draft's id as stored: the wish, the prefix of the sequence, or the declared id. */
export function baseOf(id: DraftId): string {
  return id.kind === "sequence" ? id.prefix : id.value;
}

/** The number of a block that is alone with its base. */
export function firstNumberOf(kind: IdKind): number {
  return kind === "sequence" ? 0 : 1;
}

/**
 * Numbers the blocks whose ids may differ once blocks of the given bases came or went, in path, then
 * position order: those of the bases themselves, and of X for a base X-3. Writes only what differs.
 */
export function numberBlocks(database: Connection, touched: Iterable<string>): void {
  const bases = new Set<string>();
  for (const base of touched) {
    bases.add(base);
    const parent = parentBaseOf(base);
    if (parent !== undefined) bases.add(parent);
  }
  // Nearly all bases have one block, which has the first number already.
  const unsure = database.all<[string]>(
    `SELECT value FROM json_each(?) WHERE EXISTS (
       SELECT 1 FROM blocks WHERE base = value GROUP BY base
       HAVING count(*) > 1 OR max(n <> (id_kind <> 'sequence'))
     )`,
    JSON.stringify([...bases]),
  );
  for (const [base] of unsure) {
    const blocks = database.all<[key: number, kind: IdKind, n: number]>(
      `SELECT b.key, b.id_kind, b.n FROM blocks b JOIN files f ON f.id = b.file
       WHERE b.base = ? ORDER BY f.path, b.position`,
      base,
    );
    const isTaken = (id: string): boolean =>
      database.get("SELECT 1 FROM blocks WHERE base = ? AND id_kind <> 'sequence' LIMIT 1", id) !== undefined;
    const numbers = numberGroup(base, { kinds: blocks.map(([, kind]) => kind), isTaken });
    for (const [at, [key, , n]] of blocks.entries()) {
      if (numbers[at] !== n) database.run("UPDATE blocks SET n = ? WHERE key = ?", numbers[at] ?? n, key);
    }
  }
}

/** Keys of the blocks that have an id: one, or several where files declare the same one. */
export function keysOfId(database: Connection, id: string): number[] {
  const keys = database
    .all<[number]>(
      `SELECT b.key FROM blocks b JOIN files f ON f.id = b.file
       WHERE b.base = ? AND (b.id_kind = 'declared' OR (b.id_kind = 'base' AND b.n = 1)) ORDER BY f.path, b.position`,
      id,
    )
    .map(([key]) => key);
  if (keys.length > 0) return keys;
  const byNumber = "SELECT key FROM blocks WHERE base = ? AND id_kind = ? AND n = ?";
  const suffixed = /^(.+)-([1-9]\d{0,8})$/s.exec(id);
  if (suffixed?.[1] !== undefined && Number(suffixed[2]) > 1) {
    const found = database.get<[number]>(byNumber, suffixed[1], "base", Number(suffixed[2]));
    if (found !== undefined) return [found[0]];
  }
  // A prefix may itself end in digits, so every split of the trailing ones is tried.
  const digits = /\d{1,9}$/.exec(id)?.[0].length ?? 0;
  for (let length = digits; length > 0; length -= 1) {
    const number = id.slice(-length);
    if (length > 1 && number.startsWith("0")) continue;
    const found = database.get<[number]>(byNumber, id.slice(0, -length), "sequence", Number(number));
    if (found !== undefined) return [found[0]];
  }
  return [];
}

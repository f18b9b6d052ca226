import type { DraftId } from "../../specs/adapter.ts";
import type { IndexDatabase } from "./index-database.ts";

/** How the kinds of a `DraftId` are stored. */
export const idKinds = { base: 0, sequence: 1, declared: 2 } as const;

/** The base of a draft's id as stored: the wish, the prefix of the sequence, or the declared id. */
export function baseOf(id: DraftId): string {
  return id.kind === "sequence" ? id.prefix : id.value;
}

/** The number a block has until its base is numbered; right for a base that has one block. */
export function firstNumberOf(kind: number): number {
  return kind === idKinds.sequence ? 0 : 1;
}

/** The id that a kind, base and number stand for. */
export function toBlockId(kind: number, base: string, n: number): string {
  if (kind === idKinds.sequence) return `${base}${n}`;
  return kind === idKinds.base && n > 1 ? `${base}-${n}` : base;
}

/** Keys of the blocks that have an id: one, or several where files declare the same one. */
export function keysOfId(database: IndexDatabase, id: string): number[] {
  const keys = database
    .all<[number]>(
      `SELECT b.key FROM blocks b JOIN files f ON f.id = b.file
       WHERE b.base = ? AND (b.kind = 2 OR (b.kind = 0 AND b.n = 1)) ORDER BY f.path, b.position`,
      id,
    )
    .map(([key]) => key);
  if (keys.length > 0) return keys;
  const byNumber = "SELECT key FROM blocks WHERE base = ? AND kind = ? AND n = ?";
  const suffixed = /^(.+)-([1-9]\d{0,8})$/s.exec(id);
  if (suffixed?.[1] !== undefined && Number(suffixed[2]) > 1) {
    const found = database.get<[number]>(byNumber, suffixed[1], idKinds.base, Number(suffixed[2]));
    if (found !== undefined) return [found[0]];
  }
  // A prefix may itself end in digits, so every split of the trailing ones is tried.
  const digits = /\d{1,9}$/.exec(id)?.[0].length ?? 0;
  for (let length = digits; length > 0; length -= 1) {
    const number = id.slice(-length);
    if (length > 1 && number.startsWith("0")) continue;
    const found = database.get<[number]>(byNumber, id.slice(0, -length), idKinds.sequence, Number(number));
    if (found !== undefined) return [found[0]];
  }
  return [];
}

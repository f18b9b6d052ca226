/** Says that the index cannot be trusted. It never reaches a caller: the index is built anew. */
export class DamagedIndexError extends Error {
  override readonly name = "DamagedIndexError";
}

/** SQLite's codes for a file that is damaged or no database (SQLITE_CORRUPT, SQLITE_NOTADB). */
const damageCodes = new Set([11, 26]);

/** Whether an error means that the index is damaged, as opposed to busy, full or misused. */
export function isDamage(error: unknown): boolean {
  if (error instanceof DamagedIndexError) return true;
  if (!(error instanceof Error) || !("errcode" in error) || typeof error.errcode !== "number") return false;
  // Extended codes carry the primary one in their low byte. An SQL error (1) on statements that
  // are known to be right means that the schema is not what it says it is.
  const primary = error.errcode & 0xff;
  return damageCodes.has(primary) || primary === 1;
}

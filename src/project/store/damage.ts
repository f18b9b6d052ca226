import { resultCode, sqliteFault } from "../../sqlite/sqlite-fault.ts";

/** The index cannot be trusted. The error never reaches a caller: kit builds the index anew. */
export class DamagedIndexError extends Error {
  override readonly name = "DamagedIndexError";
}

/** Parses a value that the index keeps as JSON. Throws a `DamagedIndexError` for a text that is not JSON. */
export function parseStored<Value>(json: string): Value {
  try {
    return JSON.parse(json) as Value;
  } catch (cause) {
    throw new DamagedIndexError("A value of the index is not JSON.", { cause });
  }
}

/** Whether an error means that the index is damaged, as opposed to busy, full or misused. */
export function isDamage(error: unknown): boolean {
  if (error instanceof DamagedIndexError) return true;
  // SQLITE_ERROR: the statements are known to be right, so the file has another schema than its version says.
  return sqliteFault(error)?.isDamage === true || (resultCode(error) ?? 0) % 256 === 1;
}

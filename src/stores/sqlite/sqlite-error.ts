import { sqliteFault, storeDamaged, storeUnavailable } from "../../protocol/store-fault.ts";

/** Whether another process holds the file, which passes. */
export function isBusy(error: unknown): boolean {
  return sqliteFault(error)?.isBusy === true;
}

/** Whether SQLite could not read or write the file, and has said nothing about the values. */
export function isOfFile(error: unknown): boolean {
  return sqliteFault(error) !== undefined;
}

/** `store_unavailable`, with what SQLite said as its cause. What is no fault of the file stays as it is. */
export function toSqliteError(cause: unknown): unknown {
  const fault = sqliteFault(cause);
  if (fault === undefined) return cause;
  const store = "The session store";
  return fault.isDamage
    ? storeDamaged({ store, hint: "Put its file back from a backup.", cause })
    : storeUnavailable({
        store,
        reason: fault.reason,
        hint: "Look at the disk that the session store is on.",
        cause,
      });
}

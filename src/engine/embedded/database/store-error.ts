import { sqliteFault, storeDamaged, storeUnavailable } from "../../../protocol/store-fault.ts";

export function isBusy(error: unknown): boolean {
  return sqliteFault(error)?.isBusy === true;
}

/** Whether the store is at fault, so that the whole transaction is lost. */
export function isStoreError(error: unknown): boolean {
  return sqliteFault(error) !== undefined;
}

/** `store_unavailable`, with what SQLite said as its cause. What is no fault of the store stays as it is. */
export function toStoreError(cause: unknown): unknown {
  const fault = sqliteFault(cause);
  if (fault === undefined) return cause;
  const store = "The engine's store";
  return fault.isDamage
    ? storeDamaged({ store, hint: "Put engine.db of the engine's folder back from a backup.", cause })
    : storeUnavailable({
        store,
        reason: fault.reason,
        hint: "Look at the disk of the engine's folder. The engine goes on by itself once it can.",
        cause,
      });
}

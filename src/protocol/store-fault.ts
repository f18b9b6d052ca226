import { KitError } from "../base/kit-error.ts";

/** What SQLite says of a file, rather than of a statement. */
export interface SqliteFault {
  /** Goes behind "The store cannot be used:". */
  readonly reason: string;
  /** Another process holds the file. */
  readonly isBusy: boolean;
  /** The file itself is broken, which does not pass: it has to be repaired, or put back from a backup. */
  readonly isDamage: boolean;
}

/** Result codes (https://sqlite.org/rescode.html) of a file that cannot be used for now. */
const reasons: Readonly<Record<number, string>> = {
  5: "another process holds it",
  6: "another process holds it",
  8: "it is read-only",
  10: "reading or writing failed",
  13: "the disk is full",
  14: "it cannot be opened",
  15: "another process holds it",
};
/** SQLITE_IOERR_SHMSIZE: the index of the log did not get its room. Of a full disk all other writes say so themselves. */
const noRoomForIndex = 4874;
const damages: ReadonlySet<number | undefined> = new Set([11, 26]);

/** Undefined for what SQLite did not say, or said of a statement. */
export function sqliteFault(error: unknown): SqliteFault | undefined {
  if (!(error instanceof Error) || !("errcode" in error)) return undefined;
  const extended = Number(error.errcode);
  const code = extended === noRoomForIndex ? 13 : extended & 0xff;
  const isDamage = damages.has(code);
  const reason = isDamage ? "it is damaged" : reasons[code];
  return reason === undefined ? undefined : { reason, isDamage, isBusy: code === 5 || code === 6 };
}

/** What says that a store cannot be used for now. */
export interface StoreOutage {
  /** With what it is of: "The session store". */
  readonly store: string;
  readonly reason: string;
  readonly hint: string;
  readonly cause?: unknown;
}

/**
 * Of a store that cannot be used for now. Accepted work that meets it waits for as long as it lasts, and none of its
 * attempts is counted; this code is the only sign of it.
 */
export function storeUnavailable({ store, reason, hint, cause }: StoreOutage): KitError<"store_unavailable"> {
  return new KitError({
    code: "store_unavailable",
    message: `${store} cannot be used: ${reason}.`,
    hint,
    meta: { retry_after_s: 5 },
    ...(cause === undefined ? {} : { cause }),
  });
}

export function isStoreUnavailable(error: unknown): error is KitError {
  return error instanceof KitError && error.code === "store_unavailable";
}

/** Of a file that is broken: nothing passes by itself. */
export function storeDamaged({ store, hint, cause }: Omit<StoreOutage, "reason">): KitError<"unavailable"> {
  return new KitError({
    code: "unavailable",
    message: `${store} cannot be used: it is damaged.`,
    hint,
    ...(cause === undefined ? {} : { cause }),
  });
}

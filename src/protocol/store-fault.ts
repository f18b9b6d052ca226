import { isoTime } from "../base/clock.ts";
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
  /** Since when, in ms since 1970; default: now, when somebody notices. */
  readonly since?: number;
  readonly cause?: unknown;
}

/** What waits for a store asks it again within that time; callers are told the same. */
const retryAfterS = 5;

/**
 * Of a store that cannot be used for now. Accepted work that meets it waits for as long as it lasts, and none of its
 * attempts is counted; this code is the only sign of it. `meta` says which store, and since when.
 */
export function storeUnavailable({
  store,
  reason,
  hint,
  since,
  cause,
}: StoreOutage): KitError<"store_unavailable"> {
  return new KitError({
    code: "store_unavailable",
    message: `${store} cannot be used: ${reason}.`,
    hint,
    meta: { store, since: isoTime(since ?? Date.now()), retry_after_s: retryAfterS },
    ...(cause === undefined ? {} : { cause }),
  });
}

export function isStoreUnavailable(error: unknown): error is KitError {
  return error instanceof KitError && error.code === "store_unavailable";
}

/** Of a file that is broken: nothing passes by itself. */
function storeDamaged({ store, hint, cause }: Omit<StoreOutage, "reason">): KitError<"unavailable"> {
  return new KitError({
    code: "unavailable",
    message: `${store} cannot be used: it is damaged.`,
    hint,
    ...(cause === undefined ? {} : { cause }),
  });
}

/** Whether another process holds SQLite's file, which passes. */
export function isBusy(error: unknown): boolean {
  return sqliteFault(error)?.isBusy === true;
}

/** Whether SQLite could not read or write its file, so that a whole transaction is lost, and has said nothing about the values. */
export function isOfFile(error: unknown): boolean {
  return sqliteFault(error) !== undefined;
}

/** How people are told of a store in a file of SQLite. */
export interface SqliteStore {
  readonly store: string;
  /** What to look at while it cannot be used. */
  readonly hint: string;
  /** What to do where it is damaged. */
  readonly repair: string;
}

/** Tells of a store's faults, and since when it has them. */
export class StoreFaults {
  readonly #place: SqliteStore;
  #since: number | undefined;

  constructor(place: SqliteStore) {
    this.#place = place;
  }

  /** `store_unavailable` with what SQLite said as its cause, `unavailable` for damage; the error itself where it is no fault of the file. */
  toError(cause: unknown): unknown {
    const fault = sqliteFault(cause);
    if (fault === undefined) return cause;
    const { store, hint, repair } = this.#place;
    if (fault.isDamage) return storeDamaged({ store, hint: repair, cause });
    this.#since ??= Date.now();
    return storeUnavailable({ store, reason: fault.reason, hint, since: this.#since, cause });
  }

  /** It was written. */
  passed(): void {
    this.#since = undefined;
  }
}

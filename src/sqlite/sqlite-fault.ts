import { KitError } from "../base/kit-error.ts";
import { storeUnavailable } from "../protocol/store-fault.ts";

/** A fault that SQLite reports about its file, not about a statement. */
export interface SqliteFault {
  /** Completes "The store cannot be used: …". */
  readonly reason: string;
  /** Another process holds the file. */
  readonly isBusy: boolean;
  /** The file itself is broken: it has to be repaired, or restored from a backup. */
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
const damages: ReadonlySet<number> = new Set([11, 26]);
/** SQLITE_IOERR_SHMSIZE: the disk has no room for the index of the log. Other writes to a full disk report SQLITE_FULL. */
const noRoomForIndex = 4874;

/** SQLite's extended result code; undefined for an error that is not SQLite's. */
export function resultCode(error: unknown): number | undefined {
  return error instanceof Error && "errcode" in error ? Number(error.errcode) : undefined;
}

/** Undefined for an error that is not SQLite's, or is about a statement or a value. */
export function sqliteFault(error: unknown): SqliteFault | undefined {
  const extended = resultCode(error);
  if (extended === undefined) return undefined;
  const code = extended === noRoomForIndex ? 13 : extended & 0xff;
  const isDamage = damages.has(code);
  const reason = isDamage ? "it is damaged" : reasons[code];
  return reason === undefined ? undefined : { reason, isDamage, isBusy: code === 5 || code === 6 };
}

/** Whether another process holds the file: the caller may try again. */
export function isBusy(error: unknown): boolean {
  return sqliteFault(error)?.isBusy === true;
}

/** Whether SQLite could not read or write its file. The whole transaction is lost then, and its values may be right. */
export function isFileFault(error: unknown): boolean {
  return sqliteFault(error) !== undefined;
}

/** The words of errors about a store in a SQLite file. */
export interface StoreText {
  /** "The session store" */
  readonly store: string;
  /** Tells the user what to check while the store cannot be used. */
  readonly hint: string;
  /** Tells the user what to do if the file is damaged. */
  readonly repair: string;
}

/** Turns SQLite's errors into `KitError`s of one store, and remembers since when the store has been failing. */
export class StoreFaults {
  readonly #text: StoreText;
  #since: number | undefined;

  constructor(text: StoreText) {
    this.#text = text;
  }

  /** `unavailable` for damage, `store_unavailable` for another fault of the file; any other error as it is. */
  toError(cause: unknown): unknown {
    const fault = sqliteFault(cause);
    if (fault === undefined) return cause;
    const { store, hint, repair } = this.#text;
    if (fault.isDamage) {
      const message = `${store} cannot be used: it is damaged.`;
      return new KitError({ code: "unavailable", message, hint: repair, cause });
    }
    this.#since ??= Date.now();
    return storeUnavailable({ store, reason: fault.reason, hint, since: this.#since, cause });
  }

  /** Call after a successful write: the next fault starts a new outage. */
  passed(): void {
    this.#since = undefined;
  }
}

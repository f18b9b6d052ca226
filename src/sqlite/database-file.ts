import { constants, statSync } from "node:fs";
import { basename, dirname, resolve, sep } from "node:path";
import { KitError } from "../base/kit-error.ts";
import { accessObstacle, openObstacle, spaceObstacle } from "../files/obstacle.ts";
import { storeUnavailable } from "../protocol/error-code.ts";

/** The name of a database in messages, and its file. */
export interface DatabasePlace {
  /** "The session store" */
  readonly store: string;
  /** `undefined` or ":memory:" for a database in memory. */
  readonly file: string | undefined;
}

/** Detects that the file of an open database was deleted or replaced, or that its disk is gone. */
export class DatabaseFile {
  readonly #place: DatabasePlace;
  readonly #database: FileIdentity | undefined;
  /** SQLite creates the log with the first write, and keeps it while any process has the database open. */
  #log: FileIdentity | undefined;
  #checkedAt = Number.NEGATIVE_INFINITY;
  #missingSince: number | undefined;

  /** Create it once the database is open. */
  constructor(place: DatabasePlace) {
    this.#place = place;
    this.#database =
      place.file === undefined || place.file === ":memory:" ? undefined : identityOf(place.file);
    if (this.#database !== undefined) this.#log = identityOf(`${place.file}-wal`);
  }

  /**
   * Throws `store_unavailable` if the file is missing or replaced. Reads the file's identity (about 3 µs), unless it did so
   * within the last `everyMs`. If this throws after a write, the write may be lost with a deleted file.
   */
  check(everyMs = 0): void {
    if (this.#database === undefined) return;
    const now = performance.now();
    if (now - this.#checkedAt < everyMs) return;
    if (this.#isMissing()) throw this.#missingError();
    this.#missingSince = undefined;
    this.#checkedAt = now;
  }

  /** The error that `check` would throw. */
  problem(): KitError | undefined {
    return this.#database !== undefined && this.#isMissing() ? this.#missingError() : undefined;
  }

  #isMissing(): boolean {
    const { file } = this.#place;
    if (!isSame(this.#database, identityOf(String(file)))) return true;
    const log = identityOf(`${file}-wal`);
    this.#log ??= log;
    return !isSame(this.#log, log);
  }

  #missingError(): KitError {
    const { store, file } = this.#place;
    this.#missingSince ??= Date.now();
    return storeUnavailable({
      store,
      since: this.#missingSince,
      reason:
        "its file was deleted, moved or replaced while kit used it. Restore the file, or restart kit, which then uses the file at this path",
      hint: `Check ${nearby(String(file))}.`,
    });
  }
}

interface FileIdentity {
  readonly dev: number;
  readonly ino: number;
}

function identityOf(file: string): FileIdentity | undefined {
  // An unreadable folder counts as a missing file.
  try {
    return statSync(file, { throwIfNoEntry: false });
  } catch {
    return undefined;
  }
}

function isSame(one: FileIdentity | undefined, other: FileIdentity | undefined): boolean {
  return one?.ino === other?.ino && one?.dev === other?.dev;
}

/** A path relative to the project's folder: the parent folders can contain the name of the user or the machine. */
export function nearby(file: string): string {
  const parts = resolve(file).split(sep);
  const state = parts.lastIndexOf(".kit");
  return parts.slice(state === -1 ? -2 : state).join("/");
}

/** The age from which an empty file is not one that another process is creating now. */
const creationMs = 10_000;

/** Throws `unavailable` for a file of 0 bytes, which SQLite would treat as a new database. */
export function refuseEmptyDatabase({ store, file }: DatabasePlace): void {
  if (file === undefined || file === ":memory:") return;
  const found = statSync(file, { throwIfNoEntry: false });
  if (found === undefined || !found.isFile() || found.size > 0) return;
  if (Date.now() - found.mtimeMs < creationMs) return;
  if (identityOf(`${file}-journal`) !== undefined || identityOf(`${file}-wal`) !== undefined) return;
  throw new KitError({
    code: "unavailable",
    message: `${store} is empty: ${nearby(file)} has 0 bytes, so its content is lost.`,
    hint: "Restore it from a backup, or remove the file to start with an empty store.",
  });
}

/**
 * The error for a database that could not be opened: `unavailable` only where SQLite reports damage, else
 * `store_unavailable` with the obstacle.
 */
export function databaseOpenError({ store, file }: DatabasePlace, cause: unknown): KitError {
  if (cause instanceof KitError) return cause;
  const name = file === undefined ? "its file" : nearby(file);
  if (sqliteFault(cause)?.isDamage === true) {
    return new KitError({
      code: "unavailable",
      message: `${store} cannot be opened: ${name} is damaged, or is not a file of kit.`,
      hint: "Restore it from a backup, or move it away to start with an empty store.",
      cause,
    });
  }
  const reason = (file === undefined ? undefined : obstacleOf(file)) ?? sqliteFault(cause)?.reason;
  return storeUnavailable({
    store: file === undefined ? store : `${store} (${name})`,
    reason: reason ?? "it cannot be opened",
    hint: `Fix this, and start kit again. The content of ${name} is intact: do not move or delete it.`,
    cause,
  });
}

/**
 * Describes why a database cannot be opened, as far as the system reports it. It does not open the database, because
 * closing it again would release the locks that this process holds on it.
 */
function obstacleOf(file: string): string | undefined {
  const shortage = openObstacle();
  if (shortage !== undefined) return shortage;
  const found = statSync(file, { throwIfNoEntry: false });
  if (found?.isDirectory() === true) return "a folder is where its file should be";
  const folder = dirname(file);
  const rights = constants.R_OK | constants.W_OK;
  const ofFolder = accessObstacle(folder, rights | constants.X_OK, `the folder ${basename(folder)}`);
  if (ofFolder !== undefined) return ofFolder;
  for (const part of [file, `${file}-wal`, `${file}-shm`, `${file}-journal`]) {
    if (identityOf(part) === undefined) continue;
    const ofPart = accessObstacle(part, rights, `the file ${basename(part)}`);
    if (ofPart !== undefined) return ofPart;
  }
  return spaceObstacle(folder);
}

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

/**
 * Repeats work while another process holds the file, for at most `maxMs`; blocks the thread meanwhile. For the creation of a
 * database: SQLite does not wait for the lock that a change of the journal mode needs.
 */
export function retryWhileBusy<Value>(work: () => Value, maxMs: number): Value {
  const start = performance.now();
  for (;;) {
    try {
      return work();
    } catch (error) {
      if (!isBusy(error) || performance.now() - start > maxMs) throw error;
    }
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 10);
  }
}

/** Whether SQLite could not read or write its file: then the whole transaction is lost, whatever its statements. */
export function isFileFault(error: unknown): boolean {
  return sqliteFault(error) !== undefined;
}

/** The texts of errors about a store in a SQLite file. */
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

  /** Converts damage to `unavailable` and other faults of the file to `store_unavailable`; returns any other error unchanged. */
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

/** How long a write waits for another process's lock. */
const maxWaitMs = 5_000;
const retryMs = 10;

interface WaitingWrite {
  readonly write: () => void;
  readonly since: number;
  readonly resolve: () => void;
  readonly reject: (reason: unknown) => void;
}

/**
 * Queues writes while another process has locked the file, without blocking this process. Throws or rejects with
 * `unavailable` if the file cannot be written.
 */
export class LockedWrites {
  readonly #waiting: WaitingWrite[] = [];
  readonly #faults: StoreFaults;

  constructor(faults: StoreFaults) {
    this.#faults = faults;
  }

  /** Usually writes at once and returns nothing; returns a promise if the write has to wait. */
  run(write: () => void): void | Promise<void> {
    if (this.#waiting.length === 0 && this.#tryWrite(write)) return;
    return new Promise((resolve, reject) => {
      this.#waiting.push({ write, since: performance.now(), resolve, reject });
      if (this.#waiting.length === 1) setTimeout(() => this.#retry(), retryMs);
    });
  }

  /** Runs waiting writes until one finds the file still locked. */
  #retry(): void {
    for (const next of [...this.#waiting]) {
      try {
        const { write, since } = next;
        if (this.#tryWrite(write, performance.now() - since < maxWaitMs)) next.resolve();
        else break;
      } catch (error) {
        next.reject(error);
      }
      this.#waiting.shift();
    }
    if (this.#waiting.length > 0) setTimeout(() => this.#retry(), retryMs);
  }

  /** Returns false if the file is locked and the write can be retried. */
  #tryWrite(write: () => void, mayWait = true): boolean {
    try {
      write();
      this.#faults.passed();
      return true;
    } catch (error) {
      if (mayWait && isBusy(error)) return false;
      throw this.#faults.toError(error);
    }
  }
}

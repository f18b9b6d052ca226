import { accessSync, closeSync, constants, openSync, statfsSync, statSync } from "node:fs";
import { basename, dirname } from "node:path";
import { KitError } from "../base/kit-error.ts";
import { sqliteFault, storeUnavailable } from "../protocol/store-fault.ts";

/** Which database: how people are told of it, and where it lies. */
export interface DatabasePlace {
  /** "The session store" */
  readonly store: string;
  /** Undefined, or ":memory:", for one that is in no file. */
  readonly file: string | undefined;
}

/** Notices that the file of an open database is not where it was any more: deleted, replaced, or on a disk that went. */
export class DatabaseFile {
  readonly #place: DatabasePlace;
  readonly #database: FileIdentity | undefined;
  /** SQLite makes it with the first write, and keeps it while any process has the database open. */
  #log: FileIdentity | undefined;
  #lookedAt = Number.NEGATIVE_INFINITY;

  /** To be made once the database is open. */
  constructor(place: DatabasePlace) {
    this.#place = place;
    this.#database =
      place.file === undefined || place.file === ":memory:" ? undefined : identityOf(place.file);
    if (this.#database !== undefined) this.#log = identityOf(`${place.file}-wal`);
  }

  /**
   * Throws `store_unavailable` where it is gone; looks at the disk (some 3 µs each) unless that was done within
   * `everyMs`. What a write throws may have been written to a file that nobody finds again.
   */
  check(everyMs = 0): void {
    if (this.#database === undefined) return;
    const now = performance.now();
    if (now - this.#lookedAt < everyMs) return;
    if (this.#isGone()) throw this.#gone();
    this.#lookedAt = now;
  }

  /** What `check` would throw. */
  problem(): KitError | undefined {
    return this.#database !== undefined && this.#isGone() ? this.#gone() : undefined;
  }

  #isGone(): boolean {
    const { file } = this.#place;
    if (!isSame(this.#database, identityOf(String(file)))) return true;
    const log = identityOf(`${file}-wal`);
    this.#log ??= log;
    return !isSame(this.#log, log);
  }

  #gone(): KitError {
    const { store, file } = this.#place;
    return storeUnavailable({
      store,
      reason:
        "its file was deleted, moved or replaced while kit used it. Put it back as it was, or restart kit, which begins with what is there then",
      hint: `Look at ${basename(String(file))} in the folder ${basename(dirname(String(file)))}.`,
    });
  }
}

interface FileIdentity {
  readonly dev: number;
  readonly ino: number;
}

function identityOf(file: string): FileIdentity | undefined {
  try {
    return statSync(file, { throwIfNoEntry: false });
  } catch {
    // Its folder may be read by nobody any more: it cannot be found there.
    return undefined;
  }
}

function isSame(one: FileIdentity | undefined, other: FileIdentity | undefined): boolean {
  return one?.ino === other?.ino && one?.dev === other?.dev;
}

/** A file that was made this long ago is not just being made by another process. */
const makingMs = 10_000;

/** Throws `unavailable` for a database without a single byte, which SQLite would take for a new one. */
export function refuseEmptyDatabase({ store, file }: DatabasePlace): void {
  if (file === undefined || file === ":memory:") return;
  const found = statSync(file, { throwIfNoEntry: false });
  if (found === undefined || !found.isFile() || found.size > 0) return;
  if (Date.now() - found.mtimeMs < makingMs) return;
  if (identityOf(`${file}-journal`) !== undefined || identityOf(`${file}-wal`) !== undefined) return;
  throw new KitError({
    code: "unavailable",
    message: `${store} is empty: ${basename(file)} has 0 bytes, and whatever it held is not in it.`,
    hint: "Put it back from a backup, or remove the file to begin afresh.",
  });
}

/**
 * The error for a database that could not be opened: `unavailable` for one that is damaged, which nothing else is
 * called, else `store_unavailable` with what keeps it from being opened.
 */
export function databaseOpenError({ store, file }: DatabasePlace, cause: unknown): KitError {
  if (cause instanceof KitError) return cause;
  const name = file === undefined ? "its file" : basename(file);
  if (sqliteFault(cause)?.isDamage === true) {
    return new KitError({
      code: "unavailable",
      message: `${store} cannot be opened: ${name} is damaged, or another program's.`,
      hint: "Put it back from a backup, or move it away to start afresh.",
      cause,
    });
  }
  const reason = (file === undefined ? undefined : obstacleOf(file)) ?? sqliteFault(cause)?.reason;
  return storeUnavailable({
    store,
    reason: reason ?? "it cannot be opened",
    hint: `Nothing is wrong with what is in ${name}: leave it where it is.`,
    cause,
  });
}

/**
 * What keeps a database from being opened, as far as the system tells. The database itself is not opened for it:
 * closing it again would take away the locks that this process has on it.
 */
function obstacleOf(file: string): string | undefined {
  const folder = dirname(file);
  try {
    closeSync(openSync(process.execPath, "r"));
  } catch (error) {
    const code = codeOf(error);
    if (code === "EMFILE") return "this process has too many files open; raise its limit (ulimit -n)";
    if (code === "ENFILE") return "this machine has too many files open";
  }
  const found = statSync(file, { throwIfNoEntry: false });
  if (found?.isDirectory() === true) return "a folder is where its file should be";
  const rights = constants.R_OK | constants.W_OK;
  const fault = accessFault(folder, rights | constants.X_OK, `the folder ${basename(folder)}`);
  if (fault !== undefined) return fault;
  if (found !== undefined) {
    const ofFile = accessFault(file, rights, `the file ${basename(file)}`);
    if (ofFile !== undefined) return ofFile;
  }
  for (const beside of [`${file}-wal`, `${file}-shm`, `${file}-journal`]) {
    if (identityOf(beside) === undefined) continue;
    const ofBeside = accessFault(beside, rights, `the file ${basename(beside)}`);
    if (ofBeside !== undefined) return ofBeside;
  }
  return isFull(folder) ? "the disk is full" : undefined;
}

function accessFault(path: string, mode: number, what: string): string | undefined {
  try {
    accessSync(path, mode);
    return undefined;
  } catch (error) {
    const code = codeOf(error);
    if (code === "EROFS") return "its disk is read-only";
    if (code === "EACCES" || code === "EPERM") return `${what} belongs to another user, or is read-only`;
    if (code === "ENOENT") return `${what} is not there`;
    return code === "ENOTDIR" ? "a file is where its folder should be" : undefined;
  }
}

function isFull(folder: string): boolean {
  try {
    const { bavail, files, ffree } = statfsSync(folder);
    return bavail === 0 || (files > 0 && ffree === 0);
  } catch {
    return false;
  }
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && "code" in error ? error.code : undefined;
}

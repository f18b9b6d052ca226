import { accessSync, closeSync, constants, openSync, statfsSync, statSync } from "node:fs";
import { basename, dirname, resolve, sep } from "node:path";
import { KitError } from "../base/kit-error.ts";
import { sqliteFault, storeUnavailable } from "../protocol/store-fault.ts";

/** Which database: how people are told of it, and where it lies. */
export interface DatabasePlace {
  /** "The session store" */
  readonly store: string;
  /** Undefined, or ":memory:", for one that is in no file. */
  readonly file: string | undefined;
}

/** Notices that the file of an open database was deleted or replaced, or that its disk is gone. */
export class DatabaseFile {
  readonly #place: DatabasePlace;
  readonly #database: FileIdentity | undefined;
  /** SQLite makes it with the first write, and keeps it while any process has the database open. */
  #log: FileIdentity | undefined;
  #lookedAt = Number.NEGATIVE_INFINITY;
  #goneSince: number | undefined;

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
    this.#goneSince = undefined;
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
    this.#goneSince ??= Date.now();
    return storeUnavailable({
      store,
      since: this.#goneSince,
      reason:
        "its file was deleted, moved or replaced while kit used it. Put it back as it was, or restart kit, which begins with what is there then",
      hint: `Look at ${nearby(String(file))}.`,
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

/** A path as people of the project know it: what is above may say whose machine this is. */
function nearby(file: string): string {
  const parts = resolve(file).split(sep);
  const state = parts.lastIndexOf(".kit");
  return parts.slice(state === -1 ? -2 : state).join("/");
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
    message: `${store} is empty: ${nearby(file)} has 0 bytes, and whatever it held is not in it.`,
    hint: "Put it back from a backup, or remove the file to begin afresh.",
  });
}

/**
 * The error for a database that could not be opened: `unavailable` for one that is damaged, which nothing else is
 * called, else `store_unavailable` with what keeps it from being opened.
 */
export function databaseOpenError({ store, file }: DatabasePlace, cause: unknown): KitError {
  if (cause instanceof KitError) return cause;
  const name = file === undefined ? "its file" : nearby(file);
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
    store: file === undefined ? store : `${store} (${name})`,
    reason: reason ?? "it cannot be opened",
    hint: `Mend that, and start kit again. Nothing is wrong with what is in ${name}: leave it where it is.`,
    cause,
  });
}

/**
 * What keeps a database from being opened, as far as the system tells. The database itself is not opened for it:
 * closing it again would take away the locks that this process has on it.
 */
function obstacleOf(file: string): string | undefined {
  const folder = dirname(file);
  const shortage = openObstacle();
  if (shortage !== undefined) return shortage;
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
  return isFull(folder) ? systemReasons.ENOSPC : undefined;
}

/** What keeps this process from opening as many files as a database takes. */
export function openObstacle(): string | undefined {
  const opened: number[] = [];
  try {
    for (let count = 0; count < filesOfDatabase; count += 1) opened.push(openSync(process.execPath, "r"));
    return undefined;
  } catch (error) {
    return isShortage(error) ? systemObstacle(error) : undefined;
  } finally {
    for (const file of opened) closeSync(file);
  }
}

/** The database, its log, the log's index, and one to spare. */
const filesOfDatabase = 4;

/** Whether an error of the system says that no more files can be opened. */
export function isShortage(error: unknown): boolean {
  return codeOf(error) === "EMFILE" || codeOf(error) === "ENFILE";
}

/** What keeps kit from making files in a folder, or from making that folder; undefined where nothing does, as far as the system tells. */
export function writeObstacle(folder: string): string | undefined {
  try {
    const found = statSync(folder, { throwIfNoEntry: false });
    if (found !== undefined && !found.isDirectory()) return "a file is where the folder should be";
    const existing = found === undefined ? dirname(folder) : folder;
    accessSync(existing, constants.W_OK | constants.X_OK);
    return isFull(existing) ? systemReasons.ENOSPC : undefined;
  } catch (error) {
    return systemObstacle(error) ?? "it cannot be looked at";
  }
}

/** What an error of the system says of the place; undefined for any other error. */
export function systemObstacle(error: unknown): string | undefined {
  const code = codeOf(error);
  return typeof code === "string" && Object.hasOwn(systemReasons, code) ? systemReasons[code] : undefined;
}

const systemReasons: Readonly<Record<string, string>> = {
  EACCES: "it belongs to another user, or is read-only",
  EDQUOT: "its owner has used up what the disk grants",
  EEXIST: "a file is where the folder should be",
  EIO: "reading or writing failed",
  ELOOP: "links on the way to it lead to each other",
  EMFILE: "this process has too many files open; raise its limit (ulimit -n)",
  ENFILE: "this machine has too many files open",
  ENAMETOOLONG: "its name is too long",
  ENOSPC: "the disk is full",
  ENOTDIR: "a file is where the folder should be",
  EPERM: "it belongs to another user, or is read-only",
  EROFS: "its disk is read-only",
};

function accessFault(path: string, mode: number, what: string): string | undefined {
  try {
    accessSync(path, mode);
    return undefined;
  } catch (error) {
    const code = codeOf(error);
    if (code === "EACCES" || code === "EPERM") return `${what} belongs to another user, or is read-only`;
    return code === "ENOENT" ? `${what} is not there` : systemObstacle(error);
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

import {
  accessSync,
  constants,
  lstatSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { KitError } from "../../base/kit-error.ts";
import { isLinkOut } from "../../files/find-place.ts";
import { openObstacle, systemObstacle, writeObstacle } from "../../files/obstacle.ts";
import { makeFolderSync } from "../../files/replace-file.ts";
import { resultCode, retryWhileBusy, sqliteFault } from "../../sqlite/database-file.ts";
import type { Database, SqlInput } from "../../sqlite/statements.ts";
import { Connection } from "../../sqlite/statements.ts";
import { exclusively } from "./exclusively.ts";

/** Marks a database as an index of kit: "kit1" in ASCII. */
const applicationId = 0x6b697431;

/** Raise it with every change of the tables or of what adapters make of a file. */
const schemaVersion = 7;

/**
 * Tables of the index. Everything in it can be made again from the files of the project. Lists and records
 * are JSON; an empty list is "".
 *
 * - `folders`: the folders as the last pass saw them (`Folder`).
 * - `links`: links inside the root (`scan/source-catalog.ts`).
 * - `files`: sources; `aliases` are their other names.
 * - `classes`: the combinations of framework, type, lifecycle and priority, and how many blocks each has.
 * - `blocks`: `key` is the class and a running number (`block-row.ts`); the id follows from `id_kind`,
 *   `base` and `n` (`block-row.ts`).
 * - `refs`: the files, blocks and aliases that blocks name (`block-row.ts`).
 * - `features`: the files that hold documents of a feature.
 * - `dates`: first and last commit of a file, in seconds since 1970, and the name of its first author.
 * - `kept`: files that are no sources, as they were when a question about tests read them; `test` is a `TestText`.
 * - `search`: the words of the blocks; its text is not kept twice (contentless).
 */
const schema = `
CREATE TABLE meta (name TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE folders (
  path TEXT PRIMARY KEY, folders TEXT NOT NULL, files TEXT NOT NULL, sources TEXT NOT NULL, stamps TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE links (path TEXT PRIMARY KEY, kind TEXT NOT NULL, target TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE files (
  id INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE, hash TEXT NOT NULL, aliases TEXT NOT NULL,
  guideline_count INTEGER NOT NULL, diagnostics TEXT NOT NULL, guidelines TEXT NOT NULL
);
CREATE INDEX files_with_diagnostics ON files (path) WHERE diagnostics <> '';
CREATE INDEX files_with_guidelines ON files (path, hash, aliases, guideline_count) WHERE guideline_count > 0;
CREATE TABLE classes (
  id INTEGER PRIMARY KEY, framework TEXT NOT NULL, spec_type TEXT NOT NULL, lifecycle TEXT NOT NULL,
  priority TEXT NOT NULL, blocks INTEGER NOT NULL, UNIQUE (framework, spec_type, lifecycle, priority)
);
CREATE TABLE blocks (
  key INTEGER PRIMARY KEY, file INTEGER NOT NULL, position INTEGER NOT NULL,
  id_kind TEXT NOT NULL, base TEXT NOT NULL, n INTEGER NOT NULL,
  feature TEXT, links TEXT NOT NULL, mentions TEXT NOT NULL, aliases TEXT NOT NULL,
  start_line INTEGER NOT NULL, end_line INTEGER NOT NULL, created_at TEXT, updated_at TEXT,
  title TEXT NOT NULL, summary TEXT, tags TEXT NOT NULL, metadata TEXT NOT NULL, content TEXT NOT NULL
);
CREATE INDEX blocks_by_file ON blocks (file, position);
CREATE INDEX blocks_by_base ON blocks (base, id_kind, n);
CREATE TABLE refs (target TEXT NOT NULL, key INTEGER NOT NULL, PRIMARY KEY (target, key)) WITHOUT ROWID;
CREATE TABLE features (
  feature TEXT NOT NULL, file INTEGER NOT NULL, PRIMARY KEY (feature, file)
) WITHOUT ROWID;
CREATE INDEX features_by_file ON features (file);
CREATE TABLE dates (
  path TEXT PRIMARY KEY, first INTEGER, last INTEGER NOT NULL, hash TEXT NOT NULL, author TEXT
) WITHOUT ROWID;
CREATE TABLE kept (path TEXT PRIMARY KEY, stamp TEXT NOT NULL, digest TEXT NOT NULL, test TEXT NOT NULL) WITHOUT ROWID;
CREATE VIRTUAL TABLE search USING fts5(
  title, body, tags, marks, content='', contentless_delete=1, tokenize='unicode61 remove_diacritics 2'
);
`;

/** Single values of the index, by name. */
export interface Meta {
  /** Kit's version and the configuration, on which the content depends besides the files. */
  readonly fingerprint: string;
  /** Counts the commits that changed what a read can return, from a random number on. */
  readonly generation: number;
  /** The running number of the next block. */
  readonly next_number: number;
  /** JSON of `IndexingProgress` while a process indexes many files; absent afterwards. */
  readonly indexing: string;
  /** JSON of the `WriteTurn` of a pass that has lost to other processes; absent otherwise. */
  readonly turn: string;
  /** The ignore rules from outside of the project and the tracked files, as they were at the last pass. */
  readonly outer_rules: string;
  /** JSON of `TrackedFiles`. */
  readonly tracked: string;
  /** `FileDatesUpdate.historyKey` of the dates. */
  readonly history_key: string;
  /** `headKeyOf` the project when its dates were read. */
  readonly head_key: string;
}

export function readMeta<Name extends keyof Meta>(database: Connection, name: Name): Meta[Name] | undefined {
  return database.get<[never]>("SELECT value FROM meta WHERE name = ?", name)?.[0];
}

/** Sets a value; undefined deletes it. */
export function writeMeta<Name extends keyof Meta>(
  database: Connection,
  name: Name,
  value: (Meta[Name] & SqlInput) | undefined,
): void {
  if (value === undefined) database.run("DELETE FROM meta WHERE name = ?", name);
  else database.run("INSERT OR REPLACE INTO meta (name, value) VALUES (?, ?)", name, value);
}

export interface OpenedIndex {
  readonly database: Connection;
  /** Why the former index was deleted. */
  readonly rebuilt?: string | undefined;
}

/** How long a statement waits for another process that writes. */
export const busyTimeoutMs = 5000;

export const damaged = "The index was damaged.";

/** Opens the index at a path. Replaces a file that is damaged, foreign or of another version by an empty index. */
export function openIndex(file: string, fingerprint: string): OpenedIndex {
  if (file === inMemory) return replaceUnusable(file, fingerprint);
  makeIndexFolder(file);
  // A process that removes an index must not remove parts of the one that another process creates in its place.
  return exclusively(lockOf(file), () => replaceUnusable(file, fingerprint));
}

/** The lock of those that create or remove an index. */
export function lockOf(file: string): string {
  return `${file}.lock`;
}

function replaceUnusable(file: string, fingerprint: string): OpenedIndex {
  const size = statSync(file, { throwIfNoEntry: false })?.size ?? 0;
  // A system crash can leave an empty file.
  const opened = size === 0 ? undefined : openExisting(file, fingerprint);
  if (opened !== undefined && "database" in opened) return opened;
  if (opened !== undefined) removeIndex(file);
  const database = new Connection(file, { timeoutMs: busyTimeoutMs });
  try {
    create(database, fingerprint);
    configure(database);
    return { database, ...opened };
  } catch (error) {
    database.close();
    throw error;
  }
}

/** Opens the index in a database that holds other tables, too; one of another version is replaced. */
export function openTables(shared: SharedIndex, fingerprint: string): OpenedIndex {
  const database = new Connection(shared.open(), { timeoutMs: busyTimeoutMs });
  const sharedFingerprint = `${fingerprint} ${shared.version}`;
  const isNew = database.get<[number]>("PRAGMA application_id")?.[0] !== applicationId;
  const rebuilt = isNew ? undefined : whyUnusable(database, sharedFingerprint);
  if (rebuilt !== undefined) removeTables(shared);
  create(database, sharedFingerprint);
  return { database, rebuilt };
}

export function removeTables({ open }: SharedIndex): void {
  const database = new Connection(open(), { timeoutMs: busyTimeoutMs });
  database.transaction(() => {
    for (const [, table] of schema.matchAll(/^CREATE (?:VIRTUAL )?TABLE (\w+)/gm))
      database.exec(`DROP TABLE IF EXISTS ${table}`);
    database.exec("PRAGMA application_id = 0");
  });
  database.close();
}

function openExisting(file: string, fingerprint: string): OpenedIndex | { readonly rebuilt: string } {
  let database: Connection | undefined;
  try {
    database = new Connection(file, { timeoutMs: busyTimeoutMs });
    // Another process is creating the index, or was killed while it did.
    if (database.get("SELECT 1 FROM sqlite_schema LIMIT 1") === undefined) create(database, fingerprint);
    const rebuilt = whyUnusable(database, fingerprint);
    if (rebuilt === undefined) {
      configure(database);
      return { database };
    }
    database.close();
    return { rebuilt };
  } catch (error) {
    database?.close();
    if (isDamage(error)) return { rebuilt: damaged };
    throw error;
  }
}

function whyUnusable(database: Connection, fingerprint: string): string | undefined {
  const [id] = database.get<[number]>("PRAGMA application_id") ?? [0];
  const [version = 0] = database.get<[number]>("PRAGMA user_version") ?? [];
  if (id !== applicationId) return "The file was not an index of kit.";
  if (version < schemaVersion) return "The index was made by an older version of kit.";
  if (version > schemaVersion) return "The index was made by a newer version of kit.";
  const storedFingerprint = readMeta(database, "fingerprint");
  return storedFingerprint === fingerprint
    ? undefined
    : "The configuration or the version of kit has changed.";
}

/** Creates the tables, unless another process has created them in the meantime. */
function create(database: Connection, fingerprint: string): void {
  retryWhileBusy(() => database.exec("PRAGMA page_size = 16384; PRAGMA journal_mode = WAL"), busyTimeoutMs);
  database.transaction(() => {
    if (database.get<[number]>("PRAGMA application_id")?.[0] === applicationId) return;
    database.exec(schema);
    // FTS5 rewrites all text several times if it merges automatically. `index-writer.ts` starts the merges.
    for (const [name, value] of Object.entries({ automerge: 0, crisismerge: 500, hashsize: 4 << 20 }))
      database.exec(`INSERT INTO search (search, rank) VALUES ('${name}', ${value})`);
    writeMeta(database, "fingerprint", fingerprint);
    writeMeta(database, "next_number", 0);
    writeMeta(database, "indexing", JSON.stringify({ done: 0, total: 0 }));
    // A random start distinguishes the generations of one index from those of another.
    writeMeta(database, "generation", Math.floor(Math.random() * 2 ** 40));
    database.exec(`PRAGMA application_id = ${applicationId}; PRAGMA user_version = ${schemaVersion}`);
  });
}

/** `synchronous = NORMAL`: the next pass finds again what a power failure loses. */
export function configure(database: Connection): void {
  database.exec("PRAGMA synchronous = NORMAL; PRAGMA cache_size = -16384; PRAGMA temp_store = MEMORY");
}

/** Removes an index and its SQLite journal files. */
export function removeIndex(file: string): void {
  for (const suffix of ["", "-journal", "-wal", "-shm"]) rmSync(file + suffix, { force: true });
}

/** Creates the folder of an index, with a `.gitignore` for all of it. */
function makeIndexFolder(file: string): void {
  const folder = dirname(file);
  makeFolderSync(folder);
  try {
    writeFileSync(join(folder, ".gitignore"), "*\n", { flag: "wx" });
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "EEXIST") return;
    // A full disk can leave a file without its line.
    rmSync(join(folder, ".gitignore"), { force: true });
    throw error;
  }
}

/** The index cannot be trusted. The error never reaches a caller: kit rebuilds the index. */
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
  // SQLITE_ERROR: the statements are correct, so the schema of the file is not the one of its version.
  return sqliteFault(error)?.isDamage === true || (resultCode(error) ?? 0) % 256 === 1;
}

/** The name of an index in memory. */
export const inMemory = ":memory:";

/** An index in a database that also has the tables of other stores. */
export interface SharedIndex {
  open(): Database;
  /** Identifies the files of the index; another version makes another index. */
  readonly version: string;
}

/**
 * The place of an index. An index that must not or cannot be kept is in a temporary folder, or in memory if that folder cannot be
 * written either: a reader always gets its answer.
 */
export class IndexPlace {
  #file: string;
  #problem: string | undefined;
  /** The temporary folder; `remove` deletes it. */
  #folder: string | undefined;

  /** Undefined where the index is a file. */
  readonly shared: SharedIndex | undefined;

  /** `indexFile` as in `OpenProjectOptions`. */
  constructor(root: string, index?: string | SharedIndex) {
    const indexFile = typeof index === "object" ? inMemory : index;
    this.shared = typeof index === "object" ? index : undefined;
    const defaultFile = join(root, ".kit", "index.db");
    this.#file = indexFile === undefined || indexFile === inMemory ? defaultFile : resolve(indexFile);
    if (this.shared !== undefined) this.#file = inMemory;
    else if (indexFile === inMemory) this.#moveAway();
    if (indexFile !== undefined) return;
    this.#problem = reasonNotPersistent(root);
    if (this.#problem !== undefined) this.#moveAway();
  }

  get file(): string {
    return this.#file;
  }

  /** Why the index is not kept in the project; undefined where it is. */
  get problem(): string | undefined {
    return this.#problem;
  }

  /** Moves to the next place if the error means that this one cannot be written; returns false for any other error. */
  leave(error: unknown): boolean {
    const reason = obstacleIn(error);
    if (reason === undefined) return false;
    const shortage = openObstacle();
    if (shortage !== undefined || this.#file === inMemory) throw cannotIndex(shortage ?? reason, error);
    this.#problem ??= writeObstacle(dirname(this.#file)) ?? reason;
    this.#moveAway();
    return true;
  }

  remove(): void {
    if (this.#folder !== undefined) rmSync(this.#folder, { recursive: true, force: true });
    this.#folder = undefined;
  }

  #moveAway(): void {
    try {
      if (this.#folder !== undefined) this.#file = inMemory;
      else {
        this.#folder = mkdtempSync(join(tmpdir(), "kit-index-"));
        this.#file = join(this.#folder, "index.db");
      }
    } catch {
      this.#file = inMemory;
    }
  }
}

/** The obstacle that an error names about the place; undefined for an error about its content. */
function obstacleIn(error: unknown): string | undefined {
  const fault = sqliteFault(error);
  if (fault === undefined) return systemObstacle(error);
  return fault.isDamage || fault.isBusy ? undefined : fault.reason;
}

function reasonNotPersistent(root: string): string | undefined {
  const folder = join(root, ".kit");
  const obstacle = writeObstacle(folder);
  if (obstacle !== undefined) return obstacle;
  const stats = lstatSync(folder, { throwIfNoEntry: false });
  if (stats === undefined) return undefined;
  if (!stats.isDirectory()) return "it is not a folder";
  try {
    accessSync(folder, constants.R_OK);
    const isLink = (name: string): boolean => isLinkOut(root, `.kit/${name}`);
    return readdirSync(folder).some(isLink) ? "a link in it leads out of the project" : undefined;
  } catch (error) {
    return systemObstacle(error) ?? "it cannot be read";
  }
}

function cannotIndex(reason: string, cause: unknown): KitError<"unavailable"> {
  return new KitError({
    code: "unavailable",
    message: `kit cannot read this project: ${reason}.`,
    hint: "The content of .kit is intact: leave it where it is.",
    cause,
  });
}

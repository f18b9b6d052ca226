import { lstatSync, mkdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { isDamage } from "./damaged-index-error.ts";
import { type IndexDatabase, openDatabase } from "./index-database.ts";
import { applicationId, schemaVersion, tables } from "./schema.ts";

/** An index that is ready to be read and written. */
export interface OpenedIndex {
  readonly database: IndexDatabase;
  /** Why an index that was there could not be used; it is an empty one now. */
  readonly rebuilt?: string;
}

export interface OpenIndexOptions {
  /** Absolute. Its folder is made when it is missing. */
  readonly file: string;
  /** What the content depends on beside the files: configuration, version. Another one rebuilds. */
  readonly fingerprint: string;
}

/** How long a statement waits for another process that writes. */
const busyTimeoutMs = 5000;

/**
 * Opens the index at a path, or makes an empty one there. A file that is damaged, of another
 * version, or no index at all is replaced; nothing of it is used.
 */
export function openIndex(options: OpenIndexOptions): OpenedIndex {
  makeFolder(dirname(options.file));
  const database = tryOpen(options);
  if (typeof database !== "string") return { database };
  return replaceIndex(options, database);
}

/**
 * Replaces an index that cannot be used. Of several processes that find it so, one replaces it and
 * the others open what it made. `damaged` is the connection that has found the damage, which may lie
 * deeper than opening looks; its caller closes it afterwards.
 */
export function replaceIndex(
  options: OpenIndexOptions,
  reason: string,
  damaged?: IndexDatabase,
): OpenedIndex {
  const { file } = options;
  // SQLite's own lock on a database beside it ends with the process, however that ends.
  const lock = openDatabase(`${file}-lock`, { busyTimeoutMs: 30_000 });
  try {
    lock.exec("BEGIN EXCLUSIVE");
    if (damaged === undefined || inodeOf(file) !== damaged.inode) {
      const other = tryOpen(options);
      if (typeof other !== "string") return { database: other, rebuilt: reason };
    }
    for (const suffix of ["", "-wal", "-shm"]) rmSync(file + suffix, { force: true });
    const database = tryOpen(options);
    if (typeof database === "string") throw new Error(`A new index cannot be made: ${database}`);
    return { database, rebuilt: reason };
  } finally {
    lock.close();
  }
}

function inodeOf(file: string): number | undefined {
  return statSync(file, { throwIfNoEntry: false })?.ino;
}

/** Makes the folder of the index and keeps it out of Git. */
function makeFolder(folder: string): void {
  mkdirSync(folder, { recursive: true });
  if (lstatSync(folder).isSymbolicLink()) {
    throw Object.assign(new Error("The folder of the index is a link."), { code: "ELOOP" });
  }
  try {
    writeFileSync(join(folder, ".gitignore"), "*\n", { flag: "wx" });
  } catch {
    // It is there already, or the folder cannot be written, which the database will tell.
  }
}

/** The database, or the reason why it cannot be used. */
function tryOpen({ file, fingerprint }: OpenIndexOptions): IndexDatabase | string {
  let database: IndexDatabase | undefined;
  try {
    database = openDatabase(file, { busyTimeoutMs });
    const reason = check(database, fingerprint);
    if (reason === undefined) return database;
    database.close();
    return reason;
  } catch (error) {
    database?.close();
    if (isDamage(error)) return "The index was damaged.";
    throw error;
  }
}

function check(database: IndexDatabase, fingerprint: string): string | undefined {
  const [id] = database.get<[number]>("PRAGMA application_id") ?? [0];
  const [version] = database.get<[number]>("PRAGMA user_version") ?? [0];
  const [pages] = database.get<[number]>("PRAGMA page_count") ?? [0];
  if (pages <= 1 && id === 0) create(database, fingerprint);
  else if (id !== applicationId) return "The file was not an index of kit.";
  else if (version < schemaVersion) return "The index was made by an older version of kit.";
  else if (version > schemaVersion) return "The index was made by a newer version of kit.";
  database.exec("PRAGMA synchronous = NORMAL; PRAGMA cache_size = -16384; PRAGMA temp_store = MEMORY");
  const [known] = database.get<[string]>("SELECT value FROM meta WHERE name = 'fingerprint'") ?? [""];
  return known === fingerprint ? undefined : "The configuration or the version of kit has changed.";
}

function create(database: IndexDatabase, fingerprint: string): void {
  database.exec("PRAGMA journal_mode = WAL; BEGIN IMMEDIATE");
  try {
    const [id] = database.get<[number]>("PRAGMA application_id") ?? [0];
    // Another process may have made it while this one waited for the lock.
    if (id === 0) {
      database.exec(tables);
      database.run("INSERT INTO meta (name, value) VALUES ('fingerprint', ?)", fingerprint);
      database.exec(`PRAGMA application_id = ${applicationId}; PRAGMA user_version = ${schemaVersion}`);
    }
    database.exec("COMMIT");
  } catch (error) {
    database.exec("ROLLBACK");
    throw error;
  }
}

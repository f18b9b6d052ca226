import { statSync } from "node:fs";
import { isBusy } from "../../sqlite/database-file.ts";
import type { Connection } from "../../sqlite/statements.ts";
import type { TrackedFiles } from "../scan/git/tracked-files.ts";
import type { Folder, Link, Links, Tree } from "../scan/tree.ts";
import { exclusively } from "./exclusively.ts";
import { type IndexBatch, type WriteResult, writeBatch } from "./index-writer.ts";
import {
  busyTimeoutMs,
  DamagedIndexError,
  damaged,
  type IndexPlace,
  inMemory,
  isDamage,
  lockOf,
  openIndex,
  openTables,
  parseStored,
  readMeta,
  removeIndex,
  removeTables,
} from "./open-index.ts";
import { claimTurn, releaseTurn } from "./write-turn.ts";

export interface IndexSessionOptions {
  readonly place: IndexPlace;
  readonly fingerprint: string;
  /** Fills a new index synchronously, for a reader that found the old one unusable and needs its answer. */
  readonly rebuild: () => void;
}

/** The state from which a pass starts. */
export interface PassStart {
  readonly database: Connection;
  readonly tree: Tree;
  readonly links: Links;
  readonly generation: number;
  readonly outerRules: string | undefined;
  readonly tracked: TrackedFiles | undefined;
  /** Nothing has been written yet. */
  readonly isEmpty: boolean;
  /** The first pass, or a later pass over many files, did not end. */
  readonly isUnfinished: boolean;
}

/** The connection to an index, and a cache of answers that is valid until the index changes. */
export class IndexSession {
  readonly #options: IndexSessionOptions;
  readonly #cache = new Map<string, unknown>();
  #database: Connection | undefined;
  #tree: Map<string, Folder> | undefined;
  #generation = -1;
  #dataVersion = -1;
  // The generation alone is not enough: a new index can have the generation of the old one.
  #changes = 0;
  #isReading = false;
  #rebuilt: string | undefined;
  #tracked: TrackedFiles | undefined;

  constructor(options: IndexSessionOptions) {
    this.#options = options;
  }

  /** Absolute path of the database, or `inMemory`. */
  get file(): string {
    return this.#options.place.file;
  }

  /** Queries the index. If it is unusable, rebuilds it, here or elsewhere, and repeats the query. */
  read<Result>(question: (database: Connection) => Result): Result {
    if (this.#isReading) return question(this.#opened());
    this.#isReading = true;
    try {
      return this.#ask(question);
    } catch (error) {
      if (!this.rebuild(error)) throw error;
      return this.#askNew(question);
    } finally {
      this.#isReading = false;
    }
  }

  #ask<Result>(question: (database: Connection) => Result): Result {
    this.#sync();
    return question(this.#opened());
  }

  #askNew<Result>(question: (database: Connection) => Result): Result {
    try {
      this.#options.rebuild();
      return this.#ask(question);
    } catch (error) {
      // The temporary folder can be on the same full disk.
      if (isDamage(error) || !this.rebuild(error)) throw error;
      return this.#askNew(question);
    }
  }

  /** The answer to a question, kept under a name until anything in the index has changed. */
  cached<Result>(name: string, question: (database: Connection) => Result): Result {
    return this.read((database) => {
      if (!this.#cache.has(name)) this.#cache.set(name, question(database));
      return this.#cache.get(name) as Result;
    });
  }

  /** Differs from an earlier value when anything that can be read has changed. */
  changes(): number {
    this.read(() => undefined);
    return this.#changes;
  }

  tree(): Tree {
    return this.read((database) => {
      this.#tree ??= loadTree(database);
      return this.#tree;
    });
  }

  /** Reads the state that all processes have written until now; opens the index where needed. */
  begin(): PassStart {
    // Another process has replaced the file, or a user has deleted it.
    if (this.#database !== undefined && inodeOf(this.file) !== this.#database.inode) this.close();
    this.#sync();
    const database = this.#opened();
    this.#tree ??= loadTree(database);
    const tracked = readMeta(database, "tracked");
    // A new index in place of a damaged one starts with the last known files.
    if (tracked !== undefined) this.#tracked = parseStored<TrackedFiles>(tracked);
    return {
      database,
      tree: this.#tree,
      links: loadLinks(database),
      generation: this.#generation,
      outerRules: readMeta(database, "outer_rules"),
      tracked: this.#tracked,
      isEmpty: database.get("SELECT 1 FROM folders LIMIT 1") === undefined,
      isUnfinished: readMeta(database, "indexing") !== undefined,
    };
  }

  /** Writes a batch on this thread; throws SQLITE_BUSY at once unless `mayWait` allows waiting for another process. */
  write(batch: IndexBatch, { mayWait = false }: { readonly mayWait?: boolean } = {}): WriteResult {
    if (mayWait) return writeBatch(this.#opened(), batch);
    return this.#atOnce((database) => writeBatch(database, batch));
  }

  /** Changes rows that no pass writes, in one transaction; throws SQLITE_BUSY at once. */
  writeRows(change: (database: Connection) => void): void {
    this.#atOnce((database) => database.transaction(() => change(database)));
  }

  /** Gives a pass the turn to write; returns false where another pass has it, or another process is writing. */
  claimTurn(pass: string): boolean {
    const { database } = this.begin();
    try {
      return this.#atOnce(() => claimTurn(database, pass));
    } catch (error) {
      if (isBusy(error)) return false;
      throw error;
    }
  }

  /** Ends the turn of a pass; while another process writes, leaves it to its time. */
  releaseTurn(pass: string): void {
    try {
      this.#atOnce((database) => releaseTurn(database, pass));
    } catch (error) {
      if (!isBusy(error)) throw error;
    }
  }

  #atOnce<Result>(work: (database: Connection) => Result): Result {
    const database = this.#opened();
    database.exec("PRAGMA busy_timeout = 0");
    try {
      return work(database);
    } finally {
      database.exec(`PRAGMA busy_timeout = ${busyTimeoutMs}`);
    }
  }

  /** Applies a written batch to the cached tree, so that it is not loaded again. */
  committed(generation: number, change: Pick<IndexBatch, "folders" | "removedFolders">): void {
    const tree = this.#tree;
    for (const path of change.removedFolders ?? []) tree?.delete(path);
    for (const folder of change.folders ?? []) tree?.set(folder.path, folder);
    const database = this.#opened();
    this.#dataVersion = dataVersionOf(database);
    const storedGeneration = readGeneration(database);
    // Another process can have written right after this one.
    if (storedGeneration !== generation) this.#tree = undefined;
    if (storedGeneration !== this.#generation) this.#forget();
    this.#generation = storedGeneration;
  }

  /** Drops the cached tree: after a failed pass it can be ahead of the index. */
  forgetTree(): void {
    this.#tree = undefined;
  }

  /**
   * Deletes a damaged index, or moves to another place if the present one cannot be written. The next question opens a new index.
   * Returns false for any other error.
   */
  rebuild(error: unknown): boolean {
    if (isDamage(error)) {
      const inode = this.#database?.inode;
      this.close();
      this.#rebuilt = damaged;
      const { shared } = this.#options.place;
      if (shared !== undefined) removeTables(shared);
      else if (inode !== undefined && this.file !== inMemory) {
        exclusively(lockOf(this.file), () => {
          if (inodeOf(this.file) === inode) removeIndex(this.file);
        });
      }
      return true;
    }
    if (!this.#options.place.leave(error)) return false;
    this.close();
    return true;
  }

  /** Returns once why the former index was deleted. */
  takeRebuilt(): string | undefined {
    const rebuilt = this.#rebuilt;
    this.#rebuilt = undefined;
    return rebuilt;
  }

  close(): void {
    this.#database?.close();
    this.#database = undefined;
    this.#tree = undefined;
    this.#generation = -1;
    this.#dataVersion = -1;
    this.#forget();
  }

  #opened(): Connection {
    if (this.#database === undefined) {
      const { fingerprint, place } = this.#options;
      const { database, rebuilt } =
        place.shared === undefined
          ? openIndex(this.file, fingerprint)
          : openTables(place.shared, fingerprint);
      this.#database = database;
      this.#rebuilt ??= rebuilt;
    }
    return this.#database;
  }

  /** Drops cached answers where another connection has committed. */
  #sync(): void {
    const database = this.#opened();
    const seen = dataVersionOf(database);
    if (seen === this.#dataVersion) return;
    this.#dataVersion = seen;
    const generation = readGeneration(database);
    if (generation === this.#generation) return;
    this.#generation = generation;
    this.#tree = undefined;
    this.#forget();
  }

  #forget(): void {
    this.#changes += 1;
    this.#cache.clear();
  }
}

function readGeneration(database: Connection): number {
  const generation = readMeta(database, "generation");
  if (typeof generation !== "number") throw new DamagedIndexError("The index has no generation.");
  return generation;
}

function dataVersionOf(database: Connection): number {
  return database.get<[number]>("PRAGMA data_version")?.[0] ?? 0;
}

function inodeOf(file: string): number | undefined {
  if (file === inMemory) return 0;
  return statSync(file, { throwIfNoEntry: false })?.ino;
}

function loadTree(database: Connection): Map<string, Folder> {
  const rows = database.all<[path: string, folders: string, files: string, sources: string, stamps: string]>(
    "SELECT path, folders, files, sources, stamps FROM folders ORDER BY path",
  );
  return new Map(
    rows.map(([path, folders, files, sources, stamps]) => [
      path,
      { path, folders, files, sources, stamps: parseStored<(number | null)[]>(stamps) },
    ]),
  );
}

/** Reads the links of an index by their path; most projects have few or none. */
export function loadLinks(database: Connection): Links {
  const rows = database.all<[path: string, kind: Link["kind"], target: string]>(
    "SELECT path, kind, target FROM links",
  );
  return new Map(rows.map(([path, kind, target]) => [path, { kind, target }]));
}

import { statSync } from "node:fs";
import { isDamage } from "./index/damaged-index-error.ts";
import type { IndexDatabase } from "./index/index-database.ts";
import { readMeta } from "./index/meta.ts";
import { openIndex, openWriter } from "./index/open-index.ts";
import { hasLog, isLogLong, isSealed, moveLog } from "./index/seal.ts";
import { tryLocked } from "./index/transaction.ts";
import { loadTree, type StoredTree } from "./index/tree-store.ts";

/** The connections to an index, and what of it is kept in memory as long as it does not change. */
export interface IndexSession {
  /** Opens the index; false when there is none that can be used. Keeps the reason for `takeReason`. */
  open(): boolean;
  /** Why an index could not be used, once. */
  takeReason(): string | undefined;
  /** Asks the open index. An index that turns out to be damaged is made anew and asked again. */
  read<Result>(question: (database: IndexDatabase) => Result): Result;
  cached<Result>(name: string, question: (database: IndexDatabase) => Result): Result;
  /** Differs from an earlier value when anything that can be read has changed. */
  changes(): number;
  tree(): StoredTree;
  /** What a pass starts from; noticed are all commits of other connections until now. */
  forPass(): PassStart;
  /** After a commit of our own, what is in memory is what is in the index. */
  committed(generation: number): void;
  /** Closes a damaged or replaced index; whatever is asked next opens it or makes it anew. */
  drop(reason: string | undefined): void;
  isOpen(): boolean;
  /** Whether the file that is open is still the one at its path, as kit left it. */
  isCurrent(): boolean;
  close(): void;
}

/** What a pass starts from. */
export interface PassStart {
  readonly reader: IndexDatabase;
  /** Opens the connection to write with, which most passes need not. */
  readonly writer: () => IndexDatabase;
  readonly tree: StoredTree;
  readonly generation: number;
}

export interface IndexSessionOptions {
  readonly file: string;
  readonly fingerprint: string;
  /** Makes an index where there is none, at once, and opens it by `open`. */
  readonly rebuild: () => void;
}

export function createIndexSession({ file, fingerprint, rebuild }: IndexSessionOptions): IndexSession {
  const cache = new Map<string, unknown>();
  let reader: IndexDatabase | undefined;
  let writer: IndexDatabase | undefined;
  let tree: StoredTree | undefined;
  let generation = -1;
  let dataVersion = -1;
  // Counts what `generation` cannot: a new index may have the generation of the old one.
  let changes = 0;
  let depth = 0;
  let reason: string | undefined;
  let distrusted: number | undefined;

  const forget = (): void => {
    changes += 1;
    cache.clear();
  };

  const dataVersionOf = (database: IndexDatabase): number =>
    database.get<[number]>("PRAGMA data_version")?.[0] ?? 0;

  /** Notices what other connections have committed. */
  const sync = (database: IndexDatabase): void => {
    const seen = dataVersionOf(database);
    if (seen === dataVersion) return;
    dataVersion = seen;
    const found = readMeta(database, "generation") ?? 0;
    if (found === generation) return;
    generation = found;
    tree = undefined;
    forget();
  };

  const openedWriter = (): IndexDatabase => {
    writer ??= openWriter(file);
    return writer;
  };

  /** SQLite would do it when the last connection closes, and break the seal. */
  const moveLogNow = (waitMs: number): void => {
    if (reader === undefined || inodeOf(file) !== reader.inode) return;
    const database = openedWriter();
    tryLocked(file, { waitMs, work: () => moveLog(database) });
  };

  const drop = (why: string | undefined): void => {
    if (why !== undefined && reader !== undefined) distrusted = reader.inode;
    reader?.close();
    writer?.close();
    reader = undefined;
    writer = undefined;
    tree = undefined;
    generation = -1;
    dataVersion = -1;
    reason ??= why;
    forget();
  };

  const opened = (): IndexDatabase => {
    if (reader === undefined) rebuild();
    if (reader === undefined) throw new Error("There is no index to read.");
    return reader;
  };

  const ask = <Result>(question: (database: IndexDatabase) => Result): Result => {
    const database = opened();
    sync(database);
    return question(database);
  };

  const read = <Result>(question: (database: IndexDatabase) => Result): Result => {
    if (depth > 0) return question(opened());
    depth += 1;
    try {
      return ask(question);
    } catch (error) {
      if (!isDamage(error)) throw error;
      drop("The index was damaged.");
      return ask(question);
    } finally {
      depth -= 1;
    }
  };

  const currentTree = (database: IndexDatabase): StoredTree => {
    tree ??= loadTree(database);
    return tree;
  };

  return {
    open() {
      // Damage may lie deeper than opening looks.
      if (distrusted !== undefined && inodeOf(file) === distrusted) return false;
      const found = openIndex(file, fingerprint);
      if (found.kind === "unusable") reason ??= found.reason;
      if (found.kind !== "usable") return false;
      reader?.close();
      reader = found.database;
      distrusted = undefined;
      return true;
    },
    takeReason() {
      const taken = reason;
      reason = undefined;
      return taken;
    },
    read,
    cached: <Result>(name: string, question: (database: IndexDatabase) => Result) =>
      read((database) => {
        if (!cache.has(name)) cache.set(name, question(database));
        return cache.get(name) as Result;
      }),
    changes() {
      read(() => undefined);
      return changes;
    },
    tree: () => read(currentTree),
    forPass() {
      const database = opened();
      sync(database);
      return { reader: database, writer: openedWriter, tree: currentTree(database), generation };
    },
    committed(next) {
      if (isLogLong(file)) moveLogNow(0);
      const database = opened();
      const seen = dataVersionOf(database);
      const found = readMeta(database, "generation") ?? 0;
      dataVersion = seen;
      if (found === generation) return;
      // Another process may have committed right behind us.
      if (found !== next) tree = undefined;
      generation = found;
      forget();
    },
    drop,
    isOpen: () => reader !== undefined,
    isCurrent: () => reader !== undefined && inodeOf(file) === reader.inode && isSealed(file),
    close() {
      // Another process that closes at the same time is done in a moment.
      if (hasLog(file)) moveLogNow(2000);
      drop(undefined);
    },
  };
}

function inodeOf(file: string): number | undefined {
  return statSync(file, { throwIfNoEntry: false })?.ino;
}

import type { Connection } from "../../sqlite/statements.ts";
import { writeMeta } from "./open-index.ts";

/** When a file was committed, and by whom first. Times are in whole seconds since 1970, of the committer. */
export interface FileDates {
  /** Absent where a shallow clone ends before it. Follows renames. */
  readonly first?: number | undefined;
  readonly last: number;
  /** The commit of `last`. */
  readonly commit: string;
  /**
   * Name of the author of the first commit, by the repository's `.mailmap`; absent if the first commit is unknown or has no
   * author name.
   */
  readonly author?: string;
}

export interface FileDatesUpdate {
  /** Keep it with the dates and hand it back as `previous.historyKey`. */
  readonly historyKey: string;
  /** True: `dates` replaces the cache. False: `dates` is merged into the cache. */
  readonly isComplete: boolean;
  /**
   * By path, relative to the root of the request. Includes deleted files: keep them, because a restored file continues its
   * history.
   */
  readonly dates: ReadonlyMap<string, FileDates>;
  /** Paths to forget: renamed away. Apply before `dates`. */
  readonly removed: readonly string[];
}

/** The dates of Git that the index lacks. */
export interface DatesUpdate {
  /** Undefined without a repository. */
  readonly update: FileDatesUpdate | undefined;
  readonly headKey: string;
}

/** Reads the first and last commit of a file and its first author from the index. */
export function readDates(database: Connection, path: string): FileDates | undefined {
  const row = database.get<[first: number | null, last: number, hash: string, author: string | null]>(
    "SELECT first, last, hash, author FROM dates WHERE path = ?",
    path,
  );
  if (row === undefined) return undefined;
  const [first, last, commit, author] = row;
  return { ...(first !== null && { first }), last, commit, ...(author !== null && { author }) };
}

/** Saves the dates, within a transaction of the caller's. Returns whether any differ. */
export function saveDates(database: Connection, { update, headKey }: DatesUpdate): boolean {
  writeMeta(database, "head_key", headKey);
  return update === undefined ? forgetDates(database) : writeDates(database, update);
}

/** Returns whether there were any. */
function forgetDates(database: Connection): boolean {
  const hasDates = database.get("SELECT 1 FROM dates LIMIT 1") !== undefined;
  database.run("DELETE FROM dates");
  database.run("DELETE FROM meta WHERE name = 'history_key'");
  return hasDates;
}

function writeDates(
  database: Connection,
  { isComplete, dates, removed, historyKey }: FileDatesUpdate,
): boolean {
  if (isComplete) database.run("DELETE FROM dates");
  for (const path of removed) database.run("DELETE FROM dates WHERE path = ?", path);
  for (const [path, { first, last, commit, author }] of dates) {
    database.run(
      "INSERT OR REPLACE INTO dates (path, first, last, hash, author) VALUES (?, ?, ?, ?, ?)",
      ...[path, first ?? null, last, commit, author ?? null],
    );
  }
  writeMeta(database, "history_key", historyKey);
  return isComplete || dates.size + removed.length > 0;
}

import { headKeyOf } from "../../files/git-folder.ts";
import type { Connection } from "../../sqlite/connection.ts";
import { type FileDates, type FileDatesUpdate, readFileDates } from "../scan/git/file-dates.ts";
import { readGitState } from "../scan/git/git-state.ts";
import { readMeta, writeMeta } from "../store/open-index.ts";

/** The first and last commit of a file and its first author, as the index knows them. */
export function readDates(database: Connection, path: string): FileDates | undefined {
  const row = database.get<[first: number | null, last: number, hash: string, author: string | null]>(
    "SELECT first, last, hash, author FROM dates WHERE path = ?",
    path,
  );
  if (row === undefined) return undefined;
  const [first, last, commit, author] = row;
  return { ...(first !== null && { first }), last, commit, ...(author !== null && { author }) };
}

/** The dates of Git that the index lacks. */
export interface DatesUpdate {
  /** Undefined without a repository. */
  readonly update: FileDatesUpdate | undefined;
  readonly headKey: string;
}

interface IndexReader {
  read<Result>(question: (database: Connection) => Result): Result;
}

/**
 * Asks Git for the commits since those that the index knows. While the same commit is checked out
 * that reads two files. Undefined when there is nothing to save, and when Git fails: the next pass asks Git
 * again.
 */
export async function readDatesUpdate(
  session: IndexReader,
  { root, signal }: { readonly root: string; readonly signal: AbortSignal },
): Promise<DatesUpdate | undefined> {
  const headKey = headKeyOf(root);
  if (headKey !== undefined && headKey === session.read((database) => readMeta(database, "head_key")))
    return undefined;
  if (headKey === "none") return { update: undefined, headKey };
  const state = await readGitState(root, signal);
  if (state.kind === "none") return undefined;
  const historyKey = session.read((database) => readMeta(database, "history_key"));
  const lookup = (path: string): FileDates | undefined =>
    session.read((database) => readDates(database, path));
  const previous = historyKey === undefined ? {} : { previous: { historyKey, lookup } };
  const update = await readFileDates({ root, state, signal, ...previous });
  return update === undefined && state.head !== undefined ? undefined : { update, headKey: headKey ?? "" };
}

/** Saves the dates, within a transaction of the caller's. Returns whether any differ. */
export function saveDates(database: Connection, { update, headKey }: DatesUpdate): boolean {
  writeMeta(database, "head_key", headKey);
  return update === undefined ? forgetDates(database) : writeDates(database, update);
}

/** Returns whether there were any. */
function forgetDates(database: Connection): boolean {
  const had = database.get("SELECT 1 FROM dates LIMIT 1") !== undefined;
  database.run("DELETE FROM dates");
  database.run("DELETE FROM meta WHERE name = 'history_key'");
  return had;
}

function writeDates(database: Connection, { full, dates, removed, historyKey }: FileDatesUpdate): boolean {
  if (full) database.run("DELETE FROM dates");
  for (const path of removed) database.run("DELETE FROM dates WHERE path = ?", path);
  for (const [path, { first, last, commit, author }] of dates) {
    database.run(
      "INSERT OR REPLACE INTO dates (path, first, last, hash, author) VALUES (?, ?, ?, ?, ?)",
      ...[path, first ?? null, last, commit, author ?? null],
    );
  }
  writeMeta(database, "history_key", historyKey);
  return full || dates.size + removed.length > 0;
}

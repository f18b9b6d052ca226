import { likePatterns } from "../../base/like-patterns.ts";

/** The fields of a filter that lists of dispatches and of runs share. */
interface SharedFilter {
  readonly status?: string | readonly string[] | undefined;
  readonly search?: string | undefined;
  readonly since?: number | undefined;
  readonly until?: number | undefined;
}

/** The values of an SQL statement, and the operator of its database. */
export interface SqlValues {
  /** The operator that compares texts in any case. */
  readonly like: "LIKE" | "ILIKE";
  /** Adds a value of the statement, and returns its placeholder. */
  addValue(value: string | number): string;
}

/** The columns of a table that its list reads. */
export interface ListedTable {
  readonly table: string;
  /** The column by which the list is sorted. It rises with `accepted_at`, except after the clock was set back. */
  readonly order: string;
  /** A value of that column which is above all others. */
  readonly last: string | number;
  /** The columns to search: texts, and JSON. */
  readonly texts: readonly string[];
  readonly json: readonly string[];
}

/** A clock that was set back by less than this hides no entry of a list. */
const clockSlackMs = 3_600_000;

/** Creates the conditions of a list. The index of `accepted_at` finds where the list begins and ends. */
export function createConditions(
  { status, search, since, until }: SharedFilter,
  { table, order, last, texts, json }: ListedTable,
  { like, addValue }: SqlValues,
): string[] {
  const conditions: string[] = [];
  const firstSince = (ms: number): string =>
    `(SELECT ${order} FROM ${table} WHERE accepted_at >= ${addValue(ms)} ORDER BY accepted_at LIMIT 1)`;
  const statuses = typeof status === "string" ? [status] : status;
  if (statuses !== undefined)
    conditions.push(`status IN (${statuses.map((one) => addValue(one)).join(", ")})`);
  if (since !== undefined) {
    conditions.push(`${order} >= ${firstSince(since - clockSlackMs)}`);
    conditions.push(`accepted_at >= ${addValue(since)}`);
  }
  if (until !== undefined) {
    const first = firstSince(until + clockSlackMs);
    conditions.push(`${order} < coalesce(${first}, ${addValue(last)})`, `accepted_at < ${addValue(until)}`);
  }
  if (search !== undefined) {
    const matches = (column: string, words: string): string[] =>
      likePatterns(words).map((pattern) => `${column} ${like} ${addValue(pattern)} ESCAPE '\\'`);
    // A text within JSON has escapes.
    const escaped = JSON.stringify(search).slice(1, -1);
    const all = [
      ...texts.flatMap((column) => matches(column, search)),
      ...json.flatMap((column) => matches(column, escaped)),
    ];
    conditions.push(`(${all.join(" OR ")})`);
  }
  return conditions;
}

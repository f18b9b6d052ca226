import { type Query, query } from "../../sqlite/statements.ts";
import type { DispatchFilter, RunFilter } from "../contract.ts";
import { createConditions, type ListedTable } from "../shared/list-filter.ts";
import type { EmbeddedBase } from "./embedded-base.ts";

type Value = string | number;

interface FoundRows<Row> {
  /** Up to `most` rows, the last of the order first. */
  readonly rows: (most: number) => Iterable<Row>;
  /** The number of rows of all pages. */
  readonly count: () => number;
}

interface ListedPart {
  /** The page has the rows below this value of the order. */
  readonly before: Value;
  /** Columns that must have these values; `undefined` for any value. */
  readonly columns: Readonly<Record<string, string | undefined>>;
  /** The index to use; `undefined` for the rows in their order. */
  readonly index: string | undefined;
}

/** Creates a list over a table. */
export function createList<Row>(
  { database }: Pick<EmbeddedBase, "database">,
  listed: ListedTable,
): (filter: DispatchFilter | RunFilter, part: ListedPart) => FoundRows<Row> {
  const prepared = new Map<string, Query<unknown>>();
  const prepare = <Found>(sql: string): Query<Found> => {
    const statement = prepared.get(sql) ?? query(database, sql);
    prepared.set(sql, statement);
    return statement as Query<Found>;
  };
  return (filter, { before, columns, index }) => {
    const values: Value[] = [];
    const addValue = (value: Value): string => {
      values.push(value);
      return "?";
    };
    const conditions = Object.entries(columns).flatMap(([name, value]) =>
      value === undefined ? [] : [`${name} = ${addValue(value)}`],
    );
    conditions.push(...createConditions(filter, listed, { like: "LIKE", addValue }));
    // Repeats the condition of the partial indexes, which SQLite otherwise does not use.
    if (isIncomplete(filter.status)) conditions.push("status <> 'completed'");
    const { table, order } = listed;
    const where = conditions.length === 0 ? "" : `WHERE ${conditions.join(" AND ")}`;
    const by = index === undefined ? "" : `INDEXED BY ${index}`;
    return {
      rows: (most) =>
        prepare<Row>(
          `SELECT * FROM ${table} ${by} ${where === "" ? "WHERE" : `${where} AND`} ${order} < ? ORDER BY ${order} DESC LIMIT ?`,
        ).each(...values, before, most),
      count: () =>
        Number(
          prepare<{ count: number }>(`SELECT count(*) AS count FROM ${table} ${by} ${where}`).get(...values)
            ?.count,
        ),
    };
  };
}

/** Whether a filter selects only statuses that the partial indexes have. */
export function isIncomplete(status: string | readonly string[] | undefined): boolean {
  if (status === undefined) return false;
  return typeof status === "string" ? status !== "completed" : !status.includes("completed");
}

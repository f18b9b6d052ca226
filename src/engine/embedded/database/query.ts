import type { DatabaseSync, SQLInputValue } from "node:sqlite";

/** A statement whose rows are known to be of a shape, because this room wrote them. */
export interface Query<Row> {
  get(...values: SQLInputValue[]): Row | undefined;
  all(...values: SQLInputValue[]): Row[];
  /** One after the other; to be read to its end, or left, before anything else happens. */
  each(...values: SQLInputValue[]): Iterable<Row>;
  /** How many rows it changed. */
  run(...values: SQLInputValue[]): number;
}

export function query<Row = never>(database: DatabaseSync, sql: string): Query<Row> {
  const statement = database.prepare(sql);
  return {
    get: (...values) => statement.get(...values) as Row | undefined,
    all: (...values) => statement.all(...values) as Row[],
    each: (...values) => statement.iterate(...values) as Iterable<Row>,
    run: (...values) => Number(statement.run(...values).changes),
  };
}

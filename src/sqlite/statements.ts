import type { DatabaseSync, SQLInputValue } from "node:sqlite";

/** Opens a file. Loads `node:sqlite` when called: a static import would fail on a Node without it, before kit can say so. */
export function openFile(
  file: string,
  options: { readonly timeoutMs: number; readonly readOnly?: boolean },
): DatabaseSync {
  const { DatabaseSync } = process.getBuiltinModule("node:sqlite");
  return new DatabaseSync(file, { timeout: options.timeoutMs, readOnly: options.readOnly ?? false });
}

/** A prepared statement. The caller states the shape of its rows, which the SQL gives. */
export interface Query<Row> {
  get(...values: SQLInputValue[]): Row | undefined;
  all(...values: SQLInputValue[]): Row[];
  /** Rows one at a time. Read to the end, or leave the loop, before any other statement runs. */
  each(...values: SQLInputValue[]): Iterable<Row>;
  /** Returns the number of changed rows. */
  run(...values: SQLInputValue[]): number;
}

/** Prepares a statement whose rows are objects. */
export function query<Row = never>(database: DatabaseSync, sql: string): Query<Row> {
  const statement = database.prepare(sql);
  return {
    get: (...values) => statement.get(...values) as Row | undefined,
    all: (...values) => statement.all(...values) as Row[],
    each: (...values) => statement.iterate(...values) as Iterable<Row>,
    run: (...values) => Number(statement.run(...values).changes),
  };
}

/** The value of a pragma that is a number. */
export function pragma(database: DatabaseSync, name: string): number {
  return Number(database.prepare(`PRAGMA ${name}`).get()?.[name]);
}

/**
 * Runs work in one transaction that holds the write lock from its start. What the work or the commit throws undoes all of
 * it. Throws SQLITE_BUSY where another process holds the lock for longer than the connection waits.
 */
export type Transaction = <Value>(work: () => Value) => Value;

export function createTransaction(database: DatabaseSync): Transaction {
  const begin = database.prepare("BEGIN IMMEDIATE");
  const commit = database.prepare("COMMIT");
  return (work) => {
    begin.run();
    try {
      const value = work();
      commit.run();
      return value;
    } catch (error) {
      rollback(database);
      throw error;
    }
  };
}

/** Undoes a transaction after an error; does nothing where SQLite has undone it already. */
export function rollback(database: DatabaseSync): void {
  if (database.isTransaction) database.exec("ROLLBACK");
}

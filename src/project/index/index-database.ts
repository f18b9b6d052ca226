import { statSync } from "node:fs";
import type { SQLInputValue, SQLOutputValue, StatementSync } from "node:sqlite";

export type Row = readonly SQLOutputValue[];

/** One connection to an index. Statements are prepared once and kept; rows are lists. */
export interface IndexDatabase {
  readonly file: string;
  /** Of the file that was opened, which may have been replaced since. */
  readonly inode: number;
  /**
   * All rows of a query. The caller states the shape of a row, which the SQL beside it gives; what
   * the columns hold is what this version wrote, or the index is damaged and its checksums say so.
   */
  all<Shape extends Row>(sql: string, ...values: SQLInputValue[]): Shape[];
  get<Shape extends Row>(sql: string, ...values: SQLInputValue[]): Shape | undefined;
  /** A statement to run many times. */
  statement(sql: string): StatementSync;
  run(sql: string, ...values: SQLInputValue[]): void;
  /** Several statements, without values. */
  exec(sql: string): void;
  close(): void;
}

export interface OpenDatabaseOptions {
  /** How long a statement waits for another process, in milliseconds. */
  readonly busyTimeoutMs: number;
}

/** Opens a connection; throws what SQLite throws. The file is created when it is missing. */
export function openDatabase(file: string, { busyTimeoutMs }: OpenDatabaseOptions): IndexDatabase {
  // Not imported: a Node without this module could not even load the check that says so.
  const { DatabaseSync } = process.getBuiltinModule("node:sqlite");
  const database = new DatabaseSync(file, { timeout: busyTimeoutMs });
  const statements = new Map<string, StatementSync>();
  const prepare = (sql: string): StatementSync => {
    let statement = statements.get(sql);
    if (statement === undefined) {
      statement = database.prepare(sql);
      statement.setReturnArrays(true);
      statements.set(sql, statement);
    }
    return statement;
  };
  return {
    file,
    inode: statSync(file).ino,
    all: <Shape extends Row>(sql: string, ...values: SQLInputValue[]) =>
      prepare(sql).all(...values) as unknown as Shape[],
    get: <Shape extends Row>(sql: string, ...values: SQLInputValue[]) =>
      prepare(sql).get(...values) as unknown as Shape | undefined,
    statement: prepare,
    run(sql, ...values) {
      prepare(sql).run(...values);
    },
    exec: (sql) => database.exec(sql),
    close: () => database.close(),
  };
}

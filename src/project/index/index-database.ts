import { statSync } from "node:fs";
import type { SQLInputValue, SQLOutputValue, StatementSync } from "node:sqlite";

export type Row = readonly SQLOutputValue[];

/** One connection to an index. Statements are prepared once and kept; rows are lists. */
export interface IndexDatabase {
  /** Of the file that was opened, which may have been replaced since; 0 for one in memory. */
  readonly inode: number;
  /** All rows of a query. The caller states the shape of a row, which the SQL beside it gives. */
  all<Shape extends Row>(sql: string, ...values: SQLInputValue[]): Shape[];
  get<Shape extends Row>(sql: string, ...values: SQLInputValue[]): Shape | undefined;
  /** A statement to run many times. */
  statement(sql: string): StatementSync;
  run(sql: string, ...values: SQLInputValue[]): void;
  /** Several statements, without values. */
  exec(sql: string): void;
  close(): void;
}

/** Opens a connection; throws what SQLite throws. The file is created when it is missing. */
export function openDatabase(file: string, options: { readonly busyTimeoutMs: number }): IndexDatabase {
  // Not imported: a Node without this module could not even load the check that says so.
  const { DatabaseSync } = process.getBuiltinModule("node:sqlite");
  const database = new DatabaseSync(file, { timeout: options.busyTimeoutMs });
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
    inode: statSync(file, { throwIfNoEntry: false })?.ino ?? 0,
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

/** Says that the index cannot be trusted. It never reaches a caller: the index is built anew. */
export class DamagedIndexError extends Error {
  override readonly name = "DamagedIndexError";
}

/** A value that the index keeps as JSON; throws a `DamagedIndexError` for a text that is none. */
export function parseStored<Value>(json: string): Value {
  try {
    return JSON.parse(json) as Value;
  } catch (cause) {
    throw new DamagedIndexError("A value of the index is not JSON.", { cause });
  }
}

/** Whether an error means that the index is damaged, as opposed to busy, full or misused. */
export function isDamage(error: unknown): boolean {
  if (error instanceof DamagedIndexError) return true;
  // SQLITE_CORRUPT and SQLITE_NOTADB; and SQLITE_ERROR, which on statements that are known to be right means
  // that the schema is not what it says it is. Extended codes carry the primary one in their low byte.
  return [11, 26, 1].includes(primaryCodeOf(error));
}

/** Whether another process holds the lock that a statement needs (SQLITE_BUSY). */
export function isBusy(error: unknown): boolean {
  return primaryCodeOf(error) === 5;
}

/** SQLite's result code; undefined for an error that is not SQLite's. */
export function errcodeOf(error: unknown): number | undefined {
  return error instanceof Error && "errcode" in error ? Number(error.errcode) : undefined;
}

function primaryCodeOf(error: unknown): number {
  return (errcodeOf(error) ?? 0) & 0xff;
}

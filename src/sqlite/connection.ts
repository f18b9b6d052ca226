import { statSync } from "node:fs";
import type { DatabaseSync, SQLInputValue, SQLOutputValue, StatementSync } from "node:sqlite";
import { createTransaction, openFile, type Transaction } from "./statements.ts";

export type Row = readonly SQLOutputValue[];

/**
 * A connection that prepares each statement once, by its SQL. Rows are lists, which SQLite hands over faster than objects:
 * callers that read thousands of rows at once use it. Methods throw what SQLite throws.
 */
export class Connection {
  /** The inode of the opened file, which may be replaced later; 0 in memory. */
  readonly inode: number;
  /** Runs work in one transaction. */
  readonly transaction: Transaction;
  readonly #database: DatabaseSync;
  readonly #prepared = new Map<string, StatementSync>();

  /** Creates the file where it is missing. A statement waits up to `timeoutMs` for another process that writes. */
  constructor(file: string, options: { readonly timeoutMs: number }) {
    this.#database = openFile(file, options);
    this.inode = statSync(file, { throwIfNoEntry: false })?.ino ?? 0;
    this.transaction = createTransaction(this.#database);
  }

  /** All rows. The caller states the shape of a row, which the SQL beside it gives. */
  all<Shape extends Row>(sql: string, ...values: SQLInputValue[]): Shape[] {
    return this.statement(sql).all(...values) as unknown as Shape[];
  }

  get<Shape extends Row>(sql: string, ...values: SQLInputValue[]): Shape | undefined {
    return this.statement(sql).get(...values) as unknown as Shape | undefined;
  }

  run(sql: string, ...values: SQLInputValue[]): void {
    this.statement(sql).run(...values);
  }

  /** A statement to run many times. */
  statement(sql: string): StatementSync {
    let statement = this.#prepared.get(sql);
    if (statement === undefined) {
      statement = this.#database.prepare(sql);
      statement.setReturnArrays(true);
      this.#prepared.set(sql, statement);
    }
    return statement;
  }

  /** Several statements, without values. */
  exec(sql: string): void {
    this.#database.exec(sql);
  }

  close(): void {
    this.#database.close();
  }
}

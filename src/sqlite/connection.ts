import { statSync } from "node:fs";
import type { SQLInputValue, SQLOutputValue } from "node:sqlite";
import {
  createTransaction,
  type Database,
  openFile,
  type Statement,
  type Transaction,
} from "./statements.ts";

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
  readonly #database: Database;
  readonly #prepared = new Map<string, Statement>();

  /**
   * Creates the file where it is missing, or uses a database that is open. A statement waits up to `timeoutMs` for another process
   * that writes.
   */
  constructor(where: string | Database, options: { readonly timeoutMs: number }) {
    const isFile = typeof where === "string";
    this.#database = isFile ? openFile(where, options) : where;
    this.inode = (isFile ? statSync(where, { throwIfNoEntry: false })?.ino : undefined) ?? 0;
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
  statement(sql: string): Statement {
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

import { statSync } from "node:fs";
import { isFileFault } from "./database-file.ts";

// Not those of `node:sqlite`: the types of a project, which refer to these, also compile in browser packages.
export type SqlInput = null | number | bigint | string | ArrayBufferView;
export type SqlOutput = null | number | bigint | string | Uint8Array<ArrayBuffer>;

/** The part of a prepared statement that kit uses; implemented by Node and by `DurableDatabase`. */
export interface Statement {
  all(...values: SqlInput[]): Record<string, SqlOutput>[];
  get(...values: SqlInput[]): Record<string, SqlOutput> | undefined;
  iterate(...values: SqlInput[]): Iterable<Record<string, SqlOutput>>;
  run(...values: SqlInput[]): {
    readonly changes: number | bigint;
    readonly lastInsertRowid: number | bigint;
  };
  setReturnArrays(enabled: boolean): void;
}

/** The part of a SQLite database that kit uses: Node's `DatabaseSync`, or a `DurableDatabase`. */
export interface Database {
  readonly isOpen: boolean;
  readonly isTransaction: boolean;
  exec(sql: string): void;
  close(): void;
  prepare(sql: string): Statement;
  /** Runs work in a transaction, or in a savepoint inside another transaction; absent if SQL begins transactions. */
  readonly transaction?: Transaction | undefined;
  /** Whether other stores have their tables in the same database. */
  readonly isShared?: boolean | undefined;
}

/** Opens a file. Loads `node:sqlite` when called: a static import would fail on a Node without it, before kit can say so. */
export function openFile(
  file: string,
  options: { readonly timeoutMs: number; readonly readOnly?: boolean },
): Database {
  const { DatabaseSync } = process.getBuiltinModule("node:sqlite");
  return new DatabaseSync(file, { timeout: options.timeoutMs, readOnly: options.readOnly ?? false });
}

/** A prepared statement. The caller declares the type of its rows, which must match the SQL. */
export interface Query<Row> {
  get(...values: SqlInput[]): Row | undefined;
  all(...values: SqlInput[]): Row[];
  /** Rows one at a time. Read to the end, or leave the loop, before any other statement runs. */
  each(...values: SqlInput[]): Iterable<Row>;
  /** Returns the number of changed rows. */
  run(...values: SqlInput[]): number;
}

/** Prepares a statement whose rows are objects. */
export function query<Row = never>(database: Database, sql: string): Query<Row> {
  const statement = database.prepare(sql);
  return {
    get: (...values) => statement.get(...values) as Row | undefined,
    all: (...values) => statement.all(...values) as Row[],
    each: (...values) => statement.iterate(...values) as Iterable<Row>,
    run: (...values) => Number(statement.run(...values).changes),
  };
}

/** Reads a pragma whose value is a number. */
export function pragma(database: Database, name: string): number {
  return Number(database.prepare(`PRAGMA ${name}`).get()?.[name]);
}

/**
 * Runs work in one transaction that holds the write lock from its start. If the work or the commit throws, all of it is
 * undone. Throws SQLITE_BUSY if another process holds the lock for longer than the connection waits.
 */
export type Transaction = <Value>(work: () => Value) => Value;

export function createTransaction(database: Database): Transaction {
  if (database.transaction !== undefined) return database.transaction;
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

/** Returns the function that runs a part of a transaction: if it throws, only this part is undone, except after a fault of the file. */
export function createSavepoint(database: Database): Transaction {
  if (database.transaction !== undefined) return database.transaction;
  const save = database.prepare("SAVEPOINT one");
  const undo = database.prepare("ROLLBACK TO one");
  const release = database.prepare("RELEASE one");
  return (work) => {
    save.run();
    try {
      const value = work();
      release.run();
      return value;
    } catch (error) {
      // A full disk ends the whole transaction.
      if (database.isTransaction && !isFileFault(error)) {
        undo.run();
        release.run();
      }
      throw error;
    }
  };
}

/** Rolls a transaction back after an error; does nothing if SQLite has rolled it back. */
export function rollback(database: Database): void {
  if (database.isTransaction) database.exec("ROLLBACK");
}

export type Row = readonly SqlOutput[];

/**
 * A connection that prepares each statement once, by its SQL. Rows are arrays, which SQLite returns faster than objects:
 * callers that read thousands of rows at once use it. Methods throw the errors of SQLite.
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

  /** All rows. The caller declares the type of a row, which must match the SQL. */
  all<Shape extends Row>(sql: string, ...values: SqlInput[]): Shape[] {
    return this.statement(sql).all(...values) as unknown as Shape[];
  }

  get<Shape extends Row>(sql: string, ...values: SqlInput[]): Shape | undefined {
    return this.statement(sql).get(...values) as unknown as Shape | undefined;
  }

  run(sql: string, ...values: SqlInput[]): void {
    this.statement(sql).run(...values);
  }

  /** Returns a statement that can run many times. */
  statement(sql: string): Statement {
    let statement = this.#prepared.get(sql);
    if (statement === undefined) {
      statement = this.#database.prepare(sql);
      statement.setReturnArrays(true);
      this.#prepared.set(sql, statement);
    }
    return statement;
  }

  /** Runs several statements without values. */
  exec(sql: string): void {
    this.#database.exec(sql);
  }

  close(): void {
    this.#database.close();
  }
}

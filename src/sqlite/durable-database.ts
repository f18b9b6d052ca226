import type { Database, SqlInput, SqlOutput, Statement } from "./statements.ts";

/** A value in a row of a Durable Object. */
type StoredValue = ArrayBuffer | string | number | null;

/** The part of the storage of a Cloudflare Durable Object that kit uses. */
export interface DurableStorage {
  readonly sql: {
    exec(sql: string, ...values: unknown[]): DurableCursor;
  };
  transactionSync<Value>(work: () => Value): Value;
}

interface DurableCursor extends Iterable<Readonly<Record<string, StoredValue>>> {
  raw(): Iterable<StoredValue[]>;
}

/** Stores the values of pragmas that Cloudflare refuses, for each store in the database. */
const marks = `
CREATE TABLE IF NOT EXISTS kit_stores (
  name TEXT PRIMARY KEY, application_id INTEGER NOT NULL DEFAULT 0, user_version INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;
`;

/**
 * One of kit's stores in the SQLite database of a Durable Object, which several stores share. It has the methods of Node's
 * `DatabaseSync` that kit calls. Cloudflare commits automatically, and no other process can write, so pragmas about files
 * and locks have no effect. It refuses `BEGIN`, so transactions use `transaction`.
 */
export class DurableDatabase implements Database {
  readonly isShared = true;
  readonly #storage: DurableStorage;
  readonly #store: string;
  #depth = 0;
  #isOpen = true;

  /** `store` is the name under which the store's version is kept. */
  constructor(storage: DurableStorage, store: string) {
    this.#storage = storage;
    this.#store = store;
    storage.sql.exec(marks);
    storage.sql.exec("INSERT OR IGNORE INTO kit_stores (name) VALUES (?)", store);
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  get isTransaction(): boolean {
    return this.#depth > 0;
  }

  transaction = <Value>(work: () => Value): Value => {
    this.#depth += 1;
    try {
      return this.#storage.transactionSync(work);
    } catch (error) {
      throw withCode(error);
    } finally {
      this.#depth -= 1;
    }
  };

  exec(sql: string): void {
    if (!/^\s*PRAGMA/i.test(sql)) {
      if (/\S/.test(sql)) drain(this.#run(sql, []));
      return;
    }
    for (const [, name = "", value] of sql.matchAll(/PRAGMA\s+(\w+)\s*=\s*(\d+)/gi))
      if (isMark(name))
        this.#run(`UPDATE kit_stores SET ${name} = ? WHERE name = ?`, [Number(value), this.#store]);
  }

  prepare(sql: string): Statement {
    const pragma = /^\s*PRAGMA\s+(\w+)\s*$/i.exec(sql)?.[1];
    if (pragma === undefined)
      return new DurableStatement({
        run: (values) => this.#runWithIntegers(sql, values),
        changes: () => this.#run("SELECT changes(), last_insert_rowid()", []),
      });
    const isStored = isMark(pragma);
    const read = isStored ? `SELECT ${pragma} FROM kit_stores WHERE name = ?` : `SELECT 0 AS ${pragma}`;
    const run = () => this.#run(read, isStored ? [this.#store] : []);
    return new DurableStatement({ run, changes: run });
  }

  /** Closes this store; the other stores of the database stay open. */
  close(): void {
    this.#isOpen = false;
  }

  /** A number is bound as REAL, as in Node. Cloudflare refuses BigInt values, so the statement casts these from text. */
  #runWithIntegers(sql: string, values: readonly SqlInput[]): DurableCursor {
    if (!values.some((value) => typeof value === "bigint")) return this.#run(sql, values);
    let at = 0;
    const cast = sql.replace(/'[^']*'|\?/g, (part) =>
      part === "?" && typeof values[at++] === "bigint" ? "CAST(? AS INTEGER)" : part,
    );
    return this.#run(
      cast,
      values.map((value) => (typeof value === "bigint" ? String(value) : value)),
    );
  }

  #run(sql: string, values: readonly SqlInput[]): DurableCursor {
    if (!this.#isOpen) throw new Error("database is not open");
    try {
      return this.#storage.sql.exec(sql, ...values);
    } catch (error) {
      throw withCode(error);
    }
  }
}

interface StatementCalls {
  readonly run: (values: readonly SqlInput[]) => DurableCursor;
  /** Returns the number of rows that the last statement has changed, and the id of its last row. */
  readonly changes: () => DurableCursor;
}

class DurableStatement implements Statement {
  readonly #calls: StatementCalls;
  #asLists = false;

  constructor(calls: StatementCalls) {
    this.#calls = calls;
  }

  setReturnArrays(enabled: boolean): void {
    this.#asLists = enabled;
  }

  all(...values: SqlInput[]): Record<string, SqlOutput>[] {
    return [...this.iterate(...values)];
  }

  get(...values: SqlInput[]): Record<string, SqlOutput> | undefined {
    // Reads all rows, because an open cursor keeps its tables in use.
    return this.all(...values)[0];
  }

  *iterate(...values: SqlInput[]): IterableIterator<Record<string, SqlOutput>> {
    const cursor = this.#calls.run(values);
    try {
      // Node also types a row that is an array as a record.
      if (this.#asLists) for (const row of cursor.raw()) yield toList(row) as unknown as Row;
      else for (const row of cursor) yield toRow(row);
    } catch (error) {
      throw withCode(error);
    }
  }

  run(...values: SqlInput[]): { changes: number; lastInsertRowid: number } {
    drain(this.#calls.run(values));
    const [counts = []] = this.#calls.changes().raw();
    return { changes: Number(counts[0]), lastInsertRowid: Number(counts[1]) };
  }
}

type Row = Record<string, SqlOutput>;

function toRow(row: Readonly<Record<string, StoredValue>>): Row {
  const entries = Object.entries(row).map(([name, value]) => [name, toValue(value)] as const);
  return Object.fromEntries(entries);
}

function toList(row: readonly StoredValue[]): SqlOutput[] {
  return row.map(toValue);
}

function toValue(value: StoredValue): SqlOutput {
  return value instanceof ArrayBuffer ? new Uint8Array(value) : value;
}

function drain(cursor: Iterable<unknown>): void {
  for (const _ of cursor);
}

function isMark(name: string): boolean {
  return name === "application_id" || name === "user_version";
}

/** SQLite's result codes, by the names at the end of Cloudflare's messages. */
const codes: Readonly<Record<string, number>> = {
  ERROR: 1,
  BUSY: 5,
  READONLY: 8,
  IOERR: 10,
  CORRUPT: 11,
  FULL: 13,
  CANTOPEN: 14,
  TOOBIG: 18,
  CONSTRAINT: 19,
};

/** Adds SQLite's result code to an error, as `DatabaseSync` does. */
function withCode(error: unknown): unknown {
  if (!(error instanceof Error) || "errcode" in error) return error;
  const [, name = ""] = /\bSQLITE_([A-Z]+)\b/.exec(error.message) ?? [];
  const errcode = codes[name];
  return errcode === undefined ? error : Object.assign(error, { errcode });
}

import { raceSignal } from "../base/abort.ts";
import { KitError } from "../base/kit-error.ts";
import { AnswerGuard, type GuardedCall } from "./answer-guard.ts";
import { NamedStatements, type PostgresQuery, type PostgresResult } from "./named-statements.ts";
import { type OwnPool, openPool, type PostgresPool } from "./pool.ts";
import { hasAnswered, toStoreError } from "./postgres-error.ts";

export type PostgresRow = Readonly<Record<string, unknown>>;

export type PostgresDatabaseOptions = {
  /** The subject of error messages: `The session store`. */
  readonly store: string;
  /** Creates or migrates the tables; called before the first query, and again until it succeeds. */
  readonly prepare: (pool: PostgresPool) => Promise<void>;
  /** The error of a query that conflicts with another writer. Default: `unavailable`. */
  readonly toConflict?: ((error: unknown) => KitError) | undefined;
  /** Milliseconds without an answer before the database is probed over another connection. Default 2,000. */
  readonly patienceMs?: number | undefined;
} & PostgresPlace;

/** The database: an address, or a pool that the caller owns and ends. */
export type PostgresPlace =
  | {
      /** `postgres://user:password@host:5432/name`, with the parameters that the package `pg` supports. */
      readonly url: string;
      /** The most connections; default 10. */
      readonly maxConnections?: number | undefined;
    }
  | { readonly pool: PostgresPool };

export type Ask = (text: string, values?: unknown[]) => Promise<readonly PostgresRow[]>;

export interface QueryOptions {
  /** Whether Postgres plans the statement anew for its values, as lists of any size need it. */
  readonly plansAnew?: boolean | undefined;
}

/** Runs one statement over a connection. `onStale` is called if the connection should not be used again. */
type Run = (
  connection: PostgresQuery,
  statement: { readonly text: string; readonly values?: unknown[] | undefined },
  onStale: () => void,
) => Promise<PostgresResult>;

const plainly: Run = (connection, { text, values }) => connection.query(text, values);

/** Time limit of a silent connection; a long read that receives bytes is not silent. */
const defaultPatienceMs = 2_000;
/** How long a process that is frozen in a transaction can keep its locks. */
const openTransactionMs = 2_000;

/**
 * Tables in a Postgres database, which the first query opens. A query throws `store_unavailable` if the database cannot be
 * reached, and `unavailable` if the package `pg` is missing; the next query tries again.
 */
export class PostgresDatabase {
  readonly #options: PostgresDatabaseOptions;
  readonly #guard: AnswerGuard;
  readonly #runByName: Run;
  #awaySince: number | undefined;
  #own: OwnPool | undefined;
  #opening: Promise<PostgresPool> | undefined;
  #closed = false;

  constructor(options: PostgresDatabaseOptions) {
    this.#options = options;
    const names = new NamedStatements();
    // A pool of the caller can be one that knows no names.
    this.#runByName = "pool" in options ? plainly : (...statement) => names.ask(...statement);
    this.#guard = new AnswerGuard({
      store: options.store,
      probe: (signal) => this.#probe(signal),
      onSilent: () => this.#own?.destroy(),
      patienceMs: options.patienceMs ?? defaultPatienceMs,
    });
  }

  /** Opens the database, and creates or migrates its tables. */
  async open(): Promise<void> {
    await this.#guarded(async () => undefined);
  }

  /** Runs one statement in a transaction. */
  async query(
    text: string,
    values: unknown[] = [],
    { plansAnew = false }: QueryOptions = {},
  ): Promise<readonly PostgresRow[]> {
    return await this.#guarded(async (ask) => await ask(text, values), plansAnew ? plainly : this.#runByName);
  }

  /** Runs `work` in one transaction, which is rolled back if `work` throws. */
  async transaction<Value>(work: (ask: Ask) => Promise<Value>): Promise<Value> {
    return await this.#guarded(async (ask) => {
      await ask(`BEGIN; SET LOCAL idle_in_transaction_session_timeout = ${openTransactionMs}`);
      try {
        const value = await work(ask);
        await ask("COMMIT");
        return value;
      } catch (error) {
        await ask("ROLLBACK").catch(() => undefined);
        throw error;
      }
    });
  }

  /** Ends the connections; a pool of the caller stays open. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.#guard.finish();
    this.#guard.close();
    await this.#opening?.catch(() => undefined);
    const own = this.#own;
    this.#own = undefined;
    await own?.end();
  }

  /** In a transaction, statements have no names: an error would end it, so that it could not be repeated. */
  async #guarded<Value>(work: (ask: Ask) => Promise<Value>, run: Run = plainly): Promise<Value> {
    try {
      const pool = await this.#open();
      return await this.#guard.run((call) => this.#onConnection(pool, call, { work, run }));
    } catch (error) {
      if (error instanceof KitError) throw error;
      if (!hasAnswered(error)) this.#awaySince ??= Date.now();
      const { store, toConflict } = this.#options;
      throw toStoreError(error, { store, toConflict, since: this.#awaySince ?? Date.now() });
    }
  }

  async #onConnection<Value>(
    pool: PostgresPool,
    call: GuardedCall,
    { work, run }: { readonly work: (ask: Ask) => Promise<Value>; readonly run: Run },
  ): Promise<Value> {
    const connection = await pool.connect();
    // The call was rejected while it waited for a connection, so its work must not run.
    if (call.isOver) {
      connection.release();
      throw new KitError({ code: "unavailable", message: `${this.#options.store} did not answer in time.` });
    }
    guardErrors(connection);
    let failed = true;
    let isStale = false;
    const onStale = (): void => {
      isStale = true;
    };
    const release = once(() => connection.release(failed || isStale));
    call.begin({ stop: release, bytes: () => bytesRead(connection) });
    try {
      const value = await work(
        async (text, values) => (await run(connection, { text, values }, onStale)).rows,
      );
      failed = false;
      this.#awaySince = undefined;
      return value;
    } catch (error) {
      // After an error of kit the connection still works.
      failed = !(error instanceof KitError);
      throw error;
    } finally {
      release();
    }
  }

  #open(): Promise<PostgresPool> {
    if (this.#closed) {
      throw new KitError({ code: "unavailable", message: `${this.#options.store} is closed.` });
    }
    this.#opening ??= this.#prepare().catch((error: unknown) => {
      this.#opening = undefined;
      throw error;
    });
    return this.#opening;
  }

  async #prepare(): Promise<PostgresPool> {
    const pool = await this.#pool();
    // The migration of a large database can take long.
    await this.#guard.run(() => this.#options.prepare(pool), { isLong: true });
    return pool;
  }

  async #probe(signal: AbortSignal): Promise<void> {
    if (this.#own !== undefined) return await this.#own.probe(signal);
    await raceSignal(
      this.#pool().then((pool) => pool.query("SELECT 1")),
      signal,
    );
  }

  async #pool(): Promise<PostgresPool> {
    const options = this.#options;
    if ("pool" in options) return options.pool;
    this.#own ??= await openPool(options.url, options.maxConnections ?? 10);
    return this.#own;
  }
}

/** Bytes received over a connection of `pg`; 0 for others. */
function bytesRead(connection: PostgresQuery): number {
  const { connection: inner } = connection as { connection?: { stream?: { bytesRead?: number } } };
  return inner?.stream?.bytesRead ?? 0;
}

const guarded = new WeakSet<PostgresQuery>();

/** A checked-out connection of `pg` that breaks also emits an `error` event, which would end the process without a listener. */
function guardErrors(connection: PostgresQuery): void {
  if (guarded.has(connection)) return;
  guarded.add(connection);
  const { on } = connection as { on?: (event: "error", listener: () => void) => unknown };
  on?.call(connection, "error", () => undefined);
}

function once(work: () => void): () => void {
  let isDone = false;
  return () => {
    if (isDone) return;
    isDone = true;
    work();
  };
}

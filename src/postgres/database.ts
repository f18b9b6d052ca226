import { raceSignal } from "../base/abort.ts";
import { KitError } from "../base/kit-error.ts";
import { AnswerGuard, type GuardedCall } from "./answer-guard.ts";
import { type OwnPool, openPool, type PostgresPool, type PostgresQuery } from "./pool.ts";
import { hasAnswered, toStoreError } from "./postgres-error.ts";

export type PostgresRow = Readonly<Record<string, unknown>>;

export type PostgresDatabaseOptions = {
  /** The subject of an error's sentence: `The session store`. */
  readonly store: string;
  /** Makes the tables or brings them up to date; called before the first query, and again until it has succeeded. */
  readonly prepare: (pool: PostgresPool) => Promise<void>;
  /** The error of a query that met another writer. Default: `unavailable`. */
  readonly toConflict?: ((error: unknown) => KitError) | undefined;
  /** Milliseconds without an answer before the database is asked, over another connection, whether it is there. Default 2,000. */
  readonly patienceMs?: number | undefined;
} & PostgresPlace;

/** Which database: an address, or a pool that the caller keeps and ends. */
export type PostgresPlace =
  | {
      /** `postgres://user:password@host:5432/name`, with the parameters that the package `pg` knows. */
      readonly url: string;
      /** Connections at most; default 10. */
      readonly maxConnections?: number | undefined;
    }
  | { readonly pool: PostgresPool };

export type Ask = (text: string, values?: unknown[]) => Promise<readonly PostgresRow[]>;

/** Time limit of a silent connection; a long read that receives bytes is not silent. */
const defaultPatienceMs = 2_000;
/** A process that is frozen in a transaction keeps its locks for no longer than this. */
const openTransactionMs = 2_000;

/**
 * Tables in a Postgres database. Nothing is opened before the first query. Every query throws `unavailable` where the
 * database, or the package `pg`, is not there; the next one tries again.
 */
export class PostgresDatabase {
  readonly #options: PostgresDatabaseOptions;
  readonly #guard: AnswerGuard;
  #awaySince: number | undefined;
  #own: OwnPool | undefined;
  #opening: Promise<PostgresPool> | undefined;
  #closed = false;

  constructor(options: PostgresDatabaseOptions) {
    this.#options = options;
    this.#guard = new AnswerGuard({
      store: options.store,
      probe: (signal) => this.#probe(signal),
      onSilent: () => this.#own?.destroy(),
      patienceMs: options.patienceMs ?? defaultPatienceMs,
    });
  }

  /** Opens the database, and makes its tables or brings them up to date. */
  async open(): Promise<void> {
    await this.#guarded(async () => undefined);
  }

  /** Runs one statement, which is a transaction of its own. */
  async query(text: string, values: unknown[] = []): Promise<readonly PostgresRow[]> {
    return await this.#guarded(async (ask) => await ask(text, values));
  }

  /** Runs `work` in one transaction: all of it, or, where it throws, nothing. */
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

  /** Ends the connections of its own; a pool that was given stays open. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.#guard.finish();
    this.#guard.close();
    await this.#opening?.catch(() => undefined);
    const own = this.#own;
    this.#own = undefined;
    await own?.end();
  }

  async #guarded<Value>(work: (ask: Ask) => Promise<Value>): Promise<Value> {
    try {
      const pool = await this.#open();
      return await this.#guard.run((call) => this.#onConnection(pool, call, work));
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
    work: (ask: Ask) => Promise<Value>,
  ): Promise<Value> {
    const connection = await pool.connect();
    // Its caller has heard that it failed: it is not done behind their back.
    if (call.isOver) {
      connection.release();
      throw new KitError({ code: "unavailable", message: `${this.#options.store} did not answer in time.` });
    }
    guardErrors(connection);
    let failed = true;
    const release = once(() => connection.release(failed));
    call.begin({ stop: release, bytes: () => bytesRead(connection) });
    try {
      const value = await work(async (text, values) => (await connection.query(text, values)).rows);
      failed = false;
      this.#awaySince = undefined;
      return value;
    } catch (error) {
      // A refusal of kit's own says nothing against the connection.
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
    // A migration of a large database may take its time.
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

import { raceSignal } from "../../base/abort.ts";
import { KitError } from "../../base/kit-error.ts";
import type {
  SessionEntry,
  SessionInfo,
  SessionKey,
  TouchedSessionPage,
} from "../../protocol/session-entry.ts";
import type { AppendRequest, SessionListing, SessionStore } from "../contract.ts";
import { decodeEntry, encodeEntry } from "../entry-text.ts";
import { conflict, placeOf, type SessionRow, toInfo, toTouchedPage } from "../session-row.ts";
import { AnswerGuard } from "./answer-guard.ts";
import { isPostgresUrl } from "./is-postgres-url.ts";
import { hasAnswered, toStoreError } from "./postgres-error.ts";
import { type OwnPool, openPool, type PostgresPool, type PostgresQuery } from "./postgres-pool.ts";
import { migrate, type Statements, statementsFor } from "./session-tables.ts";

/** Which database: an address, or a pool that the caller keeps and ends. */
export type PostgresSessionStoreOptions = {
  /** The schema of kit's tables, made when it is missing; default "kit". */
  readonly schema?: string;
  /**
   * Milliseconds without an answer before kit asks the database, over another connection, whether it is there. Where it
   * does not answer that within the same time, all calls are `store_unavailable` at once, until it does. Default 2,000.
   */
  readonly patienceMs?: number;
} & (
  | {
      /** `postgres://user:password@host:5432/name`, with the parameters that the package `pg` knows. */
      readonly url: string;
      /** Connections at most; default 10. */
      readonly maxConnections?: number;
    }
  | { readonly pool: PostgresPool }
);

/** Time limit of a silent connection; a long read that receives bytes is not silent. */
const defaultPatienceMs = 2_000;

/**
 * Sessions in a Postgres database, for several machines at once.
 *
 * Nothing is opened before the first call, which also makes the tables or brings them up to date. Every call
 * throws `unavailable` where the database, or the package `pg`, is not there; the next one tries again.
 *
 * @example
 * const store = new PostgresSessionStore({ url: "postgres://kit@localhost:5432/kit" });
 */
export class PostgresSessionStore implements SessionStore {
  readonly #options: PostgresSessionStoreOptions;
  readonly #schema: string;
  readonly #statements: Statements;
  readonly #guard: AnswerGuard;
  #awaySince: number | undefined;
  #own: OwnPool | undefined;
  #opening: Promise<PostgresPool> | undefined;
  #closed = false;

  /** Throws `invalid_request` for an address that is none of Postgres. */
  constructor(options: PostgresSessionStoreOptions) {
    if ("url" in options && !isPostgresUrl(options.url)) {
      throw new KitError({
        code: "invalid_request",
        message: "The address of the session store is none of Postgres.",
        hint: "Write postgres://user:password@host:5432/name, with special characters percent-encoded.",
      });
    }
    this.#options = options;
    this.#schema = quoted(options.schema ?? "kit");
    this.#statements = statementsFor(this.#schema);
    this.#guard = new AnswerGuard({
      probe: (signal) => this.#probe(signal),
      onSilent: () => this.#own?.destroy(),
      patienceMs: options.patienceMs ?? defaultPatienceMs,
    });
  }

  async append({ key, expected, entries, parent, input }: AppendRequest): Promise<void> {
    const { append, create } = this.#statements;
    const data = entries.map(encodeEntry);
    const values = [...toValues(key), expected, data, input ?? null];
    const rows =
      expected === 0
        ? await this.#query(create, [...values, new Date().toISOString(), ...toValues(parent)])
        : await this.#query(append, values);
    if (rows.length === 0) throw conflict();
  }

  async read(key: SessionKey, after = 0): Promise<readonly SessionEntry[]> {
    const rows = await this.#query(this.#statements.read, [...toValues(key), after]);
    return rows.map((row) => decodeEntry(String(row.data)));
  }

  async info(key: SessionKey): Promise<SessionInfo | undefined> {
    const [row] = await this.#query(this.#statements.list, toValues(key));
    return row === undefined ? undefined : toInfo(row);
  }

  async list(filter: {
    readonly agent: string;
    readonly instance_id?: string;
  }): Promise<readonly SessionInfo[]> {
    const rows = await this.#query(this.#statements.list, [filter.agent, filter.instance_id ?? null, null]);
    return rows.map(toInfo);
  }

  async delete(key: SessionKey): Promise<void> {
    // The foreign keys take the entries and the sessions below along.
    await this.#query(this.#statements.delete, toValues(key));
  }

  async listAll(page: SessionListing): Promise<TouchedSessionPage> {
    const { limit, cursor, order, agent = null, instance_id = null } = page;
    const { listOldest, listNewest } = this.#statements;
    const place = cursor === undefined && order === "newest" ? Number.MAX_SAFE_INTEGER : placeOf(cursor);
    const rows = await this.#query(order === "newest" ? listNewest : listOldest, [
      place,
      limit + 1,
      agent,
      instance_id,
    ]);
    return toTouchedPage(rows, limit);
  }

  async deleteUntouched(key: SessionKey, before: number): Promise<boolean> {
    const rows = await this.#query(this.#statements.deleteUntouched, [...toValues(key), before]);
    return rows.length > 0;
  }

  /** Ends the connections of its own; a pool that was given stays open. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#guard.close();
    await this.#opening?.catch(() => undefined);
    const own = this.#own;
    this.#own = undefined;
    await own?.end();
  }

  async #query(text: string, values: unknown[]): Promise<readonly SessionRow[]> {
    try {
      const pool = await this.#open();
      return await this.#guard.run(async (call) => {
        const connection = await pool.connect();
        // Its caller has heard that it failed: it is not done behind their back.
        if (call.isOver) {
          connection.release();
          return [];
        }
        hearErrors(connection);
        let failed = true;
        const release = once(() => connection.release(failed));
        call.begin({ stop: release, bytes: () => bytesRead(connection) });
        try {
          const { rows } = await connection.query(text, values);
          failed = false;
          this.#awaySince = undefined;
          return rows;
        } finally {
          release();
        }
      });
    } catch (error) {
      if (!hasAnswered(error)) this.#awaySince ??= Date.now();
      throw toStoreError(error, this.#awaySince ?? Date.now());
    }
  }

  #open(): Promise<PostgresPool> {
    if (this.#closed) throw new KitError({ code: "unavailable", message: "The session store is closed." });
    this.#opening ??= this.#openAndMigrate().catch((error: unknown) => {
      this.#opening = undefined;
      throw error;
    });
    return this.#opening;
  }

  async #openAndMigrate(): Promise<PostgresPool> {
    const pool = await this.#pool();
    // A migration of a large database may take its time.
    await this.#guard.run(() => migrate(pool, this.#schema), { isLong: true });
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

const heard = new WeakSet<PostgresQuery>();

/** A checked-out connection of `pg` that breaks also emits an `error` event, which would end the process without a listener. */
function hearErrors(connection: PostgresQuery): void {
  if (heard.has(connection)) return;
  heard.add(connection);
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

function toValues(key: SessionKey | undefined): unknown[] {
  return key === undefined ? [null, null, null] : [key.agent, key.instance_id, key.session];
}

/** A name as an identifier of SQL. Throws `invalid_request` for what Postgres would cut or refuse. */
function quoted(name: string): string {
  if (name === "" || name.includes("\0") || Buffer.byteLength(name) > 63) {
    throw new KitError({ code: "invalid_request", message: "The name of a schema has 1 to 63 bytes." });
  }
  return `"${name.replaceAll('"', '""')}"`;
}

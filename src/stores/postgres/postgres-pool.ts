import { KitError } from "../../base/kit-error.ts";

/** What kit asks of a connection of the package `pg`. */
export interface PostgresQuery {
  query(text: string, values?: unknown[]): Promise<PostgresResult>;
}

export interface PostgresResult {
  readonly rows: readonly Readonly<Record<string, unknown>>[];
}

/** What kit asks of a pool: a `Pool` of the package `pg` is one. */
export interface PostgresPool extends PostgresQuery {
  connect(): Promise<PostgresQuery & { release(destroy?: boolean): void }>;
}

/** A pool that kit has made, and has to end. */
export interface OwnPool extends PostgresPool {
  end(): Promise<void>;
}

/** Silence of the server after which a connection or a query is given up. */
const connectTimeoutMs = 10_000;
const queryTimeoutMs = 60_000;

/** Makes a pool with the package `pg`, which is loaded here: an optional peer of kit. */
export async function openPool(url: string, maxConnections: number): Promise<OwnPool> {
  const { Pool } = await loadPg();
  const pool = new Pool({
    connectionString: url,
    max: maxConnections,
    connectionTimeoutMillis: connectTimeoutMs,
    query_timeout: queryTimeoutMs,
    keepAlive: true,
  });
  // The server may end a connection that rests; the pool makes another when it is needed.
  pool.on("error", () => undefined);
  return pool;
}

async function loadPg(): Promise<typeof import("pg")> {
  try {
    return await import("pg");
  } catch (error) {
    throw missingPackage(error);
  }
}

function missingPackage(cause: unknown): KitError {
  return new KitError({
    code: "unavailable",
    message: "The Postgres store needs a package that is not installed.",
    hint: "Run: npm install pg",
    cause,
  });
}

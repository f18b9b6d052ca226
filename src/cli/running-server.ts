import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { networkInterfaces } from "node:os";
import { join } from "node:path";
import { stateFolder, stateFolderError } from "../app/state-folder.ts";
import { attempt } from "../base/attempt.ts";
import { makeFolderSync } from "../files/replace-file.ts";
import { isAlive, startOf } from "../processes/is-alive.ts";

/** A server's record of its address and project, for commands that call it. */
export interface RunningServer {
  readonly url: string;
  readonly pid: number;
  /** ISO 8601. */
  readonly started_at: string;
  /** A mark of this start of the machine, where the system has one: a repository can contain records, but does not know it. */
  readonly boot?: string | undefined;
  /** When the process began, as `startOf` reads it: process ids come back. */
  readonly process?: string | undefined;
}

/** Below the state folder: one file per server, named after its process id. */
const folderName = "servers";

/** How often a server checks that its record still exists. */
const pollMs = 1_000;

/**
 * Records where a server of the project listens, until disposed of, and removes the records of crashed servers.
 * Writes the record again if the state folder was deleted, so that an operator can still ask the server what is
 * wrong.
 */
export function announceServer(root: string, url: string): Disposable {
  const folder = join(stateFolder(root), folderName);
  const server: RunningServer = {
    url,
    pid: process.pid,
    started_at: new Date().toISOString(),
    boot: bootMark(),
    process: startOf(process.pid),
  };
  const announce = (): void => {
    makeFolderSync(folder);
    for (const pid of pidsIn(folder)) if (!isAlive(pid)) rmSync(fileOf(folder, pid), { force: true });
    writeFileSync(fileOf(folder, server.pid), `${JSON.stringify(server)}\n`);
  };
  try {
    announce();
  } catch (error) {
    throw stateFolderError(error);
  }
  const timer = setInterval(() => {
    if (existsSync(fileOf(folder, server.pid))) return;
    try {
      // Also writes the file that makes Git ignore the folder.
      stateFolder(root);
      announce();
    } catch {
      // The disk is gone or full: the next check tries again.
    }
  }, pollMs).unref();
  return {
    [Symbol.dispose]() {
      clearInterval(timer);
      rmSync(fileOf(folder, server.pid), { force: true });
    },
  };
}

/**
 * The servers that run for a project, oldest first: the first one does the work, the others accept work and take
 * over when it stops.
 */
export async function findRunningServers(root: string): Promise<readonly RunningServer[]> {
  const folder = join(root, ".kit", folderName);
  const servers = pidsIn(folder)
    .filter(isAlive)
    .map((pid) => readAnnouncement(fileOf(folder, pid)))
    .filter((server) => server !== undefined)
    .filter(isOfThisMachine);
  const listening = await Promise.all(servers.map(({ url }) => isListening(url)));
  return servers
    .filter((_, index) => listening[index])
    .sort((left, right) => (left.started_at < right.started_at ? -1 : 1));
}

/**
 * Whether the process of a record is the server that wrote it: its id may be that of another process by now, and a
 * repository can contain records.
 */
export function isServerProcess({ pid, process: began, boot }: RunningServer): boolean {
  if (boot !== undefined) return began === startOf(pid);
  try {
    // Where the system has no mark of its start, the command line has to be that of a server.
    return /kit\S* .*\b(?:dev|start)\b/.test(
      execFileSync("ps", ["-o", "args=", "-p", String(pid)], { encoding: "utf8" }),
    );
  } catch {
    return false;
  }
}

/** Commands send their key and their prompts to the server of a record, so it must be one that this machine has written. */
function isOfThisMachine({ url, boot }: RunningServer): boolean {
  const mark = bootMark();
  if (mark !== undefined) return boot === mark;
  const host = URL.parse(url)?.hostname.replace(/^\[|\]$/g, "") ?? "";
  const addresses = Object.values(networkInterfaces()).flatMap((each) => each ?? []);
  return host === "localhost" || addresses.some(({ address }) => address === host);
}

/** Linux gives each start of a machine an id. */
export function bootMark(): string | undefined {
  return attempt(() =>
    createHash("sha256").update(readFileSync("/proc/sys/kernel/random/boot_id")).digest("hex"),
  );
}

/** How long a server on this machine may take to accept a connection, in ms. */
const connectMs = 1_000;

/** The process id of a killed server may still exist: as a zombie, or as another process. */
function isListening(url: string): Promise<boolean> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve) => {
    const socket = connect({ host: hostname.replace(/^\[|\]$/g, ""), port: Number(port) });
    const end = (isOpen: boolean): void => {
      socket.destroy();
      resolve(isOpen);
    };
    socket.setTimeout(connectMs, () => end(false));
    socket.once("connect", () => end(true));
    socket.once("error", () => end(false));
  });
}

function fileOf(folder: string, pid: number): string {
  return join(folder, `${pid}.json`);
}

function pidsIn(folder: string): readonly number[] {
  // No server ever ran here.
  return attempt(
    () =>
      readdirSync(folder)
        .map((name) => Number(/^(\d+)\.json$/.exec(name)?.[1]))
        .filter((pid) => !Number.isNaN(pid)),
    [],
  );
}

function readAnnouncement(file: string): RunningServer | undefined {
  try {
    const {
      url,
      pid,
      started_at,
      boot,
      process: began,
    }: Partial<Record<keyof RunningServer, unknown>> = JSON.parse(readFileSync(file, "utf8"));
    const isWhole = typeof url === "string" && typeof pid === "number" && typeof started_at === "string";
    if (!isWhole || !URL.canParse(url)) return undefined;
    return {
      url,
      pid,
      started_at,
      boot: typeof boot === "string" ? boot : undefined,
      process: typeof began === "string" ? began : undefined,
    };
  } catch {
    // A crash cut the file off, or it was removed meanwhile.
    return undefined;
  }
}

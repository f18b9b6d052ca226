import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as delay } from "node:timers/promises";
import { freePort } from "../../../src/testing/free-port.ts";

/** How long a start or an end may take on the busiest machine. */
const patienceMs = 90_000;
const ownLauncher = join(import.meta.dirname, "../../../bin/kit.mjs");

/** `kit start` on a project, which can be restarted on the same port. */
export interface KitProcess {
  readonly url: string;
  readonly port: number;
  readonly pid: number;
  /** Starts the server, with more environment variables, and resolves once it listens. */
  start(environment?: Readonly<Record<string, string>>): Promise<void>;
  /** Ends the server with a signal; returns its exit code, null after a kill. */
  end(signal: "SIGKILL" | "SIGTERM"): Promise<number | null>;
  /** The stderr of all starts. */
  stderr(): string;
  /** Resident memory in MB. Linux only, like the next one. */
  memoryMb(): number;
  sockets(): number;
}

export interface KitProcessOptions {
  /** `bin/kit.mjs` of a copy of the package. */
  readonly launcher?: string;
  /** How many files the process may have open. */
  readonly fileLimit?: number;
}

export async function createKitProcess(
  root: string,
  more: readonly string[] = [],
  { launcher = ownLauncher, fileLimit }: KitProcessOptions = {},
): Promise<KitProcess> {
  const port = await freePort();
  const limited = fileLimit === undefined ? [] : ["sh", "-c", `ulimit -n ${fileLimit}; exec "$@"`, "sh"];
  let child: ChildProcess | undefined;
  let errors = "";
  const pid = (): number => child?.pid ?? 0;
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    get pid() {
      return pid();
    },
    async start(environment = {}) {
      const { KIT_API_KEYS: _, ...env } = process.env;
      const words = [...limited, process.execPath, launcher, "start", "--port", `${port}`, "--json", ...more];
      const started = spawn(words[0] ?? "", words.slice(1), {
        cwd: root,
        env: { ...env, ...environment },
        stdio: ["ignore", "pipe", "pipe"],
      });
      child = started;
      started.stderr.on("data", (chunk: Buffer) => {
        errors += chunk.toString();
      });
      const listening = once(createInterface({ input: started.stdout }), "line");
      const ended = once(started, "exit").then(() => {
        throw new Error(`kit start has ended: ${errors}`);
      });
      ended.catch(() => undefined);
      await inTime(Promise.race([listening, ended]), () => `kit start does not listen: ${errors}`);
    },
    async end(signal) {
      if (child === undefined || child.exitCode !== null || child.signalCode !== null) return null;
      const ended = once(child, "exit");
      child.kill(signal);
      const [code] = await inTime(ended, () => `kit start does not end after ${signal}: ${errors}`);
      return code;
    },
    stderr: () => errors,
    memoryMb() {
      const status = readFileSync(`/proc/${pid()}/status`, "utf8");
      return Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1]) / 1_024;
    },
    sockets() {
      const folder = `/proc/${pid()}/fd`;
      const links = readdirSync(folder).map((name) => {
        try {
          return readlinkSync(join(folder, name));
        } catch {
          // The descriptor was closed in between.
          return "";
        }
      });
      return links.filter((link) => link.startsWith("socket:")).length;
    },
  };
}

/** Rejects if a promise takes too long, so that a test that hangs says on what. */
async function inTime<Value>(promise: Promise<Value>, why: () => string): Promise<Value> {
  const timer = new AbortController();
  const late = delay(patienceMs, undefined, { signal: timer.signal }).then(() => {
    throw new Error(why());
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    timer.abort();
    late.catch(() => undefined);
  }
}

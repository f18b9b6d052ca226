import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdir, readFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { setTimeout as delay } from "node:timers/promises";
import { freePort } from "../service/subjects/listen.ts";

/** A started server: its address, the processes whose processor time counts, and a way to stop it. */
export interface StartedServer {
  readonly url: string;
  pids(): readonly number[];
  /** Why the server no longer answers; `undefined` while it can. */
  failure?(): string | undefined;
  end(): Promise<void>;
}

export interface ColdStart {
  readonly wallMs: number;
  /** NaN if the system does not report it. */
  readonly cpuMs: number;
}

/** The time between two attempts to reach a server that does not listen yet, in ms. */
const retryMs = 5;
const patienceMs = 60_000;

/** Returns the least wall time and the least processor time of a few starts, each until /health answers. */
export async function measureColdStarts(
  start: () => Promise<StartedServer>,
  rounds: number,
): Promise<ColdStart> {
  const found: ColdStart[] = [];
  for (let round = 0; round < rounds; round += 1) found.push(await measureColdStart(start));
  const least = (of: keyof ColdStart): number => Math.min(...found.map((one) => one[of]));
  return { wallMs: least("wallMs"), cpuMs: least("cpuMs") };
}

async function measureColdStart(start: () => Promise<StartedServer>): Promise<ColdStart> {
  const started = performance.now();
  const server = await start();
  try {
    await firstAnswer(server);
    const wallMs = performance.now() - started;
    return { wallMs, cpuMs: await processorMsOf(server.pids()) };
  } finally {
    await server.end();
  }
}

async function firstAnswer(server: StartedServer): Promise<void> {
  const url = `${server.url}/health`;
  const until = performance.now() + patienceMs;
  while (performance.now() < until) {
    const reply = await fetch(url).catch(() => undefined);
    if (reply?.ok === true) return;
    const failure = server.failure?.() ?? (reply && `${url} answered ${reply.status}: ${await reply.text()}`);
    if (failure !== undefined) throw new Error(failure);
    await delay(retryMs);
  }
  throw new Error(`${url} did not answer within ${patienceMs / 1_000} seconds.`);
}

/** Starts a program that serves on the given port, outside the project and its packages. */
export async function startProgram(
  args: (port: number) => readonly string[],
  variables: Readonly<Record<string, string>> = {},
): Promise<StartedServer> {
  const port = await freePort();
  const { PATH, HOME, TMPDIR } = process.env;
  // In a process group, with the processes that it starts.
  const child = spawn(process.execPath, args(port), {
    cwd: tmpdir(),
    env: { PATH, HOME, TMPDIR, PORT: String(port), ...variables },
    stdio: ["ignore", "pipe", "pipe"],
    detached: true,
  });
  const { pid } = child;
  if (pid === undefined) throw new Error(`${process.execPath} did not start.`);
  let log = "";
  const collect = (chunk: Buffer): void => {
    log += chunk.toString();
  };
  child.stdout.on("data", collect);
  child.stderr.on("data", collect);
  const ended = once(child, "exit");
  const isOver = (): boolean => child.exitCode !== null || child.signalCode !== null;
  return {
    url: `http://localhost:${port}`,
    pids: () => [pid],
    failure: () => (isOver() ? `The server has ended: ${log}` : undefined),
    end: async () => {
      if (isOver()) return;
      process.kill(-pid, "SIGTERM");
      const timer = setTimeout(() => process.kill(-pid, "SIGKILL"), 5_000);
      await ended;
      clearTimeout(timer);
    },
  };
}

/** Returns the processor time so far of processes and their children, in ms, with a resolution of 10 ms. */
async function processorMsOf(pids: readonly number[]): Promise<number> {
  const ticks = new Map<number, { readonly parent: number; readonly spent: number }>();
  for (const name of await readdir("/proc").catch(() => [])) {
    if (!/^\d+$/.test(name)) continue;
    const stat = await readFile(`/proc/${name}/stat`, "latin1").catch(() => "");
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    // utime, stime, and the same of children that have ended.
    const spent = [11, 12, 13, 14].reduce((sum, at) => sum + Number(fields[at]), 0);
    ticks.set(Number(name), { parent: Number(fields[1]), spent });
  }
  if (!pids.every((pid) => ticks.has(pid))) return Number.NaN;
  const counts = (pid: number): boolean =>
    pids.includes(pid) || (ticks.has(pid) && counts(ticks.get(pid)?.parent ?? 0));
  return [...ticks].filter(([pid]) => counts(pid)).reduce((sum, [, { spent }]) => sum + spent, 0) * 10;
}

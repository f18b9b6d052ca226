import { spawn } from "node:child_process";
import { openSync, readdirSync, readFileSync } from "node:fs";
import { Socket } from "node:net";
import { Readable, type Writable } from "node:stream";
import { onAbort } from "../base/abort.ts";
import { attempt } from "../base/attempt.ts";
import { longestTimerMs } from "../base/clock.ts";
import { graceMs, signalGroup } from "./end-group.ts";

export interface ProcessOptions {
  /** A path, or a name that is looked up in the `PATH` of `env`. No shell reads it. */
  readonly program: string;
  readonly args: readonly string[];
  readonly cwd?: string | undefined;
  /** The whole environment: the process inherits nothing of this one's. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Whether its input is a pipe. Default: it has none. */
  readonly hasInput?: boolean | undefined;
  /** The descriptors of the process from 3 on. */
  readonly extra?: readonly (number | "pipe")[] | undefined;
}

/** How a process ended: with a code, or by a signal. */
export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** A process in its own group, so that the processes that it starts end with it. */
export interface RunningProcess {
  /** `undefined` if the process could not be started; `exited` rejects with the reason. */
  readonly pid: number | undefined;
  readonly stdin: Writable | null;
  readonly stdout: Readable;
  readonly stderr: Readable;
  /** The pipe on a descriptor from 3 on. */
  pipe(descriptor: number): Readable | undefined;
  /** Resolves when the process has ended; rejects with the system's error if it could not be started. */
  readonly exited: Promise<Exit>;
  /** Resolves when all of its output is read, or when it could not be started. */
  readonly closed: Promise<void>;
  /** Like `closed`, but destroys the output after `graceMs`, because other processes may hold it open. */
  closeOutput(graceMs: number): Promise<void>;
  /** Signals the whole group. */
  signal(name: NodeJS.Signals): void;
  /** Makes the process keep this one alive, which is the default; `unref` undoes it. */
  ref(): void;
  unref(): void;
}

/**
 * Starts a process without a shell, in a group of its own, with no descriptor and no variable of this process.
 * Throws what Node throws for arguments that no program can have (a NUL character, too long a list).
 */
export function startProcess(options: ProcessOptions): RunningProcess {
  const child = spawn(options.program, [...options.args], {
    cwd: options.cwd,
    env: { ...options.env },
    stdio: [options.hasInput ? "pipe" : "ignore", "pipe", "pipe", ...descriptors(options.extra ?? [])],
    // Ctrl-C in a terminal then reaches only this process, which ends its children itself.
    detached: process.platform !== "win32",
    windowsHide: true,
  });
  const { pid, stdin } = child;
  // If the system has no descriptor left, there are no streams.
  const [stdout, stderr] = [child.stdout ?? Readable.from([]), child.stderr ?? Readable.from([])];
  // Ignore stream errors: a process can end without reading its input or while it writes, and `exited` reports that.
  for (const stream of [stdin, stdout, stderr]) stream?.on("error", () => undefined);
  const closed = Promise.withResolvers<void>();
  child.once("close", () => closed.resolve());
  const exited = new Promise<Exit>((resolve, reject) => {
    child.once("exit", (code, signal) => resolve({ code, signal }));
    child.once("error", (error) => {
      reject(error);
      if (pid === undefined) closed.resolve();
    });
  });
  exited.catch(() => undefined);
  const handles = [child, ...[stdin, stdout, stderr].filter((stream) => stream instanceof Socket)];
  return {
    pid,
    stdin,
    stdout,
    stderr,
    pipe(descriptor) {
      const stream = child.stdio[descriptor];
      return stream instanceof Readable ? stream : undefined;
    },
    exited,
    closed: closed.promise,
    async closeOutput(graceMs) {
      const destroy = (): void => {
        for (const stream of child.stdio) stream?.destroy();
      };
      // A busy event loop calls a late timer before it reads what has been written meanwhile, and an immediate afterwards.
      const timer = setTimeout(() => setImmediate(destroy), graceMs).unref();
      await closed.promise;
      clearTimeout(timer);
    },
    signal(name) {
      if (pid !== undefined) signalGroup(pid, name);
    },
    ref() {
      for (const handle of handles) handle.ref();
    },
    unref() {
      for (const handle of handles) handle.unref();
    },
  };
}

let inheritedDescriptors: readonly number[] | undefined;
let nullDevice: number | undefined;

/**
 * The descriptors of a child from 3 on: `own` first, then /dev/null for every descriptor that this process inherited from
 * its parent. Node closes only descriptors that it opened itself.
 */
function descriptors(own: readonly (number | "pipe")[]): (number | "pipe" | "ignore")[] {
  inheritedDescriptors ??= findInherited();
  const highest = Math.max(2 + own.length, ...inheritedDescriptors);
  const list: (number | "pipe" | "ignore")[] = [];
  for (let number = 3; number <= highest; number += 1) {
    list.push(own[number - 3] ?? (inheritedDescriptors.includes(number) ? openNullDevice() : "ignore"));
  }
  return list;
}

const closesOnExec = 0o2000000;

/** Linux lists the descriptors that a child would inherit; other systems do not. */
function findInherited(): readonly number[] {
  return attempt(
    () =>
      readdirSync("/proc/self/fdinfo")
        .map(Number)
        .filter((number) => number > 2 && number < 1_024 && isInherited(number)),
    [],
  );
}

function isInherited(number: number): boolean {
  try {
    const flags = /^flags:\s*([0-7]+)/m.exec(readFileSync(`/proc/self/fdinfo/${number}`, "utf8"))?.[1];
    return flags !== undefined && (Number.parseInt(flags, 8) & closesOnExec) === 0;
  } catch {
    // This descriptor was open to list the folder.
    return false;
  }
}

function openNullDevice(): number {
  nullDevice ??= openSync("/dev/null", "r+");
  return nullDevice;
}

/** Why a process was stopped: time limit, abort by the caller, too much output, or paths that have lost their protection. */
type StopReason = "timeout" | "abort" | "flood" | "unprotected";

interface StopConditions {
  readonly timeoutMs: number;
  /** Any of these stops the process. */
  readonly signals: readonly (AbortSignal | undefined)[];
}

interface Stop {
  /** Stops the process, unless it was stopped before. */
  now(why: StopReason): void;
  /** The first reason; undefined for a process that was not stopped. */
  reason(): StopReason | undefined;
  /** Removes timers and listeners; call it when the process has ended. */
  release(): void;
}

/** Calls `stop` once, at the time limit or when a signal fires. `release` calls the function that `stop` returned. */
export function stopOn({ timeoutMs, signals }: StopConditions, stop: () => () => void): Stop {
  let reason: StopReason | undefined;
  let undo: (() => void) | undefined;
  const now = (why: StopReason): void => {
    if (reason !== undefined) return;
    reason = why;
    undo = stop();
  };
  const timer = setTimeout(() => now("timeout"), Math.min(timeoutMs, longestTimerMs));
  const listening = signals.map((signal) => onAbort(signal, () => now("abort")));
  return {
    now,
    reason: () => reason,
    release() {
      clearTimeout(timer);
      for (const end of listening) end();
      undo?.();
    },
  };
}

/** Sends SIGTERM, and SIGKILL after `graceMs`; the returned function cancels the SIGKILL. */
export function terminate(target: { signal(name: "SIGTERM" | "SIGKILL"): void }): () => void {
  target.signal("SIGTERM");
  const killTimer = setTimeout(() => target.signal("SIGKILL"), graceMs);
  return () => clearTimeout(killTimer);
}

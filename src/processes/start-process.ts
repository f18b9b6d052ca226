import { spawn } from "node:child_process";
import { Socket } from "node:net";
import { Readable, type Writable } from "node:stream";
import { descriptors } from "./descriptors.ts";
import { signalGroup } from "./end-group.ts";

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

/** A process with a group of its own, so that what it starts ends with it. */
export interface RunningProcess {
  /** Undefined if it could not be started; `exited` says why. */
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
  /** Like `closed`, but destroys the output after so many milliseconds: what outlives the process may hold it open. */
  closeOutput(graceMs: number): Promise<void>;
  /** Signals the whole group. */
  signal(name: NodeJS.Signals): void;
  /** Whether it keeps this process alive. It does at first. */
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
    // Ctrl-C in a terminal reaches this process alone, which ends its children as it sees fit.
    detached: process.platform !== "win32",
    windowsHide: true,
  });
  const { pid, stdin } = child;
  // Where the system has no descriptor left, there are no streams.
  const [stdout, stderr] = [child.stdout ?? Readable.from([]), child.stderr ?? Readable.from([])];
  // A process may end without reading its input, and be killed while it writes: its end tells.
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
      const timer = setTimeout(() => {
        for (const stream of child.stdio) stream?.destroy();
      }, graceMs).unref();
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

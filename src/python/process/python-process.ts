import { fileURLToPath } from "node:url";
import { attempt } from "../../base/attempt.ts";
import { KitError } from "../../base/kit-error.ts";
import { ownModule } from "../../base/own-package.ts";
import { type RunningProcess, startProcess } from "../../processes/start-process.ts";
import { createFrameReader, encodeFrame } from "./frame.ts";
import type { HostMessage, ProcessMessage } from "./messages.ts";

/** Why a process ended: kit or its watchdog killed it, or it crashed. */
export type ProcessEnd = "closed" | "time" | "memory" | "crash";

export interface ProcessListener {
  message(message: ProcessMessage, attachment: Uint8Array): void;
  ended(end: ProcessEnd): void;
}

/** One Python process. It has one listener at a time, that of its current run. */
export interface PythonProcess {
  readonly pid: number | undefined;
  /** False after the process ended or sent an invalid message. */
  readonly alive: boolean;
  send(message: HostMessage, attachment?: Uint8Array): void;
  listen(listener: ProcessListener | undefined): void;
  /** Kills the process. The listener gets `end`. */
  kill(end: ProcessEnd): void;
  /** Resolves when the process has ended. */
  readonly gone: Promise<void>;
  /** Lets the host program exit while this process is idle. */
  unref(): void;
  ref(): void;
}

const installCommand = "npm install @pydantic/monty@0.0.18";

// V8 prints this when its heap is full, for example because of a program's values.
const outOfMemory = /heap out of memory|Allocation failed|memory allocation of \d+ bytes failed/;

const readyTimeoutMs = 30_000;

/**
 * Starts a process and waits until it has loaded Monty. The process inherits no environment variables. Throws `unavailable`
 * if Monty is not installed or cannot be loaded.
 */
export async function startPythonProcess(backend: string): Promise<PythonProcess> {
  // Monty passes keyword arguments as an object, in which `__proto__` must be an ordinary key.
  const flags = ["--max-old-space-size=1024", "--no-warnings", "--disable-proto=delete"];
  const child = startProcess({
    program: process.execPath,
    args: [
      ...flags,
      fileURLToPath(ownModule("python/child/main")),
      attempt(() => import.meta.resolve(backend), backend),
      String(process.pid),
    ],
    env: systemEnvironment(),
    hasInput: true,
  });
  const started = watch(child);
  await new Promise<void>((resolve, reject) => {
    const fail = (reason: "missing" | "broken", cause: unknown): void => {
      clearTimeout(timer);
      started.kill("closed");
      reject(unavailable(reason, cause));
    };
    const timer = setTimeout(() => fail("broken", new Error("It did not start in time.")), readyTimeoutMs);
    child.exited.catch((error: unknown) => fail("broken", error));
    started.listen({
      message(message) {
        if (message.type === "ready") {
          clearTimeout(timer);
          resolve();
        } else if (message.type === "unavailable") fail(message.reason, new Error(message.message));
      },
      ended: () => fail("broken", new Error("It ended while it started.")),
    });
  });
  started.listen(undefined);
  return started;
}

/** Windows needs one variable to start a program; no other is passed on. */
function systemEnvironment(): NodeJS.ProcessEnv {
  const { SystemRoot } = process.env;
  return process.platform === "win32" && SystemRoot !== undefined ? { SystemRoot } : {};
}

function watch(child: RunningProcess): PythonProcess {
  let listener: ProcessListener | undefined;
  let end: ProcessEnd | undefined;
  let alive = true;
  let errors = "";
  const { stdin, stdout, stderr } = child;
  const reader = createFrameReader();
  const kill = (reason: ProcessEnd): void => {
    end ??= reason;
    alive = false;
    child.signal("SIGKILL");
  };
  stdout.on("data", (chunk: Buffer) => {
    try {
      for (const { header, attachment } of reader.push(chunk)) {
        if (alive) listener?.message(header as ProcessMessage, attachment);
      }
    } catch {
      // kit's own process never sends such a message, so kill it.
      kill("crash");
    }
  });
  stderr.on("data", (chunk: Buffer) => {
    // Keep only a short part of stderr, which explains the end of the process.
    if (errors.length < 16_384) errors += chunk.toString("utf8");
  });
  const gone = child.closed.then(() => {
    alive = false;
    listener?.ended(end ?? endOf(errors));
    listener = undefined;
  });
  return {
    pid: child.pid,
    get alive() {
      return alive;
    },
    send: (message, attachment) => {
      stdin?.write(encodeFrame(message, attachment));
    },
    listen(next) {
      listener = next;
    },
    kill,
    gone,
    ref: () => child.ref(),
    unref: () => child.unref(),
  };
}

function endOf(errors: string): ProcessEnd {
  const reason = /kit-watchdog: (\w+)/.exec(errors)?.[1];
  if (reason === "time" || reason === "memory") return reason;
  return outOfMemory.test(errors) ? "memory" : "crash";
}

function unavailable(reason: "missing" | "broken", cause: unknown): KitError {
  return reason === "missing"
    ? new KitError({
        code: "unavailable",
        message: `Running Python needs a package that is not installed: ${installCommand}`,
        cause,
      })
    : new KitError({
        code: "unavailable",
        message: "kit could not start the process that runs Python.",
        hint: `Install its package again: ${installCommand}`,
        cause,
      });
}

import { fileURLToPath } from "node:url";
import { KitError } from "../../base/kit-error.ts";
import { ownModule } from "../../base/own-package.ts";
import { type RunningProcess, startProcess } from "../../processes/start-process.ts";
import { createFrameReader, encodeFrame } from "./frame.ts";
import type { HostMessage, ProcessMessage } from "./messages.ts";

/** Why a process is gone: kit or its own watchdog ended it, or it broke down. */
export type ProcessEnd = "closed" | "time" | "memory" | "crash";

export interface ProcessListener {
  message(message: ProcessMessage, attachment: Uint8Array): void;
  ended(end: ProcessEnd): void;
}

/** One Python process. It hears one listener at a time: that of the run it works on. */
export interface PythonProcess {
  readonly pid: number | undefined;
  /** False once it is gone or has said something that makes no sense. */
  readonly alive: boolean;
  send(message: HostMessage, attachment?: Uint8Array): void;
  listen(listener: ProcessListener | undefined): void;
  /** Ends it at once, whatever it does. `end` is what the listener is told. */
  kill(end: ProcessEnd): void;
  /** Resolves when it is gone. */
  readonly gone: Promise<void>;
  /** Lets the program of the host end while this process waits for work. */
  unref(): void;
  ref(): void;
}

const installCommand = "npm install @pydantic/monty@0.0.18";

// V8 says this when its heap is full, which the values of a program can do as well as Python's heap.
const outOfMemory = /heap out of memory|Allocation failed|memory allocation of \d+ bytes failed/;

const readyTimeoutMs = 30_000;

/**
 * Starts a process and waits until Monty is loaded in it. It inherits nothing of the environment. Throws
 * `unavailable` where Monty is not installed or does not load here.
 */
export async function startPythonProcess(backend: string): Promise<PythonProcess> {
  // Monty gives keyword arguments as an object: `__proto__` is to be a key of it like any other.
  const flags = ["--max-old-space-size=1024", "--no-warnings", "--disable-proto=delete"];
  const child = startProcess({
    program: process.execPath,
    args: [...flags, fileURLToPath(ownModule("python/child/main")), resolved(backend), String(process.pid)],
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

/** Windows itself needs one variable to start a program; nothing else is handed on. */
function systemEnvironment(): NodeJS.ProcessEnv {
  const { SystemRoot } = process.env;
  return process.platform === "win32" && SystemRoot !== undefined ? { SystemRoot } : {};
}

/** Where this process finds the package: the project's, where it is not installed beside kit. */
function resolved(backend: string): string {
  try {
    return import.meta.resolve(backend);
  } catch {
    return backend;
  }
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
      // Nothing that kit runs speaks like this: whatever it is now, it does not go on.
      kill("crash");
    }
  });
  stderr.on("data", (chunk: Buffer) => {
    // The last words of a process are short; a flood of them is not collected.
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
        message: "The process that runs Python could not be started.",
        hint: `Install its package again: ${installCommand}`,
        cause,
      });
}

import { type ChildProcess, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { constants } from "node:os";
import { StringDecoder } from "node:string_decoder";
import { longestTimerMs } from "../../../base/clock.ts";
import { KitError } from "../../../base/kit-error.ts";
import type { ExecRequest, ExecResult } from "../../contract.ts";
import type { Launch } from "../wall/enclose.ts";
import { createBoundedOutput } from "./bounded-output.ts";
import { graceMs, markName } from "./end-group.ts";
import { descriptors } from "./inherited.ts";
import { groupOf, type Processes, walledIn } from "./processes.ts";

export interface RunProcessOptions extends Launch, Pick<ExecRequest, "stdin" | "onOutput"> {
  /** Path of the folder for the system; it is entered before this returns. */
  readonly folder: string;
  readonly timeoutMs: number;
  readonly maxOutputBytes: number;
  /** Bytes of output that end the command; default 256 MiB. */
  readonly floodBytes?: number;
  /** Any of these ends the command. */
  readonly signals: readonly AbortSignal[];
}

/** A command that writes more is out of control, and reading it keeps this process from its work. */
const defaultFloodBytes = 256 * 1024 * 1024;

/**
 * Runs a program in a process group of its own, and resolves when it has ended with all that it
 * started. A program that cannot be started is a result as a shell gives it: 127 or 126.
 */
export async function runProcess(options: RunProcessOptions): Promise<ExecResult> {
  const started = performance.now();
  const mark = randomUUID();
  const { wall, floodBytes = defaultFloodBytes } = options;
  const start = (): ChildProcess =>
    spawn(options.program, [...options.args], {
      cwd: options.folder,
      env: wall === undefined ? { ...options.environment, [markName]: mark } : options.environment,
      detached: process.platform !== "win32",
      stdio: [
        options.stdin === undefined ? "ignore" : "pipe",
        "pipe",
        "pipe",
        ...descriptors(
          wall === undefined ? [] : ["pipe", ...(wall.filter === undefined ? [] : [wall.filter])],
        ),
      ],
      windowsHide: true,
    });
  try {
    const child = start();
    const processes = wall === undefined ? groupOf(child, mark) : walledIn(child);
    const stop = stopOn(processes, options);
    const output = collectOutput(child, { ...options, floodBytes }, () => stop.now("flood"));
    feed(child, options.stdin);
    const exitCode = await ended(child).finally(stop.release);
    await processes.end();
    await output.closed();
    const reason = stop.reason();
    if (reason === undefined && exitCode === 1 && !(await processes.started()))
      throw notWalledIn(output.stderr.text());
    const note =
      reason === "flood" ? `\nThe command was stopped: it wrote more than ${floodBytes} bytes.\n` : "";
    return {
      exit_code: reason === undefined ? exitCode : null,
      stdout: output.stdout.text(),
      stderr: output.stderr.text() + note,
      dropped_bytes: output.stdout.droppedBytes + output.stderr.droppedBytes,
      timed_out: reason === "timeout",
      duration_ms: performance.now() - started,
    };
  } catch (error) {
    return notStarted(error, options.program, performance.now() - started);
  }
}

/** As a shell says it, for a program that a signal has ended: 128 and the signal's number. */
function ended(child: ChildProcess): Promise<number> {
  return new Promise((resolve, reject) => {
    child.once("exit", (code, signal) =>
      resolve(code ?? 128 + (signal === null ? 0 : constants.signals[signal])),
    );
    child.once("error", reject);
  });
}

/** What it says names folders of this machine, so only the cause has it. */
function notWalledIn(text: string): KitError {
  return new KitError({
    code: "unavailable",
    message: "The command was not run: its wall could not be built.",
    hint: "Run 'kit doctor'. A folder that is renamed or removed just then is the other cause: try again.",
    cause: new Error(text.slice(0, 1_000)),
  });
}

/** The result that a shell gives; a machine that can start nothing more is an error. */
function notStarted(error: unknown, program: string, durationMs: number): ExecResult {
  const reason = reasons.get(error instanceof Error && "code" in error ? error.code : undefined);
  if (reason === undefined) throw error;
  return {
    exit_code: reason.exitCode,
    stdout: "",
    stderr: `${program}: ${reason.text}\n`,
    dropped_bytes: 0,
    timed_out: false,
    duration_ms: durationMs,
  };
}

const reasons: ReadonlyMap<unknown, { readonly exitCode: number; readonly text: string }> = new Map([
  ["ENOENT", { exitCode: 127, text: "command not found" }],
  ["ENOTDIR", { exitCode: 127, text: "command not found" }],
  ["EACCES", { exitCode: 126, text: "permission denied" }],
  ["ENOEXEC", { exitCode: 126, text: "not a program of this machine" }],
  ["E2BIG", { exitCode: 126, text: "argument list too long" }],
  ["ENAMETOOLONG", { exitCode: 127, text: "command not found" }],
]);

type StopReason = "timeout" | "abort" | "flood";

/** Ends the command when its time is over or a signal fires: asks first, then makes sure. */
function stopOn(
  processes: Processes,
  { timeoutMs, signals }: RunProcessOptions,
): { now(why: StopReason): void; reason(): StopReason | undefined; release(): void } {
  let reason: StopReason | undefined;
  let insist: NodeJS.Timeout | undefined;
  const stop = (why: StopReason): void => {
    if (reason !== undefined) return;
    reason = why;
    processes.signal("SIGTERM");
    insist = setTimeout(() => processes.signal("SIGKILL"), graceMs);
  };
  const onAbort = (): void => stop("abort");
  const timer = setTimeout(() => stop("timeout"), Math.min(timeoutMs, longestTimerMs));
  for (const signal of signals) {
    signal.addEventListener("abort", onAbort, { once: true });
    if (signal.aborted) onAbort();
  }
  return {
    now: stop,
    reason: () => reason,
    release() {
      clearTimeout(timer);
      clearTimeout(insist);
      for (const signal of signals) signal.removeEventListener("abort", onAbort);
    },
  };
}

function feed(child: ChildProcess, stdin: string | undefined): void {
  // A program may end without reading all that it is given.
  child.stdin?.on("error", () => undefined);
  if (stdin !== undefined) child.stdin?.end(stdin);
}

function collectOutput(
  child: ChildProcess,
  { maxOutputBytes, floodBytes, onOutput }: RunProcessOptions & { readonly floodBytes: number },
  onFlood: () => void,
) {
  let total = 0;
  const collect = (stream: "stdout" | "stderr") => {
    const kept = createBoundedOutput(maxOutputBytes);
    const decoder = new StringDecoder("utf8");
    child[stream]?.on("data", (chunk: Buffer) => {
      kept.add(chunk);
      total += chunk.length;
      if (total > floodBytes) onFlood();
      if (onOutput === undefined || kept.droppedBytes > 0) return;
      try {
        onOutput({ stream, text: decoder.write(chunk) });
      } catch {
        // Who listens badly must not harm the command.
      }
    });
    child[stream]?.on("error", () => undefined);
    return kept;
  };
  const closing = new Promise<void>((resolve) => {
    child.once("close", () => resolve());
    child.once("error", () => resolve());
  });
  return {
    stdout: collect("stdout"),
    stderr: collect("stderr"),
    /** Resolves when all output is there, or when something that outlived the command holds it open. */
    async closed(): Promise<void> {
      const timer = setTimeout(() => {
        child.stdout?.destroy();
        child.stderr?.destroy();
      }, graceMs);
      await closing;
      clearTimeout(timer);
    },
  };
}

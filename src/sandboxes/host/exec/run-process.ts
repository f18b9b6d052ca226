import { type ChildProcess, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { StringDecoder } from "node:string_decoder";
import { longestTimerMs } from "../../../base/clock.ts";
import type { ExecRequest, ExecResult } from "../../contract.ts";
import { createBoundedOutput } from "./bounded-output.ts";
import { endGroup, graceMs, markName, signalGroup } from "./end-group.ts";

export interface RunProcessOptions extends Pick<ExecRequest, "stdin" | "onOutput"> {
  readonly program: string;
  readonly args: readonly string[];
  /** Path of the folder for the system; it is entered before this returns. */
  readonly folder: string;
  readonly environment: Readonly<Record<string, string>>;
  readonly timeoutMs: number;
  readonly maxOutputBytes: number;
  /** Any of these ends the command. */
  readonly signals: readonly AbortSignal[];
}

/**
 * Runs a program in a process group of its own, and resolves when it has ended with all that it
 * started. A program that cannot be started is a result as a shell gives it: 127 or 126.
 */
export async function runProcess(options: RunProcessOptions): Promise<ExecResult> {
  const started = performance.now();
  const mark = randomUUID();
  const start = (): ChildProcess =>
    spawn(options.program, [...options.args], {
      cwd: options.folder,
      env: { ...options.environment, [markName]: mark },
      detached: process.platform !== "win32",
      stdio: [options.stdin === undefined ? "ignore" : "pipe", "pipe", "pipe"],
      windowsHide: true,
    });
  try {
    const child = start();
    const output = collectOutput(child, options);
    feed(child, options.stdin);
    const stop = stopOn(child, options);
    const exitCode = await ended(child).finally(stop.release);
    if (child.pid !== undefined) await endGroup(child.pid, mark);
    await output.closed();
    return {
      exit_code: stop.reason() === undefined ? exitCode : null,
      stdout: output.stdout.text(),
      stderr: output.stderr.text(),
      dropped_bytes: output.stdout.droppedBytes + output.stderr.droppedBytes,
      timed_out: stop.reason() === "timeout",
      duration_ms: performance.now() - started,
    };
  } catch (error) {
    return notStarted(error, options.program, performance.now() - started);
  }
}

function ended(child: ChildProcess): Promise<number | null> {
  return new Promise((resolve, reject) => {
    child.once("exit", resolve);
    child.once("error", reject);
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

/** Ends the command when its time is over or a signal fires: asks first, then makes sure. */
function stopOn(
  child: ChildProcess,
  { timeoutMs, signals }: RunProcessOptions,
): { reason(): "timeout" | "abort" | undefined; release(): void } {
  let reason: "timeout" | "abort" | undefined;
  let insist: NodeJS.Timeout | undefined;
  const stop = (why: "timeout" | "abort"): void => {
    if (reason !== undefined || child.pid === undefined) return;
    reason = why;
    const group = child.pid;
    signalGroup(group, "SIGTERM");
    insist = setTimeout(() => signalGroup(group, "SIGKILL"), graceMs);
  };
  const onAbort = (): void => stop("abort");
  const timer = setTimeout(() => stop("timeout"), Math.min(timeoutMs, longestTimerMs));
  for (const signal of signals) {
    signal.addEventListener("abort", onAbort, { once: true });
    if (signal.aborted) onAbort();
  }
  return {
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

function collectOutput(child: ChildProcess, { maxOutputBytes, onOutput }: RunProcessOptions) {
  const collect = (stream: "stdout" | "stderr") => {
    const kept = createBoundedOutput(maxOutputBytes);
    const decoder = new StringDecoder("utf8");
    child[stream]?.on("data", (chunk: Buffer) => {
      kept.add(chunk);
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

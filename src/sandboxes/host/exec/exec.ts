import { readFileSync } from "node:fs";
import { constants } from "node:os";
import { join } from "node:path";
import { StringDecoder } from "node:string_decoder";
import { setTimeout } from "node:timers/promises";
import { onAbort } from "../../../base/abort.ts";
import { KitError } from "../../../base/kit-error.ts";
import { invalid } from "../../../files/obstacle.ts";
import { createBoundedOutput } from "../../../processes/bounded-output.ts";
import {
  createMark,
  endGroup,
  graceMs,
  markName,
  signalGroup,
  traceOf,
} from "../../../processes/end-group.ts";
import {
  type Exit,
  type RunningProcess,
  startProcess,
  stopOn,
  terminate,
} from "../../../processes/start-process.ts";
import type { ExecRequest, ExecResult } from "../../contract.ts";
import { misplacedMount } from "../wall/command-limits.ts";
import { enclose, type Launch } from "../wall/enclose.ts";
import { type View, withPlace } from "../workspace-path.ts";
import { composeEnvironment } from "./command-environment.ts";

const defaultTimeoutMs = 120_000;
const defaultMaxOutputBytes = 1024 * 1024;

/** Runs a command in a folder of the workspace. The folder is entered by descriptor, so that no link leads out. */
export async function exec(view: View, request: ExecRequest): Promise<ExecResult> {
  const { signal } = request;
  signal?.throwIfAborted();
  if (view.workspace.closing.aborted) {
    throw new KitError({ code: "unavailable", message: "The sandbox is closed." });
  }
  const [program, ...args] =
    typeof request.command === "string" ? ["/bin/sh", "-c", "--", request.command] : request.command;
  if (program === undefined || program === "") throw invalid("The command is empty.");
  if ([program, ...args].some((word) => word.includes("\0"))) {
    throw invalid("A command cannot contain NUL characters.");
  }
  const { workspace } = view;
  return await withPlace(view, request.cwd ?? "", {
    end: "folder",
    work: async (place) => {
      const launch = await enclose(workspace, {
        program,
        args,
        folder: join(workspace.root, place.path),
        environment: composeEnvironment(workspace.root, [await workspace.environment(), request.env ?? {}]),
        access: request.access ?? {},
      });
      const running = runProcess({
        ...launch,
        folder: place.folder,
        timeoutMs: request.timeoutMs ?? defaultTimeoutMs,
        maxOutputBytes: request.maxOutputBytes ?? defaultMaxOutputBytes,
        signals: signal === undefined ? [workspace.closing] : [workspace.closing, signal],
        ...(request.stdin === undefined ? {} : { stdin: request.stdin }),
        ...(request.onOutput === undefined ? {} : { onOutput: request.onOutput }),
      });
      const notes: string[] = [];
      const result = await running.finally(async () => void notes.push(...((await launch.close?.()) ?? [])));
      return { ...result, stderr: [result.stderr, ...notes.map((note) => `${note}\n`)].join("") };
    },
  });
}

interface RunProcessOptions extends Launch, Pick<ExecRequest, "stdin" | "onOutput"> {
  /** The folder's path for the system, which may name a descriptor; the process enters it before `runProcess` returns. */
  readonly folder: string;
  readonly timeoutMs: number;
  readonly maxOutputBytes: number;
  /** A command that writes more bytes is stopped; default 256 MiB. */
  readonly floodBytes?: number;
  /** Any of these ends the command. */
  readonly signals: readonly AbortSignal[];
}

/** Reading more output would keep this process from its other work. */
const defaultFloodBytes = 256 * 1024 * 1024;

/**
 * Runs a program in a new process group, and resolves when it and all processes that it started have ended.
 * For a program that cannot be started, resolves with the exit code of a shell: 127 or 126.
 */
export async function runProcess(options: RunProcessOptions): Promise<ExecResult> {
  const started = performance.now();
  const mark = createMark();
  const { wall, floodBytes = defaultFloodBytes } = options;
  try {
    const command = startProcess({
      program: options.program,
      args: options.args,
      // Bubblewrap enters the folder itself. The number of its descriptor may be that of one that bubblewrap gets.
      cwd: wall === undefined ? options.folder : "/",
      env: wall === undefined ? { ...options.environment, [markName]: mark } : options.environment,
      hasInput: options.stdin !== undefined,
      extra: ["pipe", ...(wall?.descriptors ?? [])],
    });
    const processes = wall === undefined ? groupOf(command, mark) : walledIn(command);
    const stop = stopOn(options, () => terminate(processes));
    const listening = onAbort(options.unprotected, () => {
      stop.now("unprotected");
      // Without the time that a command otherwise has to end.
      processes.signal("SIGKILL");
    });
    const output = collectOutput(command, { ...options, floodBytes }, () => stop.now("flood"));
    command.stdin?.end(options.stdin);
    const exitCode = exitCodeOf(
      await command.exited.finally(() => {
        listening();
        stop.release();
      }),
    );
    await processes.end();
    await command.closeOutput(graceMs);
    const reason = stop.reason();
    const isOut = wall !== undefined && output.stderr.text() === misplacedMount;
    if (reason === undefined && exitCode === 1 && (isOut || !(await processes.started())))
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

/** The exit code of a shell: 128 plus the signal number for a program that a signal ended. */
function exitCodeOf({ code, signal }: Exit): number {
  return code ?? 128 + (signal === null ? 0 : constants.signals[signal]);
}

/** Bubblewrap's message names folders of this machine, so it goes into the cause only. */
function notWalledIn(text: string): KitError {
  return new KitError({
    code: "unavailable",
    message: "The command was not run: its isolation could not be set up.",
    hint: "Try again, in case a folder was renamed or removed at that moment; otherwise run 'kit doctor'.",
    cause: new Error(text.slice(0, 1_000)),
  });
}

/** The result that a shell reports; rethrows other errors, such as a machine that cannot start more processes. */
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

function collectOutput(
  command: RunningProcess,
  { maxOutputBytes, floodBytes, onOutput }: RunProcessOptions & { readonly floodBytes: number },
  onFlood: () => void,
) {
  let total = 0;
  const collect = (stream: "stdout" | "stderr") => {
    const output = createBoundedOutput(maxOutputBytes);
    const decoder = new StringDecoder("utf8");
    command[stream].on("data", (chunk: Buffer) => {
      output.add(chunk);
      total += chunk.length;
      if (total > floodBytes) onFlood();
      if (onOutput === undefined || output.droppedBytes > 0) return;
      try {
        onOutput({ stream, text: decoder.write(chunk) });
      } catch {
        // Listener errors never fail the command.
      }
    });
    return output;
  };
  return { stdout: collect("stdout"), stderr: collect("stderr") };
}

/** The processes of a command, which end together. */
interface Processes {
  /** SIGTERM asks the processes to end; SIGKILL forces them. */
  signal(signal: "SIGTERM" | "SIGKILL"): void;
  /** Call after the program has ended. Resolves when no process is left. */
  end(): Promise<void>;
  /** Whether the program was started; bubblewrap may have failed before. */
  started(): Promise<boolean>;
}

function groupOf({ pid, signal }: RunningProcess, mark: string): Processes {
  const trace = pid === undefined ? undefined : traceOf(pid, mark);
  return {
    signal,
    async end() {
      if (trace !== undefined) await endGroup(trace);
    },
    started: async () => true,
  };
}

/**
 * The processes inside bubblewrap. When bubblewrap ends, its first inner process ends, and with it all others.
 * Descriptor 3 reports the id of that first process, and whether the program was started.
 */
function walledIn(wall: RunningProcess): Processes {
  const status = wall.pipe(3);
  let text = "";
  const read = Promise.withResolvers<void>();
  if (status !== undefined) {
    status.setEncoding("utf8");
    status.on("data", (part: string) => {
      text += part;
    });
    for (const event of ["close", "error"]) status.once(event, () => read.resolve());
  } else read.resolve();
  const first = (): number | undefined => {
    const found = /"child-pid": *(\d+)/.exec(text)?.[1];
    return found === undefined ? undefined : Number(found);
  };
  return {
    signal(signal) {
      const inner = first();
      // SIGTERM goes to the inner process only: bubblewrap itself would end before the processes inside can react.
      if (signal === "SIGTERM" && inner !== undefined) signalGroup(inner, signal);
      else wall.signal("SIGKILL");
    },
    async end() {
      const inner = first();
      const end = performance.now() + graceMs;
      while (inner !== undefined && isAlive(inner) && performance.now() < end) await setTimeout(1);
    },
    async started() {
      await read.promise;
      return text.includes('"exit-code"');
    },
  };
}

/** False also for a zombie: a first process that has ended has no process left in its namespace. */
function isAlive(id: number): boolean {
  try {
    const stat = readFileSync(`/proc/${id}/stat`, "latin1");
    return !/^[ZX]/.test(stat.slice(stat.lastIndexOf(")") + 2));
  } catch {
    return false;
  }
}

import { setImmediate as nextTurn } from "node:timers/promises";
import { CommanderError } from "commander";
import { createOutput, type InputStream, type OutputStream } from "./print/output.ts";
import { createProgram } from "./program.ts";

/** The environment of a command line: its streams, and the folder that it starts in (absolute). */
export interface CommandHost {
  readonly stdin: InputStream;
  readonly stdout: OutputStream;
  readonly stderr: OutputStream;
  readonly cwd: string;
  /** Default: this process. */
  readonly signals?: SignalSource;
  /** Default: the system of this process. */
  readonly platform?: NodeJS.Platform | undefined;
}

/**
 * Runs one kit command line, given without `node` and the script, and returns how the process should end. Prints
 * every error itself and never throws.
 */
export async function main(
  argv: readonly string[],
  host: CommandHost = { ...standardStreams(), cwd: process.cwd() },
): Promise<number> {
  const { cwd, stdin: input, platform = process.platform } = host;
  const output = createOutput(host.stdout, host.stderr);
  const interrupt = listenForInterrupt(host.signals);
  let exitCode = 0;
  let json = argv.includes("--json");
  const program = createProgram(output, async (globals, { run, drains }) => {
    json = globals.json;
    if (drains !== true) interrupt.insistAfter(patienceMs);
    const { createContext } = await import("./create-context.ts");
    const { signal } = interrupt;
    exitCode = (await run(createContext(globals, { output, input, signal, platform, startedIn: cwd }))) ?? 0;
  });
  try {
    await program.parseAsync(argv[0] === "help" ? [...argv.slice(1), "--help"] : argv, { from: "user" });
    // A stream reports the error of the last write in the next turn.
    await nextTurn();
    return exitCode === 0 && output.hasFailed ? 1 : exitCode;
  } catch (error) {
    if (interrupt.isCause(error)) return interrupt.exitCode();
    // Commander throws for everything that ends a command line early, including requested help, and the help of a
    // group when no command is named.
    const isUsage = error instanceof CommanderError;
    if (isUsage && (error.exitCode === 0 || error.code === "commander.help")) return 0;
    // These modules are loaded only for a failure, to keep the help fast.
    const { reportError } = await import("./report-error.ts");
    const { toUsageError } = await import("./to-usage-error.ts");
    const debug = process.env.KIT_DEBUG === "1";
    return reportError(isUsage ? toUsageError(error, argv) : error, output, { json, debug });
  } finally {
    output.progress("");
    interrupt.stop();
  }
}

/** How long a command may take to clean up after a signal, in ms. */
const patienceMs = 5_000;

function standardStreams(): Omit<CommandHost, "cwd"> {
  const { stdin, stdout, stderr } = process;
  return { stdin, stdout, stderr };
}

/** The exit codes for SIGINT and SIGTERM, as shells define them. */
type InterruptExitCode = 130 | 143;

/** Ctrl-C and SIGTERM, as commands receive them. */
interface Interrupt {
  readonly signal: AbortSignal;
  exitCode(): InterruptExitCode;
  /** Whether an error only says that the work was aborted. */
  isCause(error: unknown): boolean;
  /** Ends the process if the command is still running this long after the first signal, in ms. */
  insistAfter(ms: number): void;
  /** Restores Node's signal handling: at once or, after a signal, when its echo can no longer come. */
  stop(): void;
}

/** A second signal within this time is the same Ctrl-C, forwarded by npm or by the launcher, in ms. */
const echoMs = 500;

/**
 * Emits SIGINT and SIGTERM by name: `process`, or an emitter of a program that runs command lines in its own
 * process.
 */
type SignalSource = Pick<NodeJS.EventEmitter, "on" | "off">;

/** The first Ctrl-C or SIGTERM asks the command to end; a second one ends the process at once. */
export function listenForInterrupt(source: SignalSource = process): Interrupt {
  const controller = new AbortController();
  const ended = new AbortController();
  let exitCode: InterruptExitCode = 130;
  let firstAt = 0;
  const onSignal = (name: NodeJS.Signals): void => {
    if (!controller.signal.aborted) {
      exitCode = name === "SIGTERM" ? 143 : 130;
      firstAt = Date.now();
      controller.abort(new DOMException(`Ended by ${name}.`, "AbortError"));
    } else if (Date.now() - firstAt > echoMs) {
      process.exit(exitCode);
    }
  };
  source.on("SIGINT", onSignal);
  source.on("SIGTERM", onSignal);
  const restore = (): void => {
    source.off("SIGINT", onSignal);
    source.off("SIGTERM", onSignal);
  };
  return {
    signal: controller.signal,
    insistAfter(ms) {
      const insist = (): void => {
        // The timer keeps the process alive: otherwise it would end with another exit code while the command waits
        // without a handle.
        const timer = setTimeout(() => process.exit(exitCode), ms);
        ended.signal.addEventListener("abort", () => clearTimeout(timer), { once: true });
      };
      if (controller.signal.aborted) insist();
      else controller.signal.addEventListener("abort", insist, { once: true });
    },
    exitCode: () => exitCode,
    isCause: (error) =>
      controller.signal.aborted &&
      (error === controller.signal.reason || (error instanceof Error && error.name === "AbortError")),
    stop: () => {
      ended.abort();
      // A forwarded signal that arrives while the process ends would end it without its exit code.
      if (controller.signal.aborted) setTimeout(restore, echoMs).unref();
      else restore();
    },
  };
}

import { statSync } from "node:fs";
import { resolve } from "node:path";
import { CommanderError } from "commander";
import type { CommandContext, ExitCode } from "./command.ts";
import { findRoot } from "./find-root.ts";
import { createOutput, type Output } from "./output.ts";
import { createProgram, type GlobalOptions } from "./program.ts";
import { reportError, usageError } from "./report-error.ts";
import { toUsageError } from "./to-usage-error.ts";

/** 130 and 143: ended by Ctrl-C or SIGTERM, as shells write it. */
export type ProcessExitCode = ExitCode | 130 | 143;

/**
 * Runs one command line of kit, given without `node` and the script, and says how the process
 * should end. Prints every error itself and never throws one.
 */
export async function main(argv: readonly string[]): Promise<ProcessExitCode> {
  const output = createOutput(process.stdout, process.stderr);
  const interrupt = listenForInterrupt();
  let exitCode: ExitCode = 0;
  let json = argv.includes("--json");
  const program = createProgram(output, async (globals, run) => {
    json = globals.json;
    exitCode = await run(createContext(globals, { output, signal: interrupt.signal }));
  });
  try {
    await program.parseAsync(toCommandLine(argv), { from: "user" });
    return exitCode;
  } catch (error) {
    if (interrupt.signal.aborted && isAbort(error, interrupt.signal)) return interrupt.exitCode();
    if (error instanceof CommanderError && error.exitCode === 0) return 0;
    // A group of commands without a command: the help was the answer.
    if (error instanceof CommanderError && error.code === "commander.help") return 0;
    const debug = process.env.KIT_DEBUG === "1";
    return reportError(error instanceof CommanderError ? toUsageError(error, argv) : error, output, {
      json,
      debug,
    });
  } finally {
    interrupt.stop();
  }
}

/** `kit help specs list` is `kit specs list --help`. */
function toCommandLine(argv: readonly string[]): readonly string[] {
  return argv[0] === "help" ? [...argv.slice(1), "--help"] : argv;
}

function createContext(
  globals: GlobalOptions,
  given: { readonly output: Output; readonly signal: AbortSignal },
): CommandContext {
  const { json, config, cwd } = globals;
  const folder = resolve(cwd ?? ".");
  if (!statSync(folder, { throwIfNoEntry: false })?.isDirectory()) {
    throw usageError(`--cwd: ${cwd} is not a folder.`);
  }
  const root = cwd === undefined ? findRoot(folder) : folder;
  return { ...given, json, configFile: config, cwd: folder, root, env: process.env };
}

interface Interrupt {
  readonly signal: AbortSignal;
  exitCode(): 130 | 143;
  stop(): void;
}

/** Time in which a second signal is the same Ctrl-C, sent on by npm or by the launcher, in ms. */
const echoMs = 500;

/** The first Ctrl-C or SIGTERM asks the command to end; a second one ends the process at once. */
function listenForInterrupt(): Interrupt {
  const controller = new AbortController();
  let exitCode: 130 | 143 = 130;
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
  process.on("SIGINT", onSignal);
  process.on("SIGTERM", onSignal);
  return {
    signal: controller.signal,
    exitCode: () => exitCode,
    stop: () => {
      process.off("SIGINT", onSignal);
      process.off("SIGTERM", onSignal);
    },
  };
}

function isAbort(error: unknown, signal: AbortSignal): boolean {
  return error === signal.reason || (error instanceof Error && error.name === "AbortError");
}

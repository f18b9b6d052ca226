import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { EventEmitter } from "node:events";
import { PassThrough, Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { main } from "../main.ts";

export interface RunOptions {
  readonly cwd: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly input?: string;
  /** The keys that a person types at the terminal, in place of `input`; with `columns`. */
  readonly typed?: string;
  /** Makes the streams those of a terminal of so many columns. Only in this process. */
  readonly columns?: number;
  /** Has kit take the system for another one, such as "win32". Only in this process. */
  readonly platform?: NodeJS.Platform | undefined;
}

export interface RunResult {
  readonly exitCode: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

// As the launcher does it, with the source in the place of what is built from it.
const script = `import { enableCompileCache } from "node:module";
enableCompileCache();
const { main } = await import(${JSON.stringify(new URL("../main.ts", import.meta.url).href)});
process.exitCode = await main(process.argv.slice(1));`;

/** The words that run a command line of kit. */
export function kitCommandLine(args: readonly string[]): readonly string[] {
  return [process.execPath, "--input-type=module", "--eval", script, "--", ...args];
}

/** Starts the real command line, from its source, as a process of its own. */
export function startKit(
  args: readonly string[],
  { cwd, env = {} }: RunOptions,
): ChildProcessWithoutNullStreams {
  const [command = "", ...subcommands] = kitCommandLine(args);
  return spawn(command, subcommands, { cwd, env: { ...forKit(process.env), ...env } });
}

/** A command line under way, in this process or as one of its own. */
export interface RunningKit {
  readonly stdout: Readable;
  readonly stderr: Readable;
  /** The exit code; null after a signal that ended the process. */
  readonly ended: Promise<number | null>;
  signal(name: NodeJS.Signals): void;
}

/** Starts one command line as a process of its own: for what a kill or a second Ctrl-C does, or what two processes do. */
export function beginProcess(args: readonly string[], options: RunOptions): RunningKit {
  const child = startKit(args, options);
  const { stdout, stderr } = child;
  const ended = new Promise<number | null>((resolve) => child.once("close", resolve));
  return { stdout, stderr, ended, signal: (name) => child.kill(name) };
}

/**
 * Starts one command line in this process, which is the quick way. Lines that run side by side are given the same
 * variables. SIGINT and SIGTERM arrive, once; the rest is for `beginProcess`.
 */
export function beginKit(
  args: readonly string[],
  { cwd, env = {}, typed, input = typed ?? "", columns, platform }: RunOptions,
): RunningKit {
  if (running++ === 0) before = { ...process.env };
  const stdin = Object.assign(Readable.from(input === "" ? [] : [input]), {
    isTTY: typed !== undefined,
  });
  const terminal = columns === undefined ? {} : { isTTY: true, columns };
  const stdout = Object.assign(new PassThrough(), terminal);
  const stderr = Object.assign(new PassThrough(), terminal);
  const signals = new EventEmitter();
  replaceEnvironment({ ...forKit(before), ...env });
  const ended = main(args, { stdin, stdout, stderr, cwd, signals, platform }).finally(() => {
    stdout.end();
    stderr.end();
    // A line may read variables from a `.env`.
    if (--running === 0) replaceEnvironment(before);
  });
  let isSignalled = false;
  const signal = (name: NodeJS.Signals): boolean => {
    // A second one would end the process of the tests.
    if (isSignalled) return false;
    isSignalled = true;
    return signals.emit(name, name);
  };
  return { stdout, stderr, ended, signal };
}

/** Runs one command line to its end, in this process. */
export async function runKit(args: readonly string[], options: RunOptions): Promise<RunResult> {
  const line = beginKit(args, options);
  const [stdout, stderr, exitCode] = await Promise.all([text(line.stdout), text(line.stderr), line.ended]);
  return { exitCode, stdout, stderr };
}

/** Lines under way in this process, and the variables before the first of them. */
let running = 0;
let before: NodeJS.ProcessEnv = {};

function replaceEnvironment(variables: NodeJS.ProcessEnv): void {
  for (const name of Object.keys(process.env)) if (!(name in variables)) delete process.env[name];
  Object.assign(process.env, variables);
}

/** Variables of the tests that a command line may see. */
export function forKit({
  NO_COLOR: _,
  FORCE_COLOR: __,
  KIT_API_KEYS: ___,
  ...variables
}: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return variables;
}

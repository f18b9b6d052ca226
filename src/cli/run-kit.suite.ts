import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { text } from "node:stream/consumers";

export interface RunOptions {
  readonly cwd: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly input?: string;
}

export interface RunResult {
  readonly exitCode: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

// As the launcher does it, with the source in the place of what is built from it.
const script = `import { enableCompileCache } from "node:module";
enableCompileCache();
const { main } = await import(${JSON.stringify(new URL("main.ts", import.meta.url).href)});
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
  const { NO_COLOR: _, FORCE_COLOR: __, KIT_API_KEYS: ___, ...inherited } = process.env;
  const [command = "", ...words] = kitCommandLine(args);
  return spawn(command, words, {
    cwd,
    env: { ...inherited, ...env },
  });
}

/** Runs one command line to its end. */
export async function runKit(args: readonly string[], options: RunOptions): Promise<RunResult> {
  const child = startKit(args, options);
  child.stdin.end(options.input ?? "");
  const closed = new Promise<number | null>((resolve) => child.once("close", resolve));
  const [stdout, stderr, exitCode] = await Promise.all([text(child.stdout), text(child.stderr), closed]);
  return { exitCode, stdout, stderr };
}

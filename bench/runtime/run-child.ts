import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

const timeoutMs = 600_000;

/** A RAM disk if there is one, so that figures measure the code and not the disk. */
export const scratchRoot: string = statSync("/dev/shm", { throwIfNoEntry: false }) ? "/dev/shm" : tmpdir();

/**
 * Runs a script in a separate process, with a fresh folder below `root` as its last argument, and reads the
 * last line of its output as JSON.
 */
export async function runChild<Result>(
  {
    file,
    root = scratchRoot,
    flags = [],
  }: { readonly file: string; readonly root?: string; readonly flags?: readonly string[] },
  args: readonly string[],
): Promise<Result> {
  const folder = mkdtempSync(join(root, "kit-bench-"));
  try {
    // Every subject gets the flags of this process (`node --max-semi-space-size=16 bench/runtime/main.ts`).
    const { stdout } = await promisify(execFile)(
      process.execPath,
      [...process.execArgv, ...flags, file, ...args, folder],
      {
        timeout: timeoutMs,
        maxBuffer: 64 * 1024 * 1024,
        env: childEnvironment(),
      },
    );
    return JSON.parse(stdout.trimEnd().split("\n").at(-1) ?? "") as Result;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** An environment that is independent of the caller's, in which no library sends telemetry. */
function childEnvironment(): NodeJS.ProcessEnv {
  const { PATH, HOME, KIT_BENCH_SERVER_FLAGS } = process.env;
  return {
    PATH,
    HOME,
    KIT_BENCH_SERVER_FLAGS,
    NODE_ENV: "production",
    NODE_NO_WARNINGS: "1",
    MASTRA_TELEMETRY_DISABLED: "1",
    VOLTAGENT_TELEMETRY_DISABLED: "true",
    LANGCHAIN_TRACING_V2: "false",
    OPENAI_AGENTS_DISABLE_TRACING: "1",
  };
}

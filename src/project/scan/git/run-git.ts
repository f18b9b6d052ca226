import { spawn } from "node:child_process";
import { delimiter, isAbsolute } from "node:path";
import { isShortage, systemObstacle } from "../../../files/obstacle.ts";

/** What came of one call of Git. Only an abort throws; everything else is a value. */
export type GitResult =
  | { readonly status: "ok"; readonly stdout: string }
  | { readonly status: "failed"; readonly exitCode: number; readonly stdout: string; readonly stderr: string }
  | { readonly status: "missing" }
  | { readonly status: "timeout" }
  | { readonly status: "too-large" };

export interface RunGitOptions {
  /** The folder Git runs in; must exist. */
  readonly cwd: string;
  readonly signal?: AbortSignal | undefined;
  /** After this the process is killed; default 20,000. */
  readonly timeoutMs?: number;
  /** After this many characters of output the process is killed; default 64 Mi. */
  readonly maxLength?: number;
  /** Settings of the call beyond the hardening ones, as `[key, value]`. */
  readonly settings?: readonly (readonly [string, string])[];
  /** Takes the output as it comes; `stdout` of the result is then empty. */
  readonly onOutput?: (text: string) => void;
}

/**
 * Settings that keep a repository's own configuration from starting programs or the network: a
 * repository may come out of an archive, with a `.git/config` that somebody else wrote.
 */
const hardening: readonly (readonly [string, string])[] = [
  ["core.fsmonitor", "false"],
  ["core.hooksPath", "/dev/null"],
  ["log.showSignature", "false"],
  ["log.showRoot", "true"],
  ["protocol.allow", "never"],
  ["safe.bareRepository", "explicit"],
  ["submodule.recurse", "false"],
];

/** Variables Git needs to be found and to know its user; none of `GIT_*` is passed on. */
const passedOn = ["HOME", "USERPROFILE", "XDG_CONFIG_HOME", "SystemRoot", "TEMP", "TMP", "TMPDIR"];

/**
 * Runs Git without a shell, in a clean environment, never asking and never writing.
 *
 * `args` start with the subcommand. Callers put `--end-of-options` before whatever a person typed.
 */
export function runGit(args: readonly string[], options: RunGitOptions): Promise<GitResult> {
  const { signal, timeoutMs = 20_000, maxLength = 64 * 1024 * 1024 } = options;
  if (signal?.aborted) return Promise.reject(signal.reason);
  return new Promise((resolve, reject) => {
    const child = spawn("git", ["--no-pager", "--literal-pathspecs", ...args], {
      cwd: options.cwd,
      env: gitEnvironment(options.settings ?? []),
      stdio: ["ignore", "pipe", "pipe"],
      windowsHide: true,
    });
    // Without a file to spare there is no process, and no pipe to read.
    if (child.pid === undefined) {
      child.once("error", (error) =>
        resolve(
          isShortage(error)
            ? {
                status: "failed",
                exitCode: -1,
                stdout: "",
                stderr: `git cannot be started: ${systemObstacle(error)}`,
              }
            : { status: "missing" },
        ),
      );
      return;
    }
    let stopped: GitResult | undefined;
    const stop = (result: GitResult): void => {
      stopped ??= result;
      child.kill("SIGKILL");
    };
    const onAbort = (): void => stop({ status: "timeout" });
    const timer = setTimeout(() => stop({ status: "timeout" }), timeoutMs);
    signal?.addEventListener("abort", onAbort, { once: true });

    let length = 0;
    let stderr = "";
    const stdout: string[] = [];
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      length += text.length;
      if (length > maxLength) stop({ status: "too-large" });
      else if (options.onOutput === undefined) stdout.push(text);
      else if (stopped === undefined) options.onOutput(text);
    });
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      if (stderr.length < 4096) stderr += text;
    });
    const settle = (result: GitResult): void => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", onAbort);
      if (signal?.aborted) reject(signal.reason);
      else resolve(stopped ?? result);
    };
    child.on("error", () => settle({ status: "missing" }));
    child.on("close", (exitCode) => {
      const text = stdout.join("");
      settle(
        exitCode === 0
          ? { status: "ok", stdout: text }
          : { status: "failed", exitCode: exitCode ?? -1, stdout: text, stderr },
      );
    });
  });
}

function gitEnvironment(settings: readonly (readonly [string, string])[]): NodeJS.ProcessEnv {
  // A relative entry of PATH would be looked up in the repository, which may hold a `git` of its own.
  const path = (process.env.PATH ?? "").split(delimiter).filter((entry) => isAbsolute(entry));
  const env: NodeJS.ProcessEnv = {
    PATH: path.join(delimiter),
    LC_ALL: "C",
    GIT_OPTIONAL_LOCKS: "0",
    GIT_TERMINAL_PROMPT: "0",
    GIT_NO_LAZY_FETCH: "1",
  };
  for (const name of passedOn) {
    const value = process.env[name];
    if (value !== undefined) env[name] = value;
  }
  // Settings go through the environment, where a key may hold any character.
  const all = [...hardening, ...settings];
  env.GIT_CONFIG_COUNT = String(all.length);
  all.forEach(([key, value], index) => {
    env[`GIT_CONFIG_KEY_${index}`] = key;
    env[`GIT_CONFIG_VALUE_${index}`] = value;
  });
  return env;
}

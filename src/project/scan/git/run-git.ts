import { delimiter, isAbsolute } from "node:path";
import { isShortage, systemObstacle } from "../../../files/obstacle.ts";
import { startProcess } from "../../../processes/start-process.ts";
import { stopOn, terminate } from "../../../processes/stop-on.ts";

/** The result of one call of Git. Only an abort throws; every failure is a value. */
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
  /** After this the process is stopped; default 20,000. */
  readonly timeoutMs?: number;
  /** After this many characters of output the process is stopped; default 64 Mi. */
  readonly maxLength?: number;
  /** Settings of the call beyond the hardening ones, as `[key, value]`. */
  readonly settings?: readonly (readonly [string, string])[];
  /** Takes the output as it comes; `stdout` of the result is then empty. */
  readonly onOutput?: (text: string) => void;
}

/**
 * Settings that keep a repository's own configuration from starting programs or the network: a
 * repository may come from an archive, with a `.git/config` of a stranger.
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
 * `args` start with the subcommand. Callers put `--end-of-options` before user input.
 */
export async function runGit(args: readonly string[], options: RunGitOptions): Promise<GitResult> {
  const { signal, timeoutMs = 20_000, maxLength = 64 * 1024 * 1024 } = options;
  signal?.throwIfAborted();
  const git = startProcess({
    program: "git",
    args: ["--no-pager", "--literal-pathspecs", ...args],
    cwd: options.cwd,
    env: gitEnvironment(options.settings ?? []),
  });
  const stop = stopOn({ timeoutMs, signals: [signal] }, () => terminate(git));
  let length = 0;
  let stderr = "";
  const stdout: string[] = [];
  git.stdout.setEncoding("utf8").on("data", (text: string) => {
    length += text.length;
    if (length > maxLength) stop.now("flood");
    else if (options.onOutput === undefined) stdout.push(text);
    else if (stop.reason() === undefined) options.onOutput(text);
  });
  git.stderr.setEncoding("utf8").on("data", (text: string) => {
    if (stderr.length < 4096) stderr += text;
  });
  try {
    const { code } = await git.exited;
    await git.closed;
    signal?.throwIfAborted();
    if (stop.reason() !== undefined) return { status: stop.reason() === "flood" ? "too-large" : "timeout" };
    const text = stdout.join("");
    return code === 0
      ? { status: "ok", stdout: text }
      : { status: "failed", exitCode: code ?? -1, stdout: text, stderr };
  } catch (error) {
    signal?.throwIfAborted();
    if (!isShortage(error)) return { status: "missing" };
    const obstacle = `git cannot be started: ${systemObstacle(error)}`;
    return { status: "failed", exitCode: -1, stdout: "", stderr: obstacle };
  } finally {
    stop.release();
  }
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

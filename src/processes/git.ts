import { delimiter, isAbsolute } from "node:path";
import { inertGitSettings, toGitVariables, withoutFilters } from "../base/git-settings.ts";
import { repositoryAt } from "../files/git-repository.ts";
import { isShortage, systemObstacle } from "../files/obstacle.ts";
import { startProcess, stopOn, terminate } from "./start-process.ts";

/** The result of one call of Git. Only an abort throws; every failure is a value. */
export type GitResult =
  | { readonly status: "ok"; readonly stdout: Buffer }
  | {
      readonly status: "failed";
      readonly exitCode: number;
      readonly stdout: Buffer;
      readonly stderr: string;
    }
  | { readonly status: "missing" }
  | { readonly status: "timeout" }
  | { readonly status: "too-large" };

export interface RunGitOptions {
  /** The folder Git runs in; must exist. */
  readonly cwd: string;
  readonly signal?: AbortSignal | undefined;
  /** After this the process is stopped; default 20,000. */
  readonly timeoutMs?: number;
  /** After this many bytes of output the process is stopped; default 64 Mi. */
  readonly maxBytes?: number;
  /** Settings of this call. */
  readonly settings?: Readonly<Record<string, string>>;
  readonly input?: string;
  /** The index file of this call; default: that of the repository. */
  readonly index?: string;
  /** The folder for new objects, which must exist; those of the repository are read. Default: the repository's own. */
  readonly newObjects?: { readonly folder: string; readonly repository: string };
  /** The author and committer of a commit that this call makes; `date` is in ms since 1970. */
  readonly committer?: { readonly name: string; readonly email: string; readonly date: number };
  /** Receives the output in pieces; `stdout` of the result is then empty. */
  readonly onOutput?: (text: string) => void;
}

interface Subcommand {
  /** Options that keep it from starting programs of the configuration. */
  readonly options?: readonly string[];
  /**
   * It reads or writes files of the work tree, for which Git starts the filters of the configuration; or it writes an index, for which Git
   * reads the files that changed in the second of the index.
   */
  readonly filters?: true;
  readonly environment?: Readonly<Record<string, string>>;
}

const drawing = ["--no-ext-diff", "--no-textconv"];

/** The subcommands that kit runs. A further one needs a look at what starts programs in it. */
const subcommands = {
  "--version": {},
  add: { filters: true },
  apply: { filters: true },
  // Without --textconv and --filters it prints objects as they are.
  "cat-file": {},
  "checkout-index": { filters: true },
  // It signs only with -S.
  "commit-tree": {},
  config: {},
  // Git asks in the work tree of a submodule with the configuration of the submodule, unless only its commit counts.
  diff: { options: [...drawing, "--ignore-submodules=dirty"], filters: true },
  "diff-tree": { options: drawing },
  // Without --path it applies no filter.
  "hash-object": {},
  // A small pack can name objects of any size.
  "index-pack": { environment: { GIT_ALLOC_LIMIT: "2g" } },
  log: { options: [...drawing, "--no-show-signature"] },
  "ls-files": {},
  "ls-tree": {},
  "merge-base": {},
  // Merges the texts of three files itself; the merge drivers of a repository are for whole trees.
  "merge-file": {},
  "read-tree": { filters: true },
  "rev-parse": {},
  "update-index": { filters: true },
  // Its hook is off, as all hooks are.
  "update-ref": {},
  worktree: { filters: true },
  "write-tree": { filters: true },
} satisfies Record<string, Subcommand>;

export type GitArguments = readonly [keyof typeof subcommands, ...string[]];

/**
 * Runs Git without a shell, never asking, and starts nothing that a repository's own configuration names: every call of
 * Git on behalf of kit itself is this one. Callers put `--end-of-options` before user input.
 *
 * The settings of the user and of the system are in force: they say which ignored files, line ends and foreign
 * repositories (`safe.directory`) the user wants, and a repository cannot write them.
 */
export async function runGit([name, ...args]: GitArguments, options: RunGitOptions): Promise<GitResult> {
  const { signal, timeoutMs = 20_000, maxBytes = 64 * 1024 * 1024, onOutput } = options;
  signal?.throwIfAborted();
  const repository = repositoryAt(options.cwd);
  if (repository?.refused !== undefined) return failure(repository.refused);
  const subcommand: Subcommand = subcommands[name];
  const filters = subcommand.filters === true ? await filtersOff(options) : {};
  const git = startProcess({
    program: "git",
    args: ["--no-pager", "--literal-pathspecs", name, ...(subcommand.options ?? []), ...args],
    cwd: options.cwd,
    env: {
      ...environment,
      ...passedOn(),
      ...subcommand.environment,
      ...(options.index === undefined ? {} : { GIT_INDEX_FILE: options.index }),
      ...(options.newObjects === undefined
        ? {}
        : {
            GIT_OBJECT_DIRECTORY: options.newObjects.folder,
            GIT_ALTERNATE_OBJECT_DIRECTORIES: options.newObjects.repository,
          }),
      ...committerVariables(options.committer),
      ...(repository?.workTree === undefined ? {} : { GIT_WORK_TREE: repository.workTree }),
      ...toGitVariables({ ...inertGitSettings, ...options.settings, ...filters }),
    },
    hasInput: options.input !== undefined,
  });
  const stop = stopOn({ timeoutMs, signals: [signal] }, () => terminate(git));
  let length = 0;
  let stderr = "";
  const stdout: Buffer[] = [];
  if (onOutput !== undefined) git.stdout.setEncoding("utf8");
  git.stdout.on("data", (chunk: Buffer | string) => {
    length += chunk.length;
    if (length > maxBytes) stop.now("flood");
    else if (typeof chunk !== "string") stdout.push(chunk);
    else if (stop.reason() === undefined) onOutput?.(chunk);
  });
  git.stderr.setEncoding("utf8").on("data", (text: string) => {
    if (stderr.length < 4096) stderr += text;
  });
  git.stdin?.end(options.input);
  try {
    const { code } = await git.exited;
    await git.closed;
    signal?.throwIfAborted();
    if (stop.reason() !== undefined) return { status: stop.reason() === "flood" ? "too-large" : "timeout" };
    const bytes = Buffer.concat(stdout);
    return code === 0
      ? { status: "ok", stdout: bytes }
      : { status: "failed", exitCode: code ?? -1, stdout: bytes, stderr };
  } catch (error) {
    signal?.throwIfAborted();
    return isShortage(error)
      ? failure(`git cannot be started: ${systemObstacle(error)}`)
      : { status: "missing" };
  } finally {
    stop.release();
  }
}

function committerVariables(committer: RunGitOptions["committer"]): NodeJS.ProcessEnv {
  if (committer === undefined) return {};
  const { name, email, date } = committer;
  // Git takes a small number without a sign for a year.
  const time = `@${Math.floor(date / 1_000)} +0000`;
  return {
    GIT_AUTHOR_NAME: name,
    GIT_AUTHOR_EMAIL: email,
    GIT_AUTHOR_DATE: time,
    GIT_COMMITTER_NAME: name,
    GIT_COMMITTER_EMAIL: email,
    GIT_COMMITTER_DATE: time,
  };
}

function failure(stderr: string): GitResult {
  return { status: "failed", exitCode: -1, stdout: Buffer.alloc(0), stderr };
}

async function filtersOff({ cwd, signal }: RunGitOptions): Promise<Record<string, string>> {
  const result = await runGit(["config", "-z", "--name-only", "--get-regexp", "^filter\\."], { cwd, signal });
  return result.status === "ok" ? withoutFilters(result.stdout.toString().split("\0")) : {};
}

const environment: Readonly<Record<string, string>> = {
  LC_ALL: "C",
  GIT_ALLOW_PROTOCOL: "none",
  GIT_ATTR_NOSYSTEM: "1",
  GIT_NO_LAZY_FETCH: "1",
  GIT_OPTIONAL_LOCKS: "0",
  GIT_TERMINAL_PROMPT: "0",
};

/** Variables Git needs to be found and to know its user; none of `GIT_*` is passed on. */
const passedNames = ["HOME", "USERPROFILE", "XDG_CONFIG_HOME", "SystemRoot", "TEMP", "TMP", "TMPDIR"];

function passedOn(): NodeJS.ProcessEnv {
  // The system would look up a relative entry of PATH in the repository, which can contain a `git` program.
  const path = (process.env.PATH ?? "").split(delimiter).filter((entry) => isAbsolute(entry));
  return {
    PATH: path.join(delimiter),
    ...Object.fromEntries(passedNames.map((name) => [name, process.env[name]])),
  };
}

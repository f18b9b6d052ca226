import { KitError } from "../../base/kit-error.ts";
import type { Sandbox } from "../../sandboxes/contract.ts";
import type { AgentPolicy } from "../define/agent-profile.ts";
import type { AllowedRun } from "../policy/check-command.ts";
import type { GitCall, KnownForm, PathMention } from "../policy/forms/form.ts";
import { gitEnvironment, guardDrivers, mayNameDrivers } from "../policy/forms/git-reading.ts";
import { isGrantedPath, isProtectedPath, isSecretFile, type PathChange } from "../policy/protected-paths.ts";
import { changedByGit } from "./git-changes.ts";

/** The sandbox and policy of a command. */
export interface CommandContext {
  readonly sandbox: Sandbox;
  readonly cwd?: string | undefined;
  readonly policy: AgentPolicy;
  readonly projectRoot?: string | undefined;
  readonly isLoaded?: PathChange["isLoaded"] | undefined;
  readonly signal: AbortSignal;
}

/** A command with its final words and environment. */
export interface PreparedCommand {
  readonly words: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

/** For programs other than Git: disables files with further options, and logs and caches of the program itself. */
const plainEnvironment = {
  RIPGREP_CONFIG_PATH: "",
  TAR_OPTIONS: "",
  npm_config_logs_max: "0",
  npm_config_update_notifier: "false",
};

/**
 * Prepares a command that runs as a known form: its paths must be in the workspace, it must not write protected
 * files, and Git must not run programs that a configuration names. Throws `forbidden` otherwise.
 */
export async function prepareKnownForm(run: AllowedRun, context: CommandContext): Promise<PreparedCommand> {
  const { words, known } = run;
  if (known === undefined) return { words, env: {} };
  const folder = await context.sandbox.resolve(context.cwd ?? ".");
  for (const mention of known.paths) await checkPath(mention, folder, context);
  return known.git === undefined
    ? { words, env: plainEnvironment }
    : await prepareGit({ ...run, known, git: known.git }, folder, context);
}

async function checkPath(mention: PathMention, folder: string, context: CommandContext): Promise<void> {
  const { path, use } = mention;
  const { sandbox, policy, projectRoot, isLoaded } = context;
  const fromRoot = pathFromRoot(path, folder);
  const target =
    fromRoot === undefined
      ? undefined
      : await sandbox
          .resolve(toView(fromRoot, sandbox), { keepLink: use === "entry" || use === "remove" })
          .catch(() => undefined);
  if (fromRoot === undefined || target === undefined) {
    throw forbidden(`"${path}" leads out of the workspace, or cannot be told to stay in it`);
  }
  const granted = policy.allowProtectedPaths ?? [];
  const argument = path.startsWith("/") ? target : fromRoot;
  if (use === "read" || use === "entry") {
    const secret = [argument, target].find((each) => isSecretFile(each) && !isGrantedPath(each, granted));
    if (secret !== undefined) throw forbidden(`"${path}" holds secrets, which are not for models`);
    return;
  }
  const removes =
    use === "remove" || use === "tree" || (use === "place" && !(await isFolder(fromRoot, sandbox)));
  const change = { removes, projectRoot, isLoaded, hostRoot: sandbox.hostRoot, cwd: "" };
  if (
    isProtectedPath({ ...change, path: argument }, granted) ||
    isProtectedPath({ ...change, path: target }, granted)
  ) {
    throw forbidden(
      `"${path}" is protected: what decides how kit, its agents, Git, CI and package managers behave is not for models to change`,
    );
  }
}

async function isFolder(fromRoot: string, sandbox: Sandbox): Promise<boolean> {
  return await sandbox.stat(toView(fromRoot, sandbox)).then(
    ({ kind }) => kind === "directory",
    () => false,
  );
}

/**
 * The path relative to the root of the workspace, or absolute; `undefined` if it may leave the workspace. `..` is
 * accepted only at the beginning: after a name that is a link, it is relative to the link's target.
 */
function pathFromRoot(path: string, folder: string): string | undefined {
  const segments = path.split("/");
  const first = segments.findIndex((segment) => segment !== ".." && segment !== "." && segment !== "");
  if (first !== -1 && segments.indexOf("..", first) !== -1) return undefined;
  if (path.startsWith("/")) return segments.includes("..") ? undefined : path;
  const up = segments.filter((segment) => segment === "..").length;
  const from = folder === "" ? [] : folder.split("/");
  if (up > from.length) return undefined;
  const down = segments.filter((segment) => segment !== "" && segment !== "." && segment !== "..");
  return [...from.slice(0, from.length - up), ...down].join("/");
}

/** Converts a path relative to the root into one relative to the sandbox's working folder. */
function toView(fromRoot: string, { cwd }: Sandbox): string {
  if (fromRoot.startsWith("/")) return fromRoot;
  const up = cwd === "" ? "" : "../".repeat(cwd.split("/").length);
  return `${up}${fromRoot}` || ".";
}

interface GitRun extends AllowedRun {
  readonly known: KnownForm;
  readonly git: GitCall;
}

/** Prepares Git with settings that prevent it from running other programs, also those that the repository defines. */
async function prepareGit(run: GitRun, folder: string, context: CommandContext): Promise<PreparedCommand> {
  const { words, known, git, programAt = 0 } = run;
  const guard = guardDrivers(await keysOf(run, folder, context), git.subcommand);
  if (guard.refused !== undefined) {
    throw forbidden(`the repository's configuration names a program for merges (${guard.refused})`);
  }
  const { hostRoot } = context.sandbox;
  const more = {
    ...guard.settings,
    ...(known.writes === true && commits.has(git.subcommand)
      ? await identity(words[programAt] ?? "git", context)
      : {}),
    // The choice of a workspace implies trust in its owner.
    ...(hostRoot === undefined ? {} : { "safe.directory": hostRoot }),
  };
  const at = programAt + 1 + git.optionsAt;
  if (known.writes === true)
    await refuseProtectedChanges({ ...run, env: gitEnvironment({ paths: [] }, more) }, folder, context);
  const options = known.writes === true ? [] : guard.options;
  return {
    words: [...words.slice(0, at), ...options, ...words.slice(at)],
    env: gitEnvironment(known, more),
  };
}

/** Refuses a command that would replace protected files with those of a revision, or discard their changes. */
async function refuseProtectedChanges(
  run: GitRun & { readonly env: Readonly<Record<string, string>> },
  folder: string,
  context: CommandContext,
): Promise<void> {
  const { words, git, env, programAt = 0 } = run;
  const { sandbox, cwd, signal, policy, projectRoot, isLoaded } = context;
  const runGit = async (args: readonly string[]): Promise<readonly string[] | undefined> => {
    const inFolder = git.folder === undefined ? [] : ["-C", git.folder];
    const result = await sandbox.exec({
      command: [words[programAt] ?? "git", ...inFolder, ...args],
      env,
      access: { write: false },
      signal,
      cwd,
    });
    if (result.exit_code !== 0 || result.dropped_bytes > 0) return undefined;
    return result.stdout.split("\0").filter((entry) => entry !== "");
  };
  if (git.subcommand === "pull") {
    if (/^(bubblewrap|seatbelt)$/.test((await sandbox.isolation?.())?.wall ?? "")) return;
    throw forbidden(
      "what a pull brings cannot be looked at before it is there: run git fetch, then git merge (an entry that is unsafe: true runs it as it is)",
    );
  }
  const changed = await changedByGit(git.subcommand, words.slice(programAt + 1 + git.optionsAt), runGit);
  if (changed === undefined)
    throw forbidden(
      `Git does not say which files git ${git.subcommand} would change; name a branch or a commit`,
    );
  if (changed.length === 0) return;
  const prefix = (await runGit(["rev-parse", "--show-prefix"]))?.[0]?.trim() ?? "";
  const start = (git.folder === undefined ? folder : pathFromRoot(git.folder, folder)) ?? "";
  const top = `${start}/`.endsWith(`/${prefix}`) ? `${start}/`.slice(0, -prefix.length || undefined) : "";
  const granted = policy.allowProtectedPaths ?? [];
  const change = { removes: true, projectRoot, isLoaded, hostRoot: sandbox.hostRoot, cwd: top };
  const found = changed.find((path) => isProtectedPath({ ...change, path }, granted));
  if (found === undefined) return;
  throw forbidden(
    `git ${git.subcommand} would change "${found}", which is protected: what decides how kit, its agents, Git, CI and package managers behave is not for models to change`,
  );
}

/**
 * The configuration keys of the repository, which can define drivers; empty if it certainly defines none. Reads the
 * configuration file, and runs Git only if the file leaves a doubt.
 */
async function keysOf(run: GitRun, folder: string, context: CommandContext): Promise<readonly string[]> {
  const { words, git, programAt = 0 } = run;
  const { sandbox, cwd, signal } = context;
  const start = git.folder === undefined ? folder : pathFromRoot(git.folder, folder);
  if (start !== undefined && !start.startsWith("/")) {
    const config = await nearestConfig(start, sandbox);
    if (config !== undefined && !mayNameDrivers(config)) return [];
  }
  const result = await sandbox.exec({
    command: [
      words[programAt] ?? "git",
      ...(git.folder === undefined ? [] : ["-C", git.folder]),
      ...["config", "--list", "--name-only", "-z"],
    ],
    env: gitEnvironment({ paths: [] }),
    access: { write: false },
    signal,
    cwd,
  });
  if (result.exit_code === null || result.dropped_bytes > 0)
    throw forbidden("Git does not say what its configuration names");
  return result.stdout.split("\0");
}

/** The configuration of the repository that contains a folder; `undefined` if it cannot be read from its files. */
async function nearestConfig(folder: string, sandbox: Sandbox): Promise<string | undefined> {
  const segments = folder === "" ? [] : folder.split("/");
  for (let depth = segments.length; depth >= 0; depth -= 1) {
    const gitFolder = toView([...segments.slice(0, depth), ".git"].join("/"), sandbox);
    try {
      if ((await sandbox.stat(gitFolder)).kind !== "directory") return undefined;
      return await sandbox.readFile(`${gitFolder}/config`);
    } catch (error) {
      if (!(error instanceof KitError) || error.code !== "not_found") return undefined;
    }
  }
  return undefined;
}

/** Subcommands that create commits, and therefore need a committer. */
const commits = new Set("commit merge rebase cherry-pick revert stash tag notes pull".split(" "));

/** The committer from the user's own configuration; its other settings are not used. */
async function identity(program: string, context: CommandContext): Promise<Record<string, string>> {
  const { sandbox, cwd, signal } = context;
  const { stdout } = await sandbox.exec({
    command: [program, "config", "-z", "--get-regexp", "^user\\.(name|email)$"],
    access: { write: false },
    signal,
    cwd,
  });
  const entries = stdout.split("\0").map((entry) => entry.split("\n"));
  return Object.fromEntries(entries.flatMap(([key, value]) => (key && value ? [[key, value]] : [])));
}

function forbidden(reason: string): KitError {
  return new KitError({ code: "forbidden", message: `The command was not run: ${reason}.` });
}

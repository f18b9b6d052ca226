import type { AllowedRun } from "../policy/check-command.ts";
import type { GitCall, KnownForm } from "../policy/forms/form.ts";
import { guardConfig } from "../policy/forms/git-keys.ts";
import { gitEnvironment } from "../policy/forms/git-reading.ts";
import { isGrantedPath, isProtectedPath, isSecretFile } from "../policy/protected-paths.ts";
import {
  type CommandContext,
  forbidden,
  type PreparedCommand,
  pathFromRoot,
  toView,
} from "./command-context.ts";
import { changedByGit, type RunGit } from "./git-changes.ts";
import { readGitRepository } from "./git-repository.ts";

export interface GitRun extends AllowedRun {
  readonly known: KnownForm;
  readonly git: GitCall;
}

const set = (text: string): ReadonlySet<string> => new Set(text.split(" "));

/** Subcommands that take options for the content of diffs. */
const drawing = set("diff log show whatchanged diff-files diff-index diff-tree reflog stash");
/** Subcommands with an option that keeps them out of the work trees of submodules. */
const ignoring = set("diff log show whatchanged diff-files diff-index diff-tree reflog stash status");
/** Subcommands that ask `git status` in the work trees of submodules, with the configurations there. */
const descending = set(
  "add commit checkout switch restore reset rm mv merge rebase cherry-pick revert stash pull describe",
);
const merges = set("merge rebase cherry-pick revert stash pull checkout switch restore");
/** Subcommands that go on with the steps in files of the repository. */
const continuing = set("rebase cherry-pick revert");
/** Subcommands that create commits, and therefore need a committer. */
const commits = set("commit merge rebase cherry-pick revert stash tag notes pull");

/** Prepares Git with settings that prevent it from running other programs, also those that the repository defines. */
export async function prepareGit(
  run: GitRun,
  folder: string,
  context: CommandContext,
): Promise<PreparedCommand> {
  const { words, known, git, programAt = 0 } = run;
  const { sandbox } = context;
  const isWalled = ((await sandbox.isolation?.())?.wall ?? "none") !== "none";
  const start = git.folder === undefined ? folder : pathFromRoot(git.folder, folder);
  const { entries, mayHaveSubmodules } = await readGitRepository({
    sandbox,
    start,
    // A submodule is a repository of its own, and a writing form has no option that keeps out of it.
    isDeep: descending.has(git.subcommand) && (known.writes === true || git.subcommand === "describe"),
    // The wall confines what Git reads and starts.
    isTrusted: isWalled,
    continues: continuing.has(git.subcommand) && !words.some((word) => /^--(abort|quit)$/.test(word)),
    runGit: (args, path) => callGit(args, { run, context, path }),
  });
  const guard = guardConfig(entries, known);
  if (guard.unknown !== undefined && !isWalled) {
    throw forbidden(
      `the repository's configuration has the key "${guard.unknown}", which may start a program or lead out of the workspace`,
    );
  }
  if (guard.driver !== undefined && merges.has(git.subcommand)) {
    throw forbidden(`the repository's configuration names a program for merges (${guard.driver})`);
  }
  const { hostRoot } = sandbox;
  const more = {
    ...guard.settings,
    ...(known.writes === true && commits.has(git.subcommand)
      ? await identity(words[programAt] ?? "git", context)
      : {}),
    // The choice of a workspace implies trust in its owner.
    ...(hostRoot === undefined ? {} : { "safe.directory": hostRoot }),
  };
  const looking = { context, env: gitEnvironment({ paths: [] }, more) };
  if (known.writes === true) await refuseProtectedChanges(run, folder, looking);
  const at = programAt + 1 + git.optionsAt;
  return {
    words: [
      ...words.slice(0, at),
      ...optionsOf(run, { draws: guard.draws, mayHaveSubmodules }),
      ...words.slice(at),
      ...(await withoutSecrets(run, folder, looking)),
    ],
    env: gitEnvironment(known, more),
  };
}

function optionsOf(
  { known, git: { subcommand } }: GitRun,
  { draws, mayHaveSubmodules }: { readonly draws: boolean; readonly mayHaveSubmodules: boolean },
): readonly string[] {
  if (known.writes === true) return [];
  const noDrivers = !draws
    ? []
    : subcommand === "blame"
      ? ["--no-textconv"]
      : drawing.has(subcommand)
        ? ["--no-ext-diff", "--no-textconv"]
        : [];
  // The settings of one submodule go before the setting for all of them.
  const ignored = mayHaveSubmodules && ignoring.has(subcommand) ? ["--ignore-submodules=dirty"] : [];
  return [...noDrivers, ...ignored];
}

/** Git's patterns of the names of files with secrets. */
const secretNames = [".env", ".envrc", ".env.*"].map((name) => `(top,icase,glob)**/${name}`);

/** How to ask Git about the repository, without the programs that its configuration names. */
interface Looking {
  readonly context: CommandContext;
  readonly env: Readonly<Record<string, string>>;
}

/** More words that keep files of secrets out of what Git reads below folders. */
async function withoutSecrets(run: GitRun, folder: string, looking: Looking): Promise<readonly string[]> {
  const { context } = looking;
  const { words, known, git, programAt = 0 } = run;
  const { sandbox } = context;
  const args = words.slice(programAt + 1 + git.optionsAt);
  if (git.subcommand === "grep") return secretNames.map((name) => `:${name.replace("(", "(exclude,")}`);
  if (git.subcommand !== "add" && !comparing.has(git.subcommand)) return [];
  const operands = known.paths.slice(git.folder === undefined ? 0 : 1);
  const kinds = await Promise.all(
    operands.map(async ({ path }) => {
      const fromRoot = pathFromRoot(path, folder);
      const stats = fromRoot === undefined ? undefined : sandbox.stat(toView(fromRoot, sandbox));
      return (await stats?.catch(() => undefined))?.kind;
    }),
  );
  if (git.subcommand === "diff") {
    // Git compares files without a repository then, and all below folders.
    const isPlain =
      kinds.includes("directory") &&
      (args.includes("--no-index") ||
        args.some((word) => word.startsWith("../") || word === "..") ||
        (await callGit(["rev-parse", "--git-dir"], { run, ...looking })) === undefined);
    if (isPlain)
      throw forbidden("git diff reads every file below a folder then, also those of secrets; name files");
  }
  if (comparing.has(git.subcommand)) return await withoutChangedSecrets(run, looking);
  if (kinds.length > 0 && kinds.every((kind) => kind === "file")) return [];
  const isEverything = args.some((word) => /^(-[a-zA-Z]*[Au]|--(all|no-all|update|renormalize)$)/.test(word));
  if (kinds.length === 0 && !isEverything) return [];
  const isForced = args.some((word) => /^(-[a-zA-Z]*f|--force$)/.test(word));
  const listed = await callGit(
    [
      ...[
        "ls-files",
        "-z",
        "--others",
        "--modified",
        "--full-name",
        ...(isForced ? [] : ["--exclude-standard"]),
      ],
      ...["--", ...secretNames.map((name) => `:${name}`)],
    ],
    { run, ...looking },
  );
  if (listed === undefined) throw forbidden("Git does not list the files that git add would add");
  const granted = context.policy.allowProtectedPaths ?? [];
  return [...new Set(listed.split("\0"))]
    .filter((path) => isSecretFile(path) && !isGrantedPath(path, granted))
    .map((path) => `:(top,exclude,literal)${path}`);
}

/** Subcommands that print or keep what files of the work tree contain and no commit does. */
const comparing = set("diff diff-files diff-index status commit");

/** More words that keep out tracked files of secrets with changes that no commit contains. Refuses to commit such changes. */
async function withoutChangedSecrets(run: GitRun, looking: Looking): Promise<readonly string[]> {
  const { words, known, git, programAt = 0 } = run;
  const args = words.slice(programAt + 1 + git.optionsAt);
  const isVerbose = args.some((word) => /^(-[a-z]*v|--verbose$)/.test(word));
  if (args.includes("--no-index") || (git.subcommand === "status" && !isVerbose)) return [];
  const ask = (...question: readonly string[]): Promise<string | undefined> =>
    callGit([...question, "--", ...secretNames.map((name) => `:${name}`)], { run, ...looking });
  const staged = await ask("diff-index", "--cached", "--name-only", "-z", "HEAD");
  const takesMore =
    isVerbose ||
    known.paths.length > (git.folder === undefined ? 0 : 1) ||
    args.some((word) => /^(-[a-z]*[aio]|--(all|include|only)$)/.test(word));
  const isCommit = git.subcommand === "commit" && known.writes === true;
  const modified = isCommit && !takesMore ? "" : await ask("ls-files", "-z", "--modified", "--full-name");
  const granted = looking.context.policy.allowProtectedPaths ?? [];
  const secrets = [...new Set(`${staged ?? ""}\0${modified ?? ""}`.split("\0"))].filter(
    (path) => isSecretFile(path) && !isGrantedPath(path, granted),
  );
  // Neither takes exclusions.
  if ((isCommit || git.subcommand === "status") && secrets.length > 0)
    throw forbidden(`"${secrets[0]}" has changes and holds secrets, which are not for models`);
  return secrets.map((path) => `:(top,exclude,literal)${path}`);
}

interface GitQuestion {
  readonly run: GitRun;
  readonly context: CommandContext;
  /** Relative to the folder of the command. */
  readonly path?: string | undefined;
  readonly env?: Readonly<Record<string, string>>;
}

/** Runs Git to look at the repository; `undefined` if it fails. */
async function callGit(args: readonly string[], question: GitQuestion): Promise<string | undefined> {
  const { path, env = gitEnvironment({ paths: [] }) } = question;
  const { words, git, programAt = 0 } = question.run;
  const { sandbox, cwd, signal } = question.context;
  const folders = [git.folder, path].flatMap((each) => (each === undefined ? [] : ["-C", each]));
  const result = await sandbox.exec({
    command: [words[programAt] ?? "git", ...folders, ...args],
    env,
    access: { write: false },
    maxOutputBytes: maxListedBytes,
    signal,
    cwd,
  });
  return result.exit_code === 0 && result.dropped_bytes === 0 ? result.stdout : undefined;
}

/** Bytes of a listing, such as that of an index with 300,000 files. */
const maxListedBytes = 32 * 1024 * 1024;

/** Refuses a command that would replace protected files with those of a revision, or discard their changes. */
async function refuseProtectedChanges(run: GitRun, folder: string, { context, env }: Looking): Promise<void> {
  const { words, git, programAt = 0 } = run;
  const { sandbox, policy, projectRoot, isLoaded } = context;
  const runGit: RunGit = async (args) =>
    (await callGit(args, { run, context, env }))?.split("\0").filter((entry) => entry !== "");
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

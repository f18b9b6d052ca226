import type { Sandbox } from "../../sandboxes/contract.ts";
import type { AllowedRun } from "../policy/check-command.ts";
import type { PathMention } from "../policy/forms/form.ts";
import { isGrantedPath, isProtectedPath, isSecretFile } from "../policy/protected-paths.ts";
import {
  type CommandContext,
  forbidden,
  type PreparedCommand,
  pathFromRoot,
  toView,
} from "./command-context.ts";
import { prepareGit } from "./prepare-git.ts";
import { faultOfTree, listingsBelow } from "./protected-below.ts";
import { findPartOfRepository } from "./repository-parts.ts";

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
  const { words, known, programAt = 0 } = run;
  if (known === undefined) return { words, env: {} };
  const folder = await context.sandbox.resolve(context.cwd ?? ".");
  const made: string[] = [];
  for (const mention of known.paths) await checkPath(mention, folder, { ...context, made });
  const part = await findPartOfRepository(made, context.policy.allowProtectedPaths ?? [], context.sandbox);
  if (part !== undefined)
    throw forbidden(`"${part}" is a part of a repository, or would make its folder one`);
  return known.git === undefined
    ? {
        words: known.args === undefined ? words : [...words.slice(0, programAt + 1), ...known.args],
        env: plainEnvironment,
      }
    : await prepareGit({ ...run, known, git: known.git }, folder, context);
}

interface PathContext extends CommandContext {
  /** Collects the paths that the command would make or change, relative to the root of the workspace. */
  readonly made: string[];
}

async function checkPath(mention: PathMention, folder: string, context: PathContext): Promise<void> {
  const { path, use } = mention;
  const { sandbox, policy, made } = context;
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
  if (use === "file" && (await isFolder(fromRoot, sandbox))) {
    throw forbidden(
      `"${path}" is a folder, of which the command would follow links; name a file, or add --no-dereference`,
    );
  }
  if (use === "tree") await refuseRisksBelow(target, context);
  if (use === "read" || use === "file" || use === "entry") {
    // Git prints a file of a revision: HEAD:.env
    const secret = [argument, target, path.replace(/^.*:/s, "")].find(
      (each) => isSecretFile(each) && !isGrantedPath(each, granted),
    );
    if (secret !== undefined) throw forbidden(`"${path}" holds secrets, which are not for models`);
    return;
  }
  const removes =
    use === "remove" || use === "tree" || (use === "place" && !(await isFolder(fromRoot, sandbox)));
  if (isProtected(argument, context, removes) || isProtected(target, context, removes)) {
    throw forbidden(
      `"${path}" is protected: what decides how kit, its agents, Git, CI and package managers behave is not for models to change`,
    );
  }
  if (use !== "remove") made.push(target);
  // A copy of a folder is at the target, or in the folder that the target is.
  const parent = fromRoot.replace(/(?:^|\/+)[^/]*\/*$/, "");
  const isHere =
    use === "place"
      ? !(await isFolder(fromRoot, sandbox))
      : use === "tree"
        ? await isFolder(parent, sandbox)
        : use === "remove";
  if (isHere) await refuseProtectedTree(mention, { folder, target }, context);
}

/** A recursive copy writes through the links that are at its target, and replaces files there. */
async function refuseRisksBelow(target: string, context: CommandContext): Promise<void> {
  const { sandbox } = context;
  for await (const { folder, entries } of listingsBelow(target, sandbox)) {
    for (const { name, kind } of entries) {
      const path = `${folder}/${name}`;
      // A folder whose name protects what is in it counts for its files.
      if (kind === "file" && isProtected(path, context))
        throw forbidden(
          `"${path}" is protected, and the command could replace it with a file of the same name`,
        );
      if (kind !== "link") continue;
      const inside = await sandbox.resolve(toView(path, sandbox)).catch(() => undefined);
      if (inside === undefined || isProtected(inside, context))
        throw forbidden(
          `"${path}" is a link that leads out of the workspace or to a protected file; the command could write through it`,
        );
    }
  }
}

/** Refuses to remove, copy or move a folder with what a model may not change or make. */
async function refuseProtectedTree(
  mention: PathMention,
  { folder, target }: { readonly folder: string; readonly target: string },
  context: PathContext,
): Promise<void> {
  const { sandbox, policy } = context;
  const removes = mention.use === "remove";
  const source = removes ? mention : mention.from;
  const place = source === undefined ? undefined : await folderOf(source, folder, sandbox);
  if (place === undefined) return;
  const fault = await faultOfTree(
    {
      source: place,
      removes,
      ...(removes ? {} : { target }),
      granted: policy.allowProtectedPaths ?? [],
      made: context.made,
      isProtected: (each, isRemoved) => isProtected(each, context, isRemoved),
    },
    sandbox,
  );
  if (fault !== undefined)
    throw forbidden(`${fault}: name the files and folders that the command is to change`);
}

/** The folder that a command takes, relative to the root of the workspace; `undefined` if it takes a link in its place. */
async function folderOf(
  { path, use }: PathMention,
  folder: string,
  sandbox: Sandbox,
): Promise<string | undefined> {
  const fromRoot = pathFromRoot(path, folder);
  if (fromRoot === undefined) return undefined;
  const resolve = (keepLink: boolean): Promise<string | undefined> =>
    sandbox.resolve(toView(fromRoot, sandbox), { keepLink }).catch(() => undefined);
  const place = await resolve(false);
  // With a slash at the end, the name of a link stands for the folder.
  return use !== "remove" || /\/\.?$/.test(path) || (await resolve(true)) === place ? place : undefined;
}

function isProtected(path: string, context: CommandContext, removes = false): boolean {
  const { policy, projectRoot, isLoaded, sandbox } = context;
  const change = { path, removes, projectRoot, isLoaded, hostRoot: sandbox.hostRoot, cwd: "" };
  return isProtectedPath(change, policy.allowProtectedPaths ?? []);
}

async function isFolder(fromRoot: string, sandbox: Sandbox): Promise<boolean> {
  return await sandbox.stat(toView(fromRoot, sandbox)).then(
    ({ kind }) => kind === "directory",
    () => false,
  );
}

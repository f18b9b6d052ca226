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
  for (const mention of known.paths) await checkPath(mention, folder, context);
  return known.git === undefined
    ? {
        words: known.args === undefined ? words : [...words.slice(0, programAt + 1), ...known.args],
        env: plainEnvironment,
      }
    : await prepareGit({ ...run, known, git: known.git }, folder, context);
}

async function checkPath(mention: PathMention, folder: string, context: CommandContext): Promise<void> {
  const { path, use } = mention;
  const { sandbox, policy } = context;
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
}

/** Entries of a folder that a copy may merge with another. */
const maxEntries = 20_000;

/** A recursive copy writes through the links that are at its target, and replaces files there. */
async function refuseRisksBelow(target: string, context: CommandContext): Promise<void> {
  const { sandbox } = context;
  const folders = [toView(target, sandbox)];
  let count = 0;
  for (const folder of folders) {
    for (const { name, kind } of await sandbox.list(folder).catch(() => [])) {
      count += 1;
      if (count > maxEntries) throw forbidden(`"${target}" has too many entries to look at; remove it first`);
      const path = `${folder}/${name}`;
      if (kind === "directory") folders.push(path);
      // A folder whose name protects what is in it counts for its files.
      if (kind === "file" && isProtected(path, context))
        throw forbidden(
          `"${path}" is protected, and the command could replace it with a file of the same name`,
        );
      if (kind !== "link") continue;
      const inside = await sandbox.resolve(path).catch(() => undefined);
      if (inside === undefined || isProtected(inside, context))
        throw forbidden(
          `"${path}" is a link that leads out of the workspace or to a protected file; the command could write through it`,
        );
    }
  }
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

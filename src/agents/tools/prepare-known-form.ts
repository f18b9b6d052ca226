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

import { createHash } from "node:crypto";
import { lstatSync, mkdirSync, realpathSync } from "node:fs";
import { basename, join, relative } from "node:path";
import { KitError } from "../../../base/kit-error.ts";
import { holdFolder } from "../../../files/walk.ts";
import type { CommandAccess } from "../../contract.ts";
import { isInside, type Workspace } from "../workspace-path.ts";
import type { CachedFolder } from "./bubblewrap.ts";
import { settingPaths } from "./git-setting-paths.ts";
import { type FoundPaths, findGuarded, type Guarded, isSame } from "./guarded-paths.ts";
import { exists } from "./held-files.ts";
import { finishKilled, recordBefore } from "./killed-commands.ts";
import { refuseNew } from "./refuse-new.ts";

/** The guarded paths of a workspace, for one command. All paths but `repositories` are absolute. */
export interface WorkspaceGuard {
  readonly protectedPaths: readonly string[];
  /** The entries `.git` below the root, relative to it, for a command with write access. */
  readonly repositories: readonly string[];
  /** Files that appear empty. */
  readonly hiddenFiles: readonly string[];
  /** Folders that appear empty. */
  readonly hiddenFolders: readonly string[];
  /** Throws `unavailable` if another command has moved folders since, so that files of secrets may have been missed. */
  readonly confirm: () => void;
}

/** 300 mounts slow a command down by 0.3 s, 1,000 by 2 s, 2,000 by 9 s. */
const maxMounts = 2_000;

/**
 * Finds what a command must not change or read, and after a command with write access refuses new paths of this kind. `notes` gets
 * sentences for the caller of the command. Throws `unavailable` if it cannot find all.
 */
export function guardWorkspace(
  workspace: Workspace,
  access: CommandAccess,
  after: { readonly cleanup: AsyncDisposableStack; readonly notes: string[] },
): WorkspaceGuard {
  const { root, shared = false } = workspace;
  const { write = true, guard } = access;
  const isChecked = write && shared;
  if (!isChecked && guard === undefined)
    return {
      protectedPaths: [],
      repositories: [],
      hiddenFiles: [],
      hiddenFolders: [],
      confirm: () => undefined,
    };
  const find = (): FoundPaths => findAll(workspace, guard, true);
  const first = findTwice(() => findAll(workspace, guard));
  const { paths: before, obstacle } = first;
  if (obstacle !== undefined) throw unguarded(obstacle);
  if (isChecked && access.makesRepository !== true) {
    const record = { before: [...before], granted: guard?.granted ?? [], hasGuard: guard !== undefined };
    after.cleanup.defer(recordBefore(workspace, record));
    after.cleanup.defer(() => {
      const found = find();
      after.notes.push(...refuseNew(root, before, found.paths));
      if (found.obstacle !== undefined)
        after.notes.push(`${unguarded(found.obstacle).message} kit runs no command in it until then.`);
    });
  }
  const pathsOf = (isWanted: (kind: Guarded["kind"]) => boolean): readonly string[] =>
    [...before]
      .filter(([path, { kind }]) => path !== "" && path !== ".git" && isWanted(kind))
      .flatMap(([path]) => realPathsOf(root, path));
  const guarded: Omit<WorkspaceGuard, "confirm" | "repositories"> = {
    protectedPaths: isChecked ? pathsOf((kind) => kind === "read-only" || kind === "repository") : [],
    hiddenFiles: pathsOf((kind) => kind === "hidden").filter((path) => isA(path, "file")),
    hiddenFolders: pathsOf((kind) => kind === "hidden-folder").filter((path) => isA(path, "folder")),
  };
  if (Object.values(guarded).flat().length > maxMounts)
    throw unguarded(`has more than ${maxMounts} protected paths and files of secrets`);
  const confirm = (): void => {
    if (guard !== undefined && !isSame(findAll(workspace, guard), first)) throw moving();
  };
  const repositories = [...before.keys()].filter((path) => isChecked && path.endsWith("/.git"));
  return { ...guarded, repositories, confirm };
}

const maxWalks = 20;

/** A walk can miss a folder that another command moves meanwhile, so two walks must agree; six once folders have moved. */
function findTwice(find: () => FoundPaths): FoundPaths {
  let last = find();
  let needed = 1;
  let agreed = 0;
  for (let walks = 1; walks < maxWalks; walks += 1) {
    const next = find();
    if (isSame(next, last)) agreed += 1;
    else [needed, agreed] = [5, 0];
    if (agreed === needed) return next;
    last = next;
  }
  throw moving();
}

function moving(): KitError {
  return new KitError({
    code: "unavailable",
    message: "The command was not run: folders of the workspace were moved at that moment.",
    hint: "Try again; if another command moves folders all the time, wait until it ends.",
  });
}

function isA(path: string, type: "file" | "folder"): boolean {
  const stats = lstatSync(path, { throwIfNoEntry: false });
  return (type === "file" ? stats?.isFile() : stats?.isDirectory()) === true;
}

function unguarded(obstacle: string): KitError {
  return new KitError({
    code: "unavailable",
    message: `The workspace ${obstacle}, so kit cannot protect all of its paths from commands.`,
    hint: "Remove or move what is too much, or give the user of kit the rights to the folder (chmod u+rwx); or use a smaller folder as the workspace.",
  });
}

/**
 * Refuses what commands of a killed kit have made. Without the guard of an agent these are new repositories, and a later call with
 * a guard finds the rest. Returns sentences for the caller of the next command.
 */
export function finishWorkspace(
  workspace: Pick<Workspace, "root" | "state" | "hidden">,
  guard?: CommandAccess["guard"],
): readonly string[] {
  return finishKilled(workspace, {
    find: (hasGuard) => findAll(workspace, hasGuard ? guard : undefined, true),
    isLeft: (hasGuard) => hasGuard && guard === undefined,
  });
}

function findAll(
  { root, hidden }: Pick<Workspace, "root" | "hidden">,
  guard: CommandAccess["guard"],
  opensFolders = false,
): FoundPaths {
  const skipped = hidden.map((path) => relative(root, path));
  const { paths, ...rest } = findGuarded(root, { guard, skipped, opensFolders });
  const found = new Map(paths);
  for (const path of settingPaths(root)) if (exists(join(root, path))) found.set(path, { kind: "read-only" });
  return { paths: found, ...rest };
}

/** The path itself, or the target of a link if it lies in the workspace. */
function realPathsOf(root: string, path: string): readonly string[] {
  try {
    const real = realpathSync(join(root, path));
    return real !== root && isInside(root, real) ? [real] : [];
  } catch {
    return [];
  }
}

/** Folders of `node_modules` in which tools keep results. A command has its own, as people's tools run what is in theirs. */
const cacheNames = [".cache", ".vite", ".vite-temp"];
const maxCached = 10;

/** The read-only `node_modules` with the sandbox's own folders for caches. */
export function cachedFolders(paths: readonly string[], caches: string): readonly CachedFolder[] {
  const modules = paths.filter((path) => basename(path) === "node_modules").slice(0, maxCached);
  return modules.map((path) => {
    const key = createHash("sha256").update(path).digest("hex").slice(0, 16);
    const held = holdFolder(path, ".");
    try {
      const names = cacheNames.filter((name) => held !== undefined && isFolderIn(held.path, name));
      const mounts = names.map((name) => {
        const source = join(caches, key, name);
        mkdirSync(source, { recursive: true, mode: 0o700 });
        return { source, path: join(path, name), write: true };
      });
      return { path, mounts };
    } finally {
      held?.close();
    }
  });
}

/** Makes a folder, unless something else has its name. */
function isFolderIn(held: string, name: string): boolean {
  const path = join(held, name);
  try {
    if (!exists(path)) mkdirSync(path);
    return lstatSync(path).isDirectory();
  } catch {
    return false;
  }
}

import { lstatSync, readFileSync, realpathSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { isInside } from "../workspace-path.ts";

/** The paths of a workspace's repository, and the access that isolated commands have to them. */
export interface GitParts {
  /** The Git folder of the work tree. */
  readonly folder?: string;
  /** The repository of a linked worktree, outside the workspace: visible and read-only. */
  readonly seen: readonly string[];
  /** The parts of `seen` that `git commit` writes, for a wall without copies of repositories. */
  readonly changed: readonly string[];
  /** Files from which the host's Git reads which programs to run: read-only even in writable folders. They may be missing. */
  readonly protectedPaths: readonly string[];
}

const noParts: GitParts = { seen: [], changed: [], protectedPaths: [] };

/** Files that decide which programs Git runs; `modules` and `worktrees` contain other repositories. */
const decisive = ["config", "hooks", "config.worktree", "commondir", "gitdir", "modules", "worktrees"];

/** Finds the repository of the workspace root. */
export function gitPartsOf(root: string, write: boolean): GitParts {
  const entry = join(root, ".git");
  const stats = lstatSync(entry, { throwIfNoEntry: false });
  if (stats?.isDirectory() === true) return write ? ownParts(root, entry) : noParts;
  if (stats?.isFile() !== true) return noParts;
  const folder = linkedFolder(root, entry);
  if (folder === undefined) return { ...noParts, protectedPaths: write ? [entry] : [] };
  const common = dirname(dirname(folder));
  if (!write) return { ...noParts, seen: [common] };
  return {
    folder,
    seen: [common],
    changed: ["objects", "refs", "logs"].map((name) => join(common, name)).filter(existsWithoutLink),
    protectedPaths: [entry, ...decisive.map((name) => join(folder, name))],
  };
}

function ownParts(root: string, folder: string): GitParts {
  const all = decisive.map((name) => join(folder, name));
  return { ...noParts, folder, protectedPaths: [...all, ...all.flatMap((path) => targetOf(root, path))] };
}

/** The target of a link, if it lies in the workspace; targets outside must not become visible. */
function targetOf(root: string, path: string): readonly string[] {
  try {
    const real = realpathSync(path);
    return real !== path && real !== root && isInside(root, real) ? [real] : [];
  } catch {
    return [];
  }
}

/**
 * The folder that the `.git` file of a linked worktree names. A model can write that file and name any folder, so
 * the folder must lie outside the workspace and point back to this file.
 */
function linkedFolder(root: string, entry: string): string | undefined {
  try {
    const gitDir = /^gitdir: (.+)\n?$/.exec(readFileSync(entry, "utf8").slice(0, 4_096))?.[1];
    if (gitDir === undefined) return undefined;
    const folder = realpathSync(resolve(root, gitDir));
    const worktrees = dirname(folder);
    const back = resolve(folder, readFileSync(join(folder, "gitdir"), "utf8").trim());
    const common = resolve(folder, readFileSync(join(folder, "commondir"), "utf8").trim());
    const isLinkedWorktree =
      basename(worktrees) === "worktrees" &&
      common === dirname(worktrees) &&
      !isInside(root, folder) &&
      realpathSync(dirname(back)) === root &&
      basename(back) === ".git" &&
      existsWithoutLink(join(common, "objects")) &&
      existsWithoutLink(join(common, "HEAD"));
    return isLinkedWorktree ? folder : undefined;
  } catch {
    // The named folder does not exist; Git will report it.
    return undefined;
  }
}

/** Whether the path exists and is not a link. */
function existsWithoutLink(path: string): boolean {
  const stats = lstatSync(path, { throwIfNoEntry: false });
  return stats !== undefined && !stats.isSymbolicLink();
}

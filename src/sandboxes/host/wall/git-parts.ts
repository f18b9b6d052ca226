import { lstatSync, mkdirSync, readFileSync, readlinkSync, realpathSync, rmSync, symlinkSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { isInside } from "../workspace-path.ts";

/** The paths of a workspace's repository, and the access that isolated commands have to them. */
export interface GitParts {
  /** The repository of a linked worktree, outside the workspace: visible and read-only. */
  readonly seen: readonly string[];
  /** The parts of `seen` that `git commit` writes. */
  readonly changed: readonly string[];
  /** Files from which the host's Git reads which programs to run: read-only even in writable folders. */
  readonly protectedPaths: readonly string[];
  /** Missing files that would have the same effect; if a command creates one, it is removed. */
  readonly unwanted: readonly string[];
  /** Links in place of decisive files. A mount cannot protect a link, so a changed link is restored afterwards. */
  readonly links: ReadonlyMap<string, string>;
}

const noParts: GitParts = { seen: [], changed: [], protectedPaths: [], unwanted: [], links: new Map() };

/** Files that decide which programs Git runs; `modules` and `worktrees` contain other repositories. */
const decisive = ["config", "hooks", "config.worktree", "commondir", "gitdir", "modules", "worktrees"];
/** Decisive files that ordinary repositories lack. */
const otherwiseDecisive = ["config.worktree", "commondir"];

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
    ...noParts,
    seen: [common],
    changed: [...["objects", "refs", "logs"].map((name) => join(common, name)), folder].filter(
      existsWithoutLink,
    ),
    protectedPaths: [entry, ...decisive.map((name) => join(folder, name))].filter(existsWithoutLink),
    unwanted: [join(folder, "config.worktree")].filter(isMissing),
  };
}

function ownParts(root: string, folder: string): GitParts {
  const hooks = join(folder, "hooks");
  // A missing folder cannot be protected; an empty one can, and Git accepts it.
  if (isMissing(hooks) && existsWithoutLink(join(folder, "HEAD"))) mkdirSync(hooks);
  const all = decisive.map((name) => join(folder, name));
  const links = all.filter((path) => !isMissing(path) && !existsWithoutLink(path));
  return {
    ...noParts,
    protectedPaths: [...all.filter(existsWithoutLink), ...links.flatMap((path) => targetOf(root, path))],
    unwanted: otherwiseDecisive.map((name) => join(folder, name)).filter(isMissing),
    links: new Map(links.map((path) => [path, readlinkSync(path)])),
  };
}

/** The target of a link, if it lies in the workspace; targets outside must not become visible. */
function targetOf(root: string, path: string): readonly string[] {
  try {
    const real = realpathSync(path);
    return real !== root && isInside(root, real) ? [real] : [];
  } catch {
    return [];
  }
}

/** Removes `unwanted` files and restores `links` after a command. */
export function undoUnwanted({ unwanted, links }: GitParts): void {
  for (const path of unwanted) rmSync(path, { recursive: true, force: true });
  for (const [path, target] of links) {
    if (!isMissing(path) && !existsWithoutLink(path) && readlinkSync(path) === target) continue;
    // The command removed the repository, so there is nothing to restore.
    if (!existsWithoutLink(dirname(path))) continue;
    rmSync(path, { recursive: true, force: true });
    symlinkSync(target, path);
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

const isMissing = (path: string): boolean => lstatSync(path, { throwIfNoEntry: false }) === undefined;

/** Whether the path exists and is not a link. */
function existsWithoutLink(path: string): boolean {
  const stats = lstatSync(path, { throwIfNoEntry: false });
  return stats !== undefined && !stats.isSymbolicLink();
}

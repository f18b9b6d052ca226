import { lstatSync, mkdirSync, readFileSync, readlinkSync, realpathSync, rmSync, symlinkSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { isInside } from "../workspace-path.ts";

/** How the repository of a workspace lies within a wall. */
export interface GitParts {
  /** Outside of the workspace, where a linked worktree has its repository: seen, and not changed. */
  readonly seen: readonly string[];
  /** The ones of these that `git commit` changes. */
  readonly changed: readonly string[];
  /** Read by the Git of the host, which runs what they name: not changed, whatever else may be. */
  readonly kept: readonly string[];
  /** Files that would say the same in another way. None is there; one that a command makes is removed. */
  readonly unwanted: readonly string[];
  /** Links in the place of decisive parts: no mount keeps a link, so one that a command changes is made anew. */
  readonly links: ReadonlyMap<string, string>;
}

const none: GitParts = { seen: [], changed: [], kept: [], unwanted: [], links: new Map() };

/** Files that decide which programs Git runs; `modules` and `worktrees` hold those of other repositories. */
const decisive = ["config", "hooks", "config.worktree", "commondir", "gitdir", "modules", "worktrees"];
/** Decisive files that an ordinary repository does not have. */
const otherwiseDecisive = ["config.worktree", "commondir"];

/** Finds the repository whose worktree the root of a workspace is. */
export function gitPartsOf(root: string, write: boolean): GitParts {
  const entry = join(root, ".git");
  const stats = lstatSync(entry, { throwIfNoEntry: false });
  if (stats?.isDirectory() === true) return write ? ownParts(root, entry) : none;
  if (stats?.isFile() !== true) return none;
  const folder = linkedFolder(root, entry);
  if (folder === undefined) return { ...none, kept: write ? [entry] : [] };
  const common = dirname(dirname(folder));
  if (!write) return { ...none, seen: [common] };
  return {
    ...none,
    seen: [common],
    changed: [...["objects", "refs", "logs"].map((name) => join(common, name)), folder].filter(isThere),
    kept: [entry, ...decisive.map((name) => join(folder, name))].filter(isThere),
    unwanted: [join(folder, "config.worktree")].filter(isMissing),
  };
}

function ownParts(root: string, folder: string): GitParts {
  const hooks = join(folder, "hooks");
  // Git takes a repository without hooks for what it is, and an empty folder can be held as it is.
  if (isMissing(hooks) && isThere(join(folder, "HEAD"))) mkdirSync(hooks);
  const all = decisive.map((name) => join(folder, name));
  const links = all.filter((path) => !isMissing(path) && !isThere(path));
  return {
    ...none,
    kept: [...all.filter(isThere), ...links.flatMap((path) => targetOf(root, path))],
    unwanted: otherwiseDecisive.map((name) => join(folder, name)).filter(isMissing),
    links: new Map(links.map((path) => [path, readlinkSync(path)])),
  };
}

/** The target of a link within the workspace; targets outside must not become visible. */
function targetOf(root: string, path: string): readonly string[] {
  try {
    const real = realpathSync(path);
    return real !== root && isInside(root, real) ? [real] : [];
  } catch {
    return [];
  }
}

/** Undoes what a command has made of `unwanted` and of `links`. */
export function undoUnwanted({ unwanted, links }: GitParts): void {
  for (const path of unwanted) rmSync(path, { recursive: true, force: true });
  for (const [path, target] of links) {
    if (!isMissing(path) && !isThere(path) && readlinkSync(path) === target) continue;
    // With the repository gone there is nothing to mend.
    if (!isThere(dirname(path))) continue;
    rmSync(path, { recursive: true, force: true });
    symlinkSync(target, path);
  }
}

/**
 * The folder that the `.git` file of a linked worktree names. The file may be of a model's making and name any
 * folder, so what it names has to be outside of the workspace and name this very file in turn.
 */
function linkedFolder(root: string, entry: string): string | undefined {
  try {
    const gitDir = /^gitdir: (.+)\n?$/.exec(readFileSync(entry, "utf8").slice(0, 4_096))?.[1];
    if (gitDir === undefined) return undefined;
    const folder = realpathSync(resolve(root, gitDir));
    const worktrees = dirname(folder);
    const back = resolve(folder, readFileSync(join(folder, "gitdir"), "utf8").trim());
    const common = resolve(folder, readFileSync(join(folder, "commondir"), "utf8").trim());
    const isOne =
      basename(worktrees) === "worktrees" &&
      common === dirname(worktrees) &&
      !isInside(root, folder) &&
      realpathSync(dirname(back)) === root &&
      basename(back) === ".git" &&
      isThere(join(common, "objects")) &&
      isThere(join(common, "HEAD"));
    return isOne ? folder : undefined;
  } catch {
    // It names nothing that is there: Git will say so.
    return undefined;
  }
}

const isMissing = (path: string): boolean => lstatSync(path, { throwIfNoEntry: false }) === undefined;

/** Whether something lies there that is not a link. */
function isThere(path: string): boolean {
  const stats = lstatSync(path, { throwIfNoEntry: false });
  return stats !== undefined && !stats.isSymbolicLink();
}

import { everythingIgnored, type IgnoreScope, ignoreFileName } from "../../files/ignore-scope.ts";
import { joinPath } from "../../files/obstacle.ts";
import type { IgnoreExceptions } from "./ignore-exceptions.ts";
import { type Candidate, type FolderReading, isUntouched, readFolder } from "./read-folder.ts";
import { type Folder, holdsName, namesIn, parentOf, type Tree } from "./tree.ts";

export interface ScanTreeOptions {
  /** Absolute, with links resolved. */
  readonly root: string;
  readonly previous: Tree;
  /** The scope outside of the root folder. */
  readonly scope: IgnoreScope;
  readonly exceptions: IgnoreExceptions;
  /** Whether some adapter reads files of this path. */
  readonly isSource: (path: string) => boolean;
  /** Scan these folders only, and new folders below them. Default: the whole tree. */
  readonly folders?: readonly string[];
  /** Folders to list again even when they are unchanged, with all below: their files have other names. */
  readonly relisted?: ReadonlySet<string>;
  /** Lists every folder again, because rules from outside have changed. */
  readonly isStale?: boolean;
}

const foldersPerStep = 64;

/** The difference of a tree from the previous one. */
export interface TreeChange {
  /** New and changed folders, each after its parent. */
  readonly folders: readonly Folder[];
  readonly removedFolders: readonly string[];
  /** Sources to read. A path that ends in "/" is a folder that cannot be listed. */
  readonly candidates: readonly Candidate[];
  /** Links that no adapter would read by their own name. */
  readonly otherLinks?: readonly Candidate[];
  /** Paths that can have been sources and are now gone or ignored. */
  readonly removed: readonly string[];
}

/**
 * Walks the tree once and returns the difference from the previous pass. Yields between folders: an async caller pauses there,
 * a reader that finds the index damaged runs on.
 *
 * A folder whose stamp is unchanged is not listed again: each of its sources costs a stat. Links to
 * folders are not followed, so the walk ends and stays in the root; `scanProject`
 * resolves links.
 */
export function* scanTree(options: ScanTreeOptions): Generator<undefined, TreeChange> {
  const { root, previous, isSource, exceptions } = options;
  const folders: Folder[] = [];
  const candidates: Candidate[] = [];
  const otherLinks: Candidate[] = [];
  const removed: string[] = [];
  const removedFolders = new Set<string>();
  // Folders found or found stale on the way, with the folders below them still to be visited.
  const pending: string[] = [];
  const stale = new Set<string>();
  const readings = new Map<string, Folder>();
  const scopes = createScopes(options, (path) => readings.get(path) ?? previous.get(path));

  const remove = (path: string): void => {
    const folder = previous.get(path);
    if (folder === undefined || removedFolders.has(path)) return;
    removedFolders.add(path);
    removed.push(`${path}/`);
    for (const name of namesIn(folder.sources)) removed.push(joinPath(path, name));
    for (const name of namesIn(folder.folders)) remove(joinPath(path, name));
  };

  const take = (
    before: Folder | undefined,
    { folder, candidates: changedFiles, isStale }: FolderReading,
  ): void => {
    for (const candidate of changedFiles)
      (candidate.isLink && !isSource(candidate.path) ? otherLinks : candidates).push(candidate);
    if (folder === before) return;
    folders.push(folder);
    readings.set(folder.path, folder);
    if (before !== undefined) {
      removed.push(`${folder.path}/`);
      for (const name of missing(before.sources, folder.sources)) removed.push(joinPath(folder.path, name));
      for (const name of missing(before.folders, folder.folders)) remove(joinPath(folder.path, name));
    }
    if (before?.folders === folder.folders && !isStale) return;
    for (const name of namesIn(folder.folders)) {
      const child = joinPath(folder.path, name);
      if (isStale) stale.add(child);
      if (isStale || !previous.has(child)) pending.push(child);
    }
  };

  const visit = (path: string): void => {
    const before = previous.get(path);
    const isRelisted = options.relisted?.has(path) === true;
    const isStale = options.isStale === true || isRelisted || (stale.size > 0 && stale.delete(path));
    if (before !== undefined && !isStale && isUntouched(root, before)) return;
    const scope = (): IgnoreScope => scopes(path);
    const reading = readFolder({ root, path, before, scope, exceptions, isStale, isSource });
    if (reading === undefined) remove(path);
    else take(before, reading);
  };

  const sortedFolders = options.folders && [...options.folders].sort();
  const knownFolders = options.isStale || previous.size === 0 ? [""] : (sortedFolders ?? previous.keys());
  const done = new Set<string>();
  let visited = 0;
  for (const path of knownFolders) {
    if (removedFolders.has(path) || done.has(path)) continue;
    visit(path);
    visited += 1;
    if (visited % foldersPerStep === 0) yield;
    for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
      done.add(next);
      visit(next);
      yield;
    }
  }
  const seen = new Set(candidates.map(({ path }) => path));
  return {
    folders,
    removedFolders: [...removedFolders],
    candidates,
    ...(otherLinks.length > 0 && { otherLinks }),
    removed: removed.filter((path) => !seen.has(path)),
  };
}

/** Finds the ignore rules that apply in a folder from the folders above it. Caches them per folder. */
function createScopes(
  { scope, exceptions }: ScanTreeOptions,
  folderAt: (path: string) => Folder | undefined,
): (path: string) => IgnoreScope {
  const scopes = new Map<string, IgnoreScope>([["", scope]]);
  const scopeOf = (path: string): IgnoreScope => {
    let found = scopes.get(path);
    if (found === undefined) {
      const parent = parentOf(path);
      const outer = scopeOf(parent);
      const folder = folderAt(parent);
      found = folder !== undefined && holdsName(folder.sources, ignoreFileName) ? outer.enter(parent) : outer;
      // Only an exception enters a folder that is ignored.
      if (exceptions.keepsFolder(path) && found.ignores(path, true)) found = everythingIgnored;
      scopes.set(path, found);
    }
    return found;
  };
  return scopeOf;
}

function missing(before: string, now: string): string[] {
  if (before === now || before === "") return [];
  const names = new Set(namesIn(now));
  return namesIn(before).filter((name) => !names.has(name));
}

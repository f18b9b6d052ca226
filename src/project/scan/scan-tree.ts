import { type IgnoreScope, ignoreFileName } from "../../files/ignore-scope.ts";
import { joinPath } from "../../files/join-path.ts";
import { type Folder, holdsName, namesIn, parentOf, type Tree } from "./folder.ts";
import { type Candidate, isUntouched, type Look, lookAtFolder } from "./look-at-folder.ts";

export interface ScanTreeOptions {
  /** Absolute, with links resolved. */
  readonly root: string;
  readonly previous: Tree;
  /** The scope outside of the root folder. */
  readonly scope: IgnoreScope;
  /** Whether some adapter reads files of this path. */
  readonly isSource: (path: string) => boolean;
  /** Look at these folders only, and below them only at what is new. Default: the whole tree. */
  readonly folders?: readonly string[];
  /** Folders to list again even when they are unchanged, with all below: their files have other names. */
  readonly relisted?: ReadonlySet<string>;
  /** Lists every folder again, because rules from outside have changed. */
  readonly isStale?: boolean;
}

const foldersPerStep = 64;

/** How the tree differs from the previous one. */
export interface TreeChange {
  /** Folders that are new or differ, each after the folder that it lies in. */
  readonly folders: readonly Folder[];
  readonly removedFolders: readonly string[];
  /** Sources to read. A path ending in "/" stands for a folder that cannot be listed. */
  readonly candidates: readonly Candidate[];
  /** Links that no adapter would read by their own name. */
  readonly otherLinks?: readonly Candidate[];
  /** Paths that may have been sources and are gone or ignored now. */
  readonly removed: readonly string[];
}

/**
 * Walks the tree once and says what differs from the previous pass. Yields every now and then, so
 * that a caller can take breaks.
 *
 * A folder whose stamp is unchanged is not listed again: each of its sources costs a stat. Links to
 * folders are not followed, so the walk ends and stays in the root; where links lead, `scanProject`
 * finds out.
 */
export function* scanTree(options: ScanTreeOptions): Generator<undefined, TreeChange> {
  const { root, previous, isSource } = options;
  const folders: Folder[] = [];
  const candidates: Candidate[] = [];
  const otherLinks: Candidate[] = [];
  const removed: string[] = [];
  const removedFolders = new Set<string>();
  // Folders found or found stale on the way, with the folders below them still to be visited.
  const pending: string[] = [];
  const stale = new Set<string>();
  const looks = new Map<string, Folder>();
  const scopes = createScopes(options, (path) => looks.get(path) ?? previous.get(path));

  const remove = (path: string): void => {
    const folder = previous.get(path);
    if (folder === undefined || removedFolders.has(path)) return;
    removedFolders.add(path);
    removed.push(`${path}/`);
    for (const name of namesIn(folder.sources)) removed.push(joinPath(path, name));
    for (const name of namesIn(folder.folders)) remove(joinPath(path, name));
  };

  const take = (before: Folder | undefined, { folder, candidates: found, isStale }: Look): void => {
    for (const candidate of found)
      (candidate.isLink && !isSource(candidate.path) ? otherLinks : candidates).push(candidate);
    if (folder === before) return;
    folders.push(folder);
    looks.set(folder.path, folder);
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
    const look = lookAtFolder({ root, path, before, scope: () => scopes(path), isStale, isSource });
    if (look === undefined) remove(path);
    else take(before, look);
  };

  const wanted = options.folders && [...options.folders].sort();
  const known = options.isStale || previous.size === 0 ? [""] : (wanted ?? previous.keys());
  const done = new Set<string>();
  let visited = 0;
  for (const path of known) {
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

/** Gives the rules that reach into a folder from the folders above it. Kept per folder. */
function createScopes(
  { scope }: ScanTreeOptions,
  folderAt: (path: string) => Folder | undefined,
): (path: string) => IgnoreScope {
  const known = new Map<string, IgnoreScope>([["", scope]]);
  const scopeOf = (path: string): IgnoreScope => {
    let found = known.get(path);
    if (found === undefined) {
      const parent = parentOf(path);
      const above = scopeOf(parent);
      const folder = folderAt(parent);
      found = folder !== undefined && holdsName(folder.sources, ignoreFileName) ? above.enter(parent) : above;
      known.set(path, found);
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

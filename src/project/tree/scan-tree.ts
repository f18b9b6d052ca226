import { type IgnoreScope, ignoreFileName } from "../../files/ignore-scope.ts";
import { joinPath } from "../../files/join-path.ts";
import type { Folder, Tree } from "./folder.ts";
import { type Candidate, lookAtFolder } from "./look-at-folder.ts";

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
  /** Lists every folder again, because rules from outside have changed. */
  readonly isStale?: boolean;
}

/** How the tree differs from the previous one. */
export interface TreeChange {
  /** Folders that are new or differ. */
  readonly folders: readonly Folder[];
  readonly removedFolders: readonly string[];
  /** Sources to read. A path ending in "/" stands for a folder that cannot be listed. */
  readonly candidates: readonly Candidate[];
  /** Paths that may have been sources and are gone or ignored now. */
  readonly removed: readonly string[];
}

interface Visit {
  readonly path: string;
  /** What the folders above ignore; the folder's own rules are not known yet. */
  readonly scope: IgnoreScope;
  readonly isStale: boolean;
}

/**
 * Walks the tree once and says what differs from the previous pass. Yields after every folder, so
 * that a caller can take breaks.
 *
 * A folder whose stamp is unchanged is not listed again: each of its sources costs a stat. Links to
 * folders are not followed, so the walk ends and stays in the root; links to files are left to
 * whoever reads the file.
 */
export function* scanTree(options: ScanTreeOptions): Generator<undefined, TreeChange> {
  const { root, previous, isSource } = options;
  const folders: Folder[] = [];
  const removedFolders: string[] = [];
  const candidates: Candidate[] = [];
  const removed: string[] = [];
  const remove = (path: string): void => {
    const folder = previous.get(path);
    if (folder === undefined) return;
    removedFolders.push(path);
    removed.push(`${path}/`, ...folder.sources.map((name) => joinPath(path, name)));
    for (const name of folder.folders) remove(joinPath(path, name));
  };

  const stack = startOf(options);
  for (let visit = stack.pop(); visit !== undefined; visit = stack.pop()) {
    const { path, scope } = visit;
    const before = previous.get(path);
    const look = lookAtFolder({ root, path, before, scope, isStale: visit.isStale, isSource });
    if (look === undefined) {
      remove(path);
      continue;
    }
    const { folder, isStale } = look;
    for (const candidate of look.candidates) candidates.push(candidate);
    if (folder !== before) {
      folders.push(folder);
      if (before !== undefined) {
        removed.push(`${path}/`);
        for (const name of missing(before.sources, folder.sources)) removed.push(joinPath(path, name));
        for (const name of missing(before.folders, folder.folders)) remove(joinPath(path, name));
      }
    }
    const inner = folder.sources.includes(ignoreFileName) ? scope.enter(path) : scope;
    for (const name of folder.folders) {
      const child = joinPath(path, name);
      if (options.folders === undefined || isStale || !previous.has(child)) {
        stack.push({ path: child, scope: inner, isStale });
      }
    }
    yield;
  }
  const seen = new Set(candidates.map(({ path }) => path));
  return { folders, removedFolders, candidates, removed: removed.filter((path) => !seen.has(path)) };
}

function startOf({ previous, scope, folders, isStale = false }: ScanTreeOptions): Visit[] {
  if (folders === undefined || isStale) return [{ path: "", scope, isStale }];
  return folders.map((path) => {
    let inner = scope;
    let above = "";
    for (const name of path === "" ? [] : path.split("/")) {
      if (previous.get(above)?.sources.includes(ignoreFileName)) inner = inner.enter(above);
      above = joinPath(above, name);
    }
    return { path, scope: inner, isStale: false };
  });
}

function missing(before: readonly string[], now: readonly string[]): string[] {
  if (before === now) return [];
  const names = new Set(now);
  return before.filter((name) => !names.has(name));
}

import { everythingIgnored, type IgnoreScope, ignoreFileName } from "../../files/ignore-scope.ts";
import type { SourceCatalog } from "./source-catalog.ts";
import { holdsName, parentOf, type Tree } from "./tree.ts";

/** Decides which ignored entries belong to a project all the same. */
export interface IgnoreExceptions {
  /** Whether a file is read, or known to exist; `inIgnored` says that its folder is ignored as well. */
  keepsFile(path: string, inIgnored: boolean): boolean;
  keepsFolder(path: string): boolean;
}

/** The parts of a catalog that decide about ignored entries. */
type ExceptionCatalog = Pick<SourceCatalog, "isSource" | "isGuidelineFile" | "isToolFolder">;

/**
 * Creates the exceptions of a project. Git ignores no file that it tracks, and tools read their rules from the disk: by their name
 * (`CLAUDE.local.md`) where the folder itself is not ignored, and in the folders of the tool. No other ignored folder is entered.
 */
export function createIgnoreExceptions(
  { isSource, isGuidelineFile, isToolFolder }: ExceptionCatalog,
  trackedPaths: readonly string[],
): IgnoreExceptions {
  const files = new Set(trackedPaths);
  const folders = new Set<string>();
  for (const path of trackedPaths)
    for (let folder = parentOf(path); folder !== "" && !folders.has(folder); folder = parentOf(folder))
      folders.add(folder);
  return {
    keepsFile: (path, inIgnored) =>
      files.has(path) || (inIgnored ? isToolFolder(parentOf(path)) && isSource(path) : isGuidelineFile(path)),
    keepsFolder: (path) => folders.has(path) || isToolFolder(path),
  };
}

interface IgnoreRules {
  /** The scope outside of the root folder. */
  readonly scope: IgnoreScope;
  readonly tree: Tree;
  /** The files that Git tracks although a rule matches them. */
  readonly tracked: readonly string[];
}

/** Creates the test whether Git leaves out a file of the tree: a rule matches it or a folder above it. */
export function createIgnoredTest({ scope, tree, tracked }: IgnoreRules): (path: string) => boolean {
  const trackedPaths = new Set(tracked);
  // Many files have one folder, and rules are compiled once for each scope.
  const scopes = new Map<string, IgnoreScope>();
  const scopeOf = (folder: string): IgnoreScope => {
    const known = scopes.get(folder);
    if (known !== undefined) return known;
    const above = folder === "" ? scope : scopeOf(parentOf(folder));
    const outer = folder !== "" && above.ignores(folder, true) ? everythingIgnored : above;
    const found = holdsName(tree.get(folder)?.sources ?? "", ignoreFileName) ? outer.enter(folder) : outer;
    scopes.set(folder, found);
    return found;
  };
  return (path) => !trackedPaths.has(path) && scopeOf(parentOf(path)).ignores(path, false);
}

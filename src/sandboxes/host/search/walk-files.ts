import { type Dirent, readdirSync } from "node:fs";
import { compileGlob } from "../../../base/glob/glob.ts";
import { KitError } from "../../../base/kit-error.ts";
import { findPlace } from "../../../files/find-place.ts";
import {
  createIgnoreScope,
  type IgnoreScope,
  ignoreFileName,
  isSkippedName,
} from "../../../files/ignore-scope.ts";
import { joinPath } from "../../../files/obstacle.ts";
import { readRegularFileSync } from "../../../files/replace-file.ts";
import { holdFolder } from "../../../files/walk.ts";
import type { Workspace } from "../workspace-path.ts";

/** A file or link that a walk found, while its folder is held open. */
export interface FoundFile {
  /** Relative to the root of the workspace. */
  readonly path: string;
  /** The folder's path for the system, which may name a descriptor. */
  readonly folder: string;
  readonly name: string;
  readonly isLink: boolean;
}

interface Level {
  readonly path: string;
  readonly folder: string;
  readonly entries: readonly Dirent[];
  readonly scope: SearchScope;
  next: number;
  close(): void;
}

/** Deeper folders are not entered, because every folder on the way is held open. */
const maxDepth = 128;

/**
 * Yields the files below an open folder, depth first, by name. Follows no link. Skips ignored files, and folders
 * without the project's own sources, such as `.git` and `node_modules`.
 */
export function* walkFiles(start: {
  readonly path: string;
  readonly folder: string;
  readonly scope: SearchScope;
}): Generator<FoundFile, void, void> {
  const levels: Level[] = [toLevel({ ...start, close: () => undefined })];
  try {
    for (let level = levels.at(-1); level !== undefined; level = levels.at(-1)) {
      const entry = level.entries[level.next];
      level.next += 1;
      if (entry === undefined) {
        levels.pop()?.close();
        continue;
      }
      const { name } = entry;
      const path = joinPath(level.path, name);
      const isFolder = entry.isDirectory();
      if (isSkippedName(name) || level.scope.ignored?.ignores(path, isFolder) === true) continue;
      if (!isFolder) {
        const isLink = entry.isSymbolicLink();
        if (isLink || entry.isFile()) yield { path, folder: level.folder, name, isLink };
      } else if (levels.length < maxDepth) {
        const folder = holdFolder(level.folder, name);
        if (folder === undefined) continue;
        levels.push(toLevel({ path, folder: folder.path, scope: level.scope, close: folder.close }));
      }
    }
  } finally {
    for (const level of levels) level.close();
  }
}

function toLevel(start: Omit<Level, "entries" | "next">): Level {
  const entries = listFolder(start.folder);
  const scope = entries.some(({ name }) => name === ".gitignore")
    ? start.scope.enter(start.path, start.folder)
    : start.scope;
  return { ...start, scope, entries, next: 0 };
}

function listFolder(folder: string): Dirent[] {
  try {
    const entries = readdirSync(folder, { withFileTypes: true });
    return entries.sort((entry, other) => (entry.name < other.name ? -1 : 1));
  } catch {
    // An unreadable folder counts as empty.
    return [];
  }
}

/** The paths that a search skips. */
interface SearchScope {
  /** `undefined` if nothing is ignored: the caller asked for a folder that is ignored itself. */
  readonly ignored: IgnoreScope | undefined;
  /** Returns the scope of a folder below this one; `folder` is its path for the system. */
  enter(path: string, folder: string): SearchScope;
}

const maxIgnoreFileBytes = 1024 * 1024;

/** The scope of the folder at `path`, by the ignore files above it. */
export async function createSearchScope(workspace: Workspace, path: string): Promise<SearchScope> {
  const texts = new Map<string, string>();
  const outermost = createIgnoreScope({
    outer: workspace.outerRules(),
    readText: (file) => texts.get(file) ?? "",
  });
  const scopeOf = (ignored: IgnoreScope | undefined): SearchScope => ({
    ignored,
    enter(subfolder, folder) {
      if (ignored === undefined) return this;
      const bytes = readRegularFileSync(folder, ignoreFileName, maxIgnoreFileBytes);
      if (bytes === undefined) return this;
      texts.set(joinPath(subfolder, ignoreFileName), bytes.toString("utf8"));
      return scopeOf(ignored.enter(subfolder));
    },
  });
  let scope = scopeOf(outermost);
  let parent = "";
  for (const name of path === "" ? [] : path.split("/")) {
    const place = await findPlace({ root: workspace.root, path: parent, end: "folder" });
    if (place === undefined) break;
    scope = scope.enter(parent, place.folder);
    await place.close();
    parent = joinPath(parent, name);
    if (scope.ignored?.ignores(parent, true) === true) return scopeOf(undefined);
  }
  return scope;
}

/** Compiles a glob of a search. Throws `invalid_request` with the reason if it can match nothing. */
export function compileSearchGlob(pattern: string): (path: string) => boolean {
  const glob = compileGlob(pattern);
  if (glob.invalid === undefined) return glob.matches;
  throw new KitError({ code: "invalid_request", message: `The glob is not valid: ${glob.invalid}.` });
}

/** Compiles the glob of a filter: without a slash it is matched against file names, so `*.ts` matches in any folder. */
export function compileNameOrPathGlob(pattern: string): (path: string) => boolean {
  return compileSearchGlob(pattern.includes("/") ? pattern : `**/${pattern}`);
}

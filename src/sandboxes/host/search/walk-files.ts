import { type Dirent, readdirSync } from "node:fs";
import { holdFolder } from "../../../files/hold-folder.ts";
import { isSkippedName } from "../../../files/ignore-scope.ts";
import { joinPath } from "../../../files/join-path.ts";
import type { SearchScope } from "./search-scope.ts";

/** A file or link that a walk found, while its folder is held open. */
export interface FoundFile {
  /** Relative to the root of the workspace. */
  readonly path: string;
  /** Path of its folder for the system. */
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

/** Folders deeper than this are not gone into: each one on the way is held open. */
const maxDepth = 128;

/**
 * The files below an open folder, depth first, by name. Follows no link. Leaves out what is ignored,
 * and folders that hold no sources of anybody's own, such as `.git` and `node_modules`.
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
        const held = holdFolder(level.folder, name);
        if (held === undefined) continue;
        levels.push(toLevel({ path, folder: held.path, scope: level.scope, close: held.close }));
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
    return entries.sort((one, other) => (one.name < other.name ? -1 : 1));
  } catch {
    // A folder that may not be read has nothing to find.
    return [];
  }
}

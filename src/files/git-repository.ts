import { lstatSync, realpathSync, type Stats } from "node:fs";
import { basename, dirname, join, resolve, sep } from "node:path";
import { readSmallFile } from "./git-folder.ts";

/** The repository that Git would use. */
interface FoundRepository {
  /** Set if Git has to be told the work tree, because the configuration may name another one. */
  readonly workTree?: string;
  /** Why Git may not use it. */
  readonly refused?: string;
}

/**
 * Finds the repository of a folder as Git does, and refuses one that leads elsewhere: a `.git` of an archive can be a
 * file or a link that names any repository of the machine, or name the parts of another one. What Git itself makes, linked
 * work trees and submodules, names the folder in turn. `undefined` if Git would find none.
 */
export function repositoryAt(cwd: string): FoundRepository | undefined {
  const start = realOf(cwd);
  if (start === undefined) return undefined;
  for (let folder = start; ; folder = dirname(folder)) {
    const gitFolder = gitFolderOf(folder);
    if (gitFolder !== undefined && statOf(join(gitFolder, "HEAD")) !== undefined)
      return examine(folder, gitFolder);
    if (folder === dirname(folder)) return undefined;
  }
}

/** The folder behind an entry `.git`: itself, or what its text or its link names. */
function gitFolderOf(folder: string): string | undefined {
  const entry = join(folder, ".git");
  const stats = statOf(entry);
  if (stats === undefined) return undefined;
  if (!stats.isFile()) return realOf(entry);
  const pointer = /^gitdir: (.+)/.exec(readSmallFile(entry) ?? "")?.[1];
  return pointer === undefined ? undefined : realOf(resolve(folder, pointer));
}

function examine(folder: string, gitFolder: string): FoundRepository {
  const common = readSmallFile(join(gitFolder, "commondir"))?.trim();
  if (statOf(join(gitFolder, "commondir")) !== undefined) {
    const back = readSmallFile(join(gitFolder, "gitdir"))?.trim();
    const isLinked =
      common !== undefined &&
      back !== undefined &&
      basename(dirname(gitFolder)) === "worktrees" &&
      realOf(resolve(gitFolder, common)) === dirname(dirname(gitFolder)) &&
      realOf(dirname(resolve(gitFolder, back))) === folder;
    return isLinked
      ? {}
      : {
          refused: "The .git of this folder names the parts of a repository that does not know this folder.",
        };
  }
  const config = readSmallFile(join(gitFolder, "config"));
  if (gitFolder.startsWith(`${folder}${sep}`)) {
    const mayNameAnother =
      config === undefined || /worktree/i.test(config) || statOf(join(gitFolder, "config.worktree"));
    return mayNameAnother ? { workTree: folder } : {};
  }
  const back = /^\s*worktree\s*=\s*"?([^"\n]+?)"?\s*$/im.exec(config ?? "")?.[1];
  return back !== undefined && realOf(resolve(gitFolder, back)) === folder
    ? {}
    : {
        refused:
          "The .git of this folder leads to a repository that does not know this folder (its core.worktree would name it).",
      };
}

function statOf(path: string): Stats | undefined {
  try {
    return lstatSync(path, { throwIfNoEntry: false });
  } catch {
    return undefined;
  }
}

function realOf(path: string): string | undefined {
  try {
    return realpathSync(path);
  } catch {
    return undefined;
  }
}

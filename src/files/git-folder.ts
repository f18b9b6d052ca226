import { readFileSync, statSync } from "node:fs";
import { dirname, join, resolve } from "node:path";

/** The folders of a Git repository. All paths are absolute. */
export interface GitFolder {
  /** The top of the work tree. */
  readonly top: string;
  /** The Git folder of this work tree: holds `HEAD`. */
  readonly own: string;
  /** The Git folder of the repository: holds branches and `info/exclude`. Differs from the other in linked work trees. */
  readonly common: string;
}

/** Finds the repository of a folder, without running Git. */
export function findGitFolder(root: string): GitFolder | undefined {
  for (let folder = root; ; folder = dirname(folder)) {
    const entry = join(folder, ".git");
    if (statSync(entry, { throwIfNoEntry: false }) !== undefined) return toGitFolder(folder, entry);
    if (dirname(folder) === folder) return undefined;
  }
}

/** In a work tree or submodule `.git` is a file that names the folder, which may name a common one. */
function toGitFolder(top: string, entry: string): GitFolder {
  // Only at the beginning, as for Git: a pointer that Git does not see could lead anywhere.
  const pointer = /^gitdir: (.+)/.exec(readSmallFile(entry) ?? "")?.[1];
  if (pointer === undefined) return { top, own: entry, common: entry };
  const own = resolve(top, pointer);
  const common = readSmallFile(join(own, "commondir"))?.trim();
  return { top, own, common: common === undefined ? own : resolve(own, common) };
}

/**
 * Identifies the checked-out commit from the files of the repository alone: a changed value means that Git must be
 * asked. Undefined if only Git can tell.
 */
export function headKeyOf(root: string): string | undefined {
  const git = findGitFolder(root);
  if (git === undefined) return "none";
  const head = readSmallFile(join(git.own, "HEAD"))?.trim();
  if (head === undefined) return undefined;
  const ref = /^ref: (refs\/.+)$/.exec(head)?.[1];
  const target = ref === undefined ? "" : readSmallFile(join(git.common, ref))?.trim();
  // A branch without its own file is packed, or has no commit yet.
  const packed = target === undefined ? stampOf(join(git.common, "packed-refs")) : "";
  // Repositories with another branch storage name a file that does not exist.
  if (ref === "refs/heads/.invalid") return undefined;
  return [head, target ?? "", packed, stampOf(join(git.common, "shallow"))].join(" ");
}

function stampOf(file: string): string {
  const stats = statSync(file, { throwIfNoEntry: false });
  return stats === undefined ? "-" : `${stats.size}:${stats.mtimeMs}`;
}

/** The text of a file of at most 1 MiB; `undefined` if it cannot be read or is not a regular file. */
export function readSmallFile(file: string, maxBytes = 1024 * 1024): string | undefined {
  try {
    const stats = statSync(file, { throwIfNoEntry: false });
    return stats?.isFile() === true && stats.size <= maxBytes ? readFileSync(file, "utf8") : undefined;
  } catch {
    return undefined;
  }
}

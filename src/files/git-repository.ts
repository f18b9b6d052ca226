import { lstatSync, realpathSync, type Stats } from "node:fs";
import { basename, dirname, join, resolve, sep } from "node:path";
import { attempt } from "../base/attempt.ts";
import { findGitFolder, type GitFolder, readSmallFile } from "./git-folder.ts";

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

/** The largest list of packed branches that kit reads, in bytes. */
const maxPackedBytes = 64 * 1024 * 1024;

/**
 * The checked-out commit, from the files of the repository alone. Undefined outside of a repository, before the first commit, for a
 * `.git` that leads to a foreign repository, and if only Git can tell.
 */
export function headCommitOf(root: string): string | undefined {
  const git = gitFolderAt(root);
  if (git === undefined || repositoryAt(root)?.refused !== undefined) return undefined;
  let value = readInside(git.own, "HEAD")?.trim();
  // A name can stand for another one; Git follows five.
  for (let hop = 0; hop < 5 && value !== undefined; hop += 1) {
    if (/^(?:[0-9a-f]{40}|[0-9a-f]{64})$/.test(value)) return value;
    const [, ref] = /^ref: (refs\/.+)$/.exec(value) ?? [];
    if (ref === undefined || ref.split("/").includes("..")) return undefined;
    value = readInside(git.common, ref)?.trim() ?? packedCommit(git, ref);
  }
  return undefined;
}

/**
 * The files that decide about `headCommitOf`: the entries `.git` that would come first, then what names the commit. Git replaces these
 * files, so each change has a new inode or time.
 */
export function decidingFiles(root: string): string[] {
  const files: string[] = [];
  for (let folder = root; ; folder = dirname(folder)) {
    const entry = join(folder, ".git");
    files.push(entry);
    if (statOf(entry) !== undefined || folder === dirname(folder)) break;
  }
  const git = gitFolderAt(root);
  if (git === undefined) return files;
  const head = join(git.own, "HEAD");
  const ref = /^ref: (refs\/.+)/.exec(readSmallFile(head) ?? "")?.[1];
  const branch = join(git.common, ref ?? "HEAD");
  // Git looks for a branch among the packed ones only if it has no file of its own.
  const packed = statOf(branch) === undefined ? [join(git.common, "packed-refs")] : [];
  return [...files.slice(0, -1), head, branch, ...packed];
}

/** The same as `findGitFolder`; undefined also where the system refuses to tell. */
function gitFolderAt(root: string): GitFolder | undefined {
  return attempt(() => findGitFolder(root));
}

function packedCommit({ common }: GitFolder, ref: string): string | undefined {
  const text = readInside(common, "packed-refs", maxPackedBytes) ?? "";
  // Millions of lines would take seconds as a list.
  const end = `${text}\n`.indexOf(` ${ref}\n`);
  return end === -1 ? undefined : text.slice(text.lastIndexOf("\n", end) + 1, end);
}

/** The text of a file of a Git folder; undefined for a link out of it, which could name a secret. */
function readInside(folder: string, path: string, maxBytes?: number): string | undefined {
  const file = realOf(join(folder, path));
  return file?.startsWith(`${realOf(folder)}${sep}`) ? readSmallFile(file, maxBytes) : undefined;
}

const noThrow = { throwIfNoEntry: false } as const;

function statOf(path: string): Stats | undefined {
  // Each prompt comes here several times: a closure for `attempt` would show in its cost.
  try {
    return lstatSync(path, noThrow);
  } catch {
    return undefined;
  }
}

function realOf(path: string): string | undefined {
  return attempt(() => realpathSync(path));
}

import type { GitIndex } from "./git-index.ts";

const regularModes = [0o100644, 0o100755];
const linkMode = 0o120000;
const sparseMode = 0o040000;
const modes = [...regularModes, linkMode, sparseMode, 0o160000];

/** Characters that macOS ignores in names. */
const ignorable = /[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]/gu;
/** A name that is `.git` on macOS or Windows. */
const gitFolder = /^(?:\.git|git~1)[. ]*(?::|$)/i;
const gitModules = /^(?:\.gitmodules|gitmod~\d+|gi7[0-9a-f]{0,3}~\d+)[. ]*(?::|$)/i;

/**
 * Whether Git could write a file of this name into a work tree: its own check (`verify_path` in `read-cache.c`), with the protections
 * for macOS and Windows. Git checks the names of new entries, and not those of an index that it reads.
 */
export function isSafeName(name: string, isLink = false): boolean {
  return (
    !name.includes("\0") &&
    name.split("/").every((segment) => {
      if (["", ".", ".."].includes(segment)) return false;
      return segment
        .replaceAll(ignorable, "")
        .split("\\")
        .every((part) => !gitFolder.test(part) && !(isLink && gitModules.test(part)));
    })
  );
}

/** Whether an index has only entries that Git itself would add, in Git's order. */
export function isSound({ entries }: GitIndex): boolean {
  const names = new Set<string>();
  let last: { readonly name: Buffer; readonly stage: number; readonly folder: string } | undefined;
  for (const { name, mode, stage } of entries) {
    const isFolder = mode === sparseMode;
    const text = name.toString("latin1");
    const path = isFolder && text.endsWith("/") ? text.slice(0, -1) : text;
    if (!modes.includes(mode) || (isFolder && path === text)) return false;
    if (!isSafeName(Buffer.from(path, "latin1").toString(), mode === linkMode)) return false;
    const order = last === undefined ? -1 : last.name.compare(name);
    if (order > 0 || (order === 0 && (last?.stage === 0 || (last?.stage ?? 0) >= stage))) return false;
    const folder = `${stage}/${path.slice(0, Math.max(path.lastIndexOf("/"), 0))}`;
    // A file and a folder cannot have the same name.
    if (folder !== last?.folder) for (const each of foldersOf(folder)) if (names.has(each)) return false;
    names.add(`${stage}/${path}`);
    last = { name, stage, folder };
  }
  return true;
}

function foldersOf(folder: string): readonly string[] {
  const folders: string[] = [];
  for (let each = folder; each.length > 2; each = each.slice(0, each.lastIndexOf("/"))) folders.push(each);
  return folders;
}

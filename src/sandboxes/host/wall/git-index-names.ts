import { isSafeName } from "../../../base/git-names.ts";
import type { GitIndex } from "./git-index.ts";

const regularModes = [0o100644, 0o100755];
const linkMode = 0o120000;
const sparseMode = 0o040000;
const modes = [...regularModes, linkMode, sparseMode, 0o160000];

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

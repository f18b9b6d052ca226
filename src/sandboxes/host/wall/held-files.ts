import {
  closeSync,
  constants,
  fstatSync,
  lstatSync,
  mkdirSync,
  openSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmdirSync,
  rmSync,
  type Stats,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { attempt } from "../../../base/attempt.ts";
import { folderFlags, heldPath } from "../../../files/walk.ts";

/** Calls `work` with the path of an open folder; a link in its place gives undefined. */
export function withHeld<Value>(folder: string, work: (held: string) => Value): Value | undefined {
  let descriptor: number;
  try {
    descriptor = openSync(folder, folderFlags);
  } catch {
    return undefined;
  }
  try {
    return work(heldPath(descriptor));
  } finally {
    closeSync(descriptor);
  }
}

/** Calls `work` with the path of an entry in its open folder, so that no link on the way leads elsewhere. */
export function inFolder<Value>(
  folder: string,
  path: string,
  work: (entry: string) => Value,
): Value | undefined {
  const end = path.indexOf("/");
  if (end === -1) return work(join(folder, path));
  return withHeld(join(folder, path.slice(0, end)), (held) => inFolder(held, path.slice(end + 1), work));
}

function makeFolders(folder: string, path: string): void {
  const end = path.indexOf("/");
  if (end === -1) return;
  const inner = join(folder, path.slice(0, end));
  if (!exists(inner)) mkdirSync(inner);
  withHeld(inner, (held) => makeFolders(held, path.slice(end + 1)));
}

/** The content of a regular file. */
export function readHeld(folder: string, path: string): Buffer | undefined {
  return inFolder(folder, path, (entry) => {
    let descriptor: number;
    try {
      descriptor = openSync(entry, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    } catch {
      return undefined;
    }
    try {
      return fstatSync(descriptor).isFile() ? readFileSync(descriptor) : undefined;
    } finally {
      closeSync(descriptor);
    }
  });
}

/** Replaces a file or an empty folder at once, and creates the folders that a path names. */
export function replace(folder: string, path: string, bytes: Buffer): void {
  makeFolders(folder, path);
  inFolder(folder, path, (entry) => {
    const temporary = `${entry}.kit`;
    rmSync(temporary, { force: true });
    writeFileSync(temporary, bytes, { flag: "wx" });
    if (lstatOf(entry)?.isDirectory() === true) rmdirSync(entry);
    renameSync(temporary, entry);
  });
}

/** Differs between any two versions of a regular file. Folders on the way may be links, so only compare with it. */
export function identityOf(folder: string, path: string): string | undefined {
  try {
    const stats = lstatSync(join(folder, path), { bigint: true, throwIfNoEntry: false });
    return stats?.isFile() === true
      ? `${stats.ino}:${stats.size}:${stats.mtimeNs}:${stats.ctimeNs}`
      : undefined;
  } catch {
    // A file is in the place of a folder.
    return undefined;
  }
}

/** Undefined for a missing entry, also if a file is in the place of its folder. */
export function lstatOf(path: string): Stats | undefined {
  return attempt(() => lstatSync(path, { throwIfNoEntry: false }));
}

export const exists = (path: string): boolean => lstatOf(path) !== undefined;

export function isFileOrFolder(path: string): boolean {
  const stats = lstatOf(path);
  return stats?.isFile() === true || stats?.isDirectory() === true;
}

/** Makes the same link, unless something has its name. */
export function copyLink(link: string, copy: string): void {
  const stats = lstatOf(link);
  if (stats?.isSymbolicLink() === true && !exists(copy)) symlinkSync(readlinkSync(link), copy);
}

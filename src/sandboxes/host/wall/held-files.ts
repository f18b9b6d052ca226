import {
  closeSync,
  constants,
  fstatSync,
  lstatSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  type Stats,
  writeFileSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";
import { ignoreMissing } from "../../../files/obstacle.ts";
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

/** Calls `work` with the path of an entry in its open folder, so that no link leads elsewhere. */
export function inFolder<Value>(
  folder: string,
  path: string,
  work: (entry: string) => Value,
): Value | undefined {
  const inner = dirname(path);
  return inner === "."
    ? work(join(folder, path))
    : withHeld(join(folder, inner), (held) => work(join(held, basename(path))));
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

/** Replaces a file at once, and creates the folder that a path names. */
export function replace(folder: string, path: string, bytes: Buffer): void {
  const inner = dirname(path);
  if (inner !== "." && !exists(join(folder, inner))) mkdirSync(join(folder, inner));
  inFolder(folder, path, (entry) => {
    const temporary = `${entry}.kit`;
    rmSync(temporary, { force: true });
    writeFileSync(temporary, bytes, { flag: "wx" });
    renameSync(temporary, entry);
  });
}

/** Differs between any two versions of a regular file. */
export function identityOf(folder: string, path: string): string | undefined {
  return inFolder(folder, path, (entry) => {
    try {
      const stats = lstatSync(entry, { bigint: true, throwIfNoEntry: false });
      return stats?.isFile() === true
        ? `${stats.ino}:${stats.size}:${stats.mtimeNs}:${stats.ctimeNs}`
        : undefined;
    } catch (error) {
      return ignoreMissing(error);
    }
  });
}

export const lstatOf = (path: string): Stats | undefined => lstatSync(path, { throwIfNoEntry: false });
export const exists = (path: string): boolean => lstatOf(path) !== undefined;

export function isFileOrFolder(path: string): boolean {
  const stats = lstatOf(path);
  return stats?.isFile() === true || stats?.isDirectory() === true;
}

import { closeSync, lstatSync, openSync } from "node:fs";
import { join } from "node:path";
import { canHoldFolders, folderFlags, heldPath } from "./walk.ts";

/** An open folder. */
export interface HeldFolder {
  /** Path of the folder for the system, like that of a `Walk`. */
  readonly path: string;
  close(): void;
}

/**
 * Opens a folder by its name in another one. Synchronous, for walks over whole trees: to await each of thousands of calls takes
 * longer than the calls. Undefined for anything but a folder, links included.
 */
export function holdFolder(parent: string, name: string): HeldFolder | undefined {
  const path = join(parent, name);
  try {
    if (!canHoldFolders()) {
      return lstatSync(path).isDirectory() ? { path, close: () => undefined } : undefined;
    }
    const descriptor = openSync(path, folderFlags);
    return { path: heldPath(descriptor), close: () => closeSync(descriptor) };
  } catch {
    // It is gone, is a link now, or cannot be read: the walk cannot enter it.
    return undefined;
  }
}

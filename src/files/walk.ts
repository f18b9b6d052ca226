import { closeSync, constants, existsSync, lstatSync, openSync } from "node:fs";
import { type FileHandle, lstat, mkdir, open, readlink } from "node:fs/promises";
import { join } from "node:path";
import { hasCode } from "./obstacle.ts";

/** Walks through the folders below a root, one name at a time. No step follows a link. */
export interface Walk {
  /** The system's path of the current folder: it stays valid when parent folders are renamed. */
  folder(): string;
  /** The names entered so far. */
  names(): readonly string[];
  /** Enters a folder; with `create`, creates it first. */
  enter(name: string, create: boolean): Promise<"entered" | "missing" | "no folder">;
  /** The target of a link; undefined for any other entry, and for a missing one. */
  linkTarget(name: string): Promise<string | undefined>;
  /** Steps out; false at the root. */
  leave(): Promise<boolean>;
  /** Steps back to the root. */
  restart(): Promise<void>;
  close(): Promise<void>;
}

/**
 * Whether an open folder has a path that no rename can redirect: on Linux with /proc. On other systems (macOS) every name
 * is checked just before its use, and a process that renames folders at the right moment can still win; do not combine
 * untrusted commands and untrusted paths on such machines.
 */
export function canHoldFolders(): boolean {
  return process.platform === "linux" && existsSync("/proc/self/fd");
}

/** The path of an open folder. */
export const heldPath = (descriptor: number): string => `/proc/self/fd/${descriptor}`;

/** Opens a folder and nothing else: a link in its place fails with `ENOTDIR` or `ELOOP`. */
export const folderFlags: number = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW;

/** Starts at the root, which is absolute, with links resolved. */
export async function startWalk(root: string, holds: boolean = canHoldFolders()): Promise<Walk> {
  const rootHandle = holds ? await open(root, constants.O_RDONLY | constants.O_DIRECTORY) : undefined;
  const entered: { readonly name: string; readonly handle: FileHandle | undefined }[] = [];

  const folder = (): string => {
    const handle = entered.length === 0 ? rootHandle : entered.at(-1)?.handle;
    return handle === undefined ? join(root, ...entered.map(({ name }) => name)) : heldPath(handle.fd);
  };
  const openFolder = async (path: string): Promise<FileHandle | undefined> => {
    if (holds) return await open(path, folderFlags);
    if (!(await lstat(path)).isDirectory()) throw Object.assign(new Error(), { code: "ENOTDIR" });
    return undefined;
  };
  const enter = async (name: string, create: boolean): ReturnType<Walk["enter"]> => {
    const path = join(folder(), name);
    try {
      entered.push({ name, handle: await openFolder(path) });
      return "entered";
    } catch (error) {
      if (hasCode(error, "ENOTDIR") || hasCode(error, "ELOOP")) return "no folder";
      if (!hasCode(error, "ENOENT")) throw error;
    }
    if (!create) return "missing";
    await mkdir(path).catch((error: unknown) => {
      if (!hasCode(error, "EEXIST")) throw error;
    });
    return enter(name, false);
  };
  const leave = async (): Promise<boolean> => {
    const last = entered.pop();
    await last?.handle?.close();
    return last !== undefined;
  };
  const restart = async (): Promise<void> => {
    while (await leave());
  };

  return {
    folder,
    names: () => entered.map(({ name }) => name),
    enter,
    linkTarget: async (name) => await readlink(join(folder(), name)).catch(() => undefined),
    leave,
    restart,
    async close() {
      await Promise.all([...entered.splice(0).map(({ handle }) => handle?.close()), rootHandle?.close()]);
    },
  };
}

/** An open folder. */
interface HeldFolder {
  /** Path of the folder for the system, like that of a `Walk`. */
  readonly path: string;
  close(): void;
}

/**
 * Opens a folder by its name in another folder; `undefined` for links and other entries. Synchronous, for walks over whole
 * trees, where awaiting each of thousands of calls takes longer than the calls.
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
    // The folder was removed or replaced by a link, or cannot be read.
    return undefined;
  }
}

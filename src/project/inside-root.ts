import { constants, existsSync } from "node:fs";
import { type FileHandle, lstat, mkdir, open, readlink } from "node:fs/promises";
import { join, relative, sep } from "node:path";
import { KitError } from "../base/kit-error.ts";

/** A folder of the project that is held open, and the entry of it that a path leads to. */
export interface Place {
  /** Path of the folder for the system: stays the same folder when somebody renames its parents. */
  readonly folder: string;
  /** Name of the entry; never a link when the place was found. */
  readonly name: string;
  /** Where that is after links were followed: POSIX, relative to the root. */
  readonly path: string;
  close(): Promise<void>;
}

export interface FindPlaceOptions {
  /** Absolute, with links resolved. */
  readonly root: string;
  /** POSIX, relative to the root. */
  readonly path: string;
  /** Creates missing folders; without it they give undefined. */
  readonly createFolders?: boolean;
}

/** As many as Linux follows. */
const maxLinks = 40;

/**
 * Finds the folder and entry that a project path leads to, following links that stay inside the
 * root. Undefined when a folder on the way is missing.
 *
 * Goes component by component from an open root, so that a folder which is swapped for a link
 * meanwhile cannot lead out of the project. Throws `forbidden` for a path that leaves the root, and
 * `invalid_request` for one that no project file can have. Messages name project paths only.
 */
export async function findPlace({
  root,
  path,
  createFolders = false,
}: FindPlaceOptions): Promise<Place | undefined> {
  const pending = toComponents(path).reverse();
  const walk = await startWalk(root);
  let links = 0;
  try {
    while (pending.length > 0) {
      const name = pending.pop() ?? "";
      if (name === "..") {
        if (!(await walk.leave())) throw outside(path);
        continue;
      }
      const target = await walk.linkTarget(name);
      if (target !== undefined) {
        links += 1;
        if (links > maxLinks) throw forbidden(`${path} goes through too many links.`);
        const inRoot = target.startsWith("/") ? toRootRelative(root, target) : target;
        if (inRoot === undefined) throw outside(path);
        if (target.startsWith("/")) await walk.restart();
        pending.push(...inRoot.split("/").filter(isNamed).reverse());
      } else if (pending.length === 0) {
        return { folder: walk.folder(), name, path: [...walk.names(), name].join("/"), close: walk.close };
      } else if (!(await walk.enter(name, createFolders))) {
        await walk.close();
        return undefined;
      }
    }
    // Only a link to a folder gets here: its own name is no entry that a file could take.
    throw forbidden(`${path} is a folder.`);
  } catch (error) {
    await walk.close();
    throw error instanceof KitError ? error : toKitError(error, path);
  }
}

/** Turns an error of the file system into one whose message holds no path of the machine. */
export function toKitError(error: unknown, path: string): KitError {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  if (code === "ENAMETOOLONG") return invalid(`${path.slice(0, 80)}… is too long for a file name.`);
  if (code === "ENXIO" || code === "ELOOP") return forbidden(`${path} is not a regular file.`);
  if (code === "ENOTDIR" || code === "EEXIST") return forbidden(`A file is in the way of ${path}.`);
  if (code === "EACCES" || code === "EPERM" || code === "EROFS")
    return forbidden(`No permission to write ${path}.`);
  return new KitError({ code: "unavailable", message: `${path} cannot be accessed now.`, cause: error });
}

function toComponents(path: string): string[] {
  const components = path.split("/").filter(isNamed);
  if (path.startsWith("/") || path.includes("\0") || components.length === 0 || path.endsWith("/")) {
    throw invalid("A project path is relative to the root of the project and names a file.");
  }
  if (components.includes("..")) throw outside(path);
  return components;
}

const isNamed = (component: string): boolean => component !== "" && component !== ".";

function toRootRelative(root: string, target: string): string | undefined {
  const path = relative(root, target).split(sep).join("/");
  return path === ".." || path.startsWith("../") || path.startsWith("/") ? undefined : path;
}

const forbidden = (message: string): KitError => new KitError({ code: "forbidden", message });
const invalid = (message: string): KitError => new KitError({ code: "invalid_request", message });
const outside = (path: string): KitError => forbidden(`${path} leads out of the project.`);

interface Walk {
  folder(): string;
  names(): readonly string[];
  /** The target of a link; undefined for anything else, also for nothing. */
  linkTarget(name: string): Promise<string | undefined>;
  enter(name: string, create: boolean): Promise<boolean>;
  /** Goes up; false at the root. */
  leave(): Promise<boolean>;
  restart(): Promise<void>;
  close(): Promise<void>;
}

const folderFlags = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW;

// With /proc an open folder has a path of its own, which no rename elsewhere can redirect. Other
// systems check every component just before its use instead.
async function startWalk(root: string): Promise<Walk> {
  const viaHandles = process.platform === "linux" && existsSync("/proc/self/fd");
  const rootHandle = viaHandles ? await open(root, constants.O_RDONLY | constants.O_DIRECTORY) : undefined;
  const entered: { readonly name: string; readonly handle: FileHandle | undefined }[] = [];

  const folder = (): string => {
    const handle = entered.length === 0 ? rootHandle : entered.at(-1)?.handle;
    if (handle !== undefined) return `/proc/self/fd/${handle.fd}`;
    return join(root, ...entered.map(({ name }) => name));
  };
  const openFolder = async (path: string): Promise<FileHandle | undefined> => {
    if (viaHandles) return await open(path, folderFlags);
    if (!(await lstat(path)).isDirectory())
      throw Object.assign(new Error("not a folder"), { code: "ENOTDIR" });
    return undefined;
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
    linkTarget: async (name) => await readlink(join(folder(), name)).catch(() => undefined),
    async enter(name, create) {
      const path = join(folder(), name);
      try {
        if (create) await mkdir(path).catch(ignoreExisting);
        entered.push({ name, handle: await openFolder(path) });
        return true;
      } catch (error) {
        if (!create && error instanceof Error && "code" in error && error.code === "ENOENT") return false;
        throw error;
      }
    },
    leave,
    restart,
    async close() {
      await restart();
      await rootHandle?.close();
    },
  };
}

function ignoreExisting(error: unknown): void {
  if (!(error instanceof Error && "code" in error && error.code === "EEXIST")) throw error;
}

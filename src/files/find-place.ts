import { lstatSync, realpathSync } from "node:fs";
import { join, relative, sep } from "node:path";
import { attempt } from "../base/attempt.ts";
import { KitError } from "../base/kit-error.ts";
import { forbidden, invalid, toFileError } from "./obstacle.ts";
import { startWalk, type Walk } from "./walk.ts";

/** An open folder below a root, and the entry in it that a path leads to. */
export interface Place {
  /** Path of the folder for the system: stays valid when its parents are renamed. */
  readonly folder: string;
  /**
   * Path of the entry for the system, in `folder`; ends in "/." for the folder itself. Never a link when
   * the place was found, unless kept.
   */
  readonly entry: string;
  /** The path after links are followed: POSIX, relative to the root, "" for the root itself. */
  readonly path: string;
  close(): Promise<void>;
}

export interface FindPlaceOptions {
  /** Absolute, with links resolved. */
  readonly root: string;
  /** POSIX, relative to the root, without `..`; "" is the root itself. */
  readonly path: string;
  /** Whether to create missing folders. Default: no, and a missing folder gives undefined. */
  readonly createFolders?: boolean;
  /**
   * How to treat the last name of the path: follow a link (the default), take the link itself as the entry, or
   * require a folder, which is then the open one.
   */
  readonly end?: "follow" | "keep-link" | "folder";
  /** The name of the root in messages; default "project". */
  readonly area?: "project" | "workspace";
  /** Whether to hold folders open on the way; default: where the system supports it. Tests set it. */
  readonly holds?: boolean;
}

/** Linux's own limit. */
const maxLinks = 40;

/**
 * Finds the folder and entry that a path below a root leads to, following links that stay inside the
 * root. Undefined when a folder on the way is missing. The caller closes the place.
 *
 * Goes name by name from an open root, so that a folder which is swapped for a link meanwhile cannot
 * lead out of the root. Throws `forbidden` for a path that leaves the root, and `invalid_request` for
 * one that no file below it can have. Messages name paths below the root only.
 */
export async function findPlace(options: FindPlaceOptions): Promise<Place | undefined> {
  const found = await locate(options);
  return "close" in found ? found : undefined;
}

/** The real path of a path, by the rules of `findPlace`. Missing parts are named as they would be created. */
export async function resolveInside(options: FindPlaceOptions): Promise<string> {
  const found = await locate(options);
  if ("close" in found) await found.close();
  return found.path;
}

interface Missing {
  readonly path: string;
}

async function locate(options: FindPlaceOptions): Promise<Place | Missing> {
  const { root, path, createFolders = false, end = "follow" } = options;
  const pending = toNames(options).reverse();
  let walk: Walk | undefined;
  try {
    walk = await startWalk(root, options.holds);
    const { close } = walk;
    const placeOf = (name: string, names: readonly string[]): Place => ({
      folder: walk?.folder() ?? "",
      // Not `join`, which would remove the dot: the path of an open folder is a link by itself.
      entry: `${walk?.folder()}/${name}`,
      path: names.join("/"),
      close,
    });
    let links = 0;
    while (pending.length > 0) {
      const name = pending.pop() ?? "";
      if (name === "..") {
        if (!(await walk.leave())) throw outside(options);
        continue;
      }
      const isEnd = pending.length === 0 && end !== "folder";
      if (isEnd && end === "keep-link") return placeOf(name, [...walk.names(), name]);
      const step = isEnd ? "no folder" : await walk.enter(name, createFolders);
      if (step === "entered") continue;
      const target = step === "missing" ? undefined : await walk.linkTarget(name);
      if (target === undefined) {
        if (isEnd) return placeOf(name, [...walk.names(), name]);
        if (step === "no folder" && (createFolders || end === "folder"))
          throw obstacleError(options, pending);
        const missing = { path: withoutParents([...walk.names(), name, ...pending.reverse()], options) };
        await walk.close();
        return missing;
      }
      links += 1;
      if (links > maxLinks) throw forbidden(`${path} goes through too many links.`);
      const names = toTargetNames(target, options);
      if (target.startsWith("/")) await walk.restart();
      pending.push(...names.reverse());
    }
    return placeOf(".", walk.names());
  } catch (error) {
    await walk?.close();
    throw toFileError(error, path === "" ? `The ${options.area ?? "project"}` : path);
  }
}

function toNames(options: FindPlaceOptions): string[] {
  const { path, area = "project" } = options;
  const names = path.split("/").filter(isNamed);
  // Windows would read a separator or a drive in a name when the name is joined to its folder.
  const isForeign = sep === "\\" && /[\\:]/.test(path);
  if (path.startsWith("/") || path.includes("\0") || isForeign) {
    throw invalid(`A path of the ${area} is relative to its root, with "/" between names.`);
  }
  if (names.includes("..")) throw outside(options);
  return names;
}

const isNamed = (name: string): boolean => name !== "" && name !== ".";

function toTargetNames(target: string, options: FindPlaceOptions): string[] {
  if (!target.startsWith("/")) return target.split("/").filter(isNamed);
  const path = relative(options.root, target).split(sep).join("/");
  if (path === ".." || path.startsWith("../") || path.startsWith("/")) throw outside(options);
  return path.split("/").filter(isNamed);
}

/** A missing folder contains no links, so `..` can be resolved as text. */
function withoutParents(names: readonly string[], options: FindPlaceOptions): string {
  const kept: string[] = [];
  for (const name of names) {
    if (name !== "..") kept.push(name);
    else if (kept.pop() === undefined) throw outside(options);
  }
  return kept.join("/");
}

function obstacleError({ path, end }: FindPlaceOptions, pending: readonly string[]): KitError {
  return invalid(
    end === "folder" && pending.length === 0
      ? `${path} is not a folder.`
      : `A file is in the way of ${path}.`,
  );
}

function outside({ path, area = "project" }: FindPlaceOptions): KitError {
  return forbidden(`${path} leads out of the ${area}.`);
}

/**
 * Throws `forbidden` where one of these paths below a root is a link that leads out of the root, or nowhere. For folders and files
 * that kit opens by itself, and that a repository may contain as links. Links that stay below the root are allowed.
 */
export function assertNoLinkOut(root: string, paths: readonly string[]): void {
  for (const path of paths) {
    if (!isLinkOut(root, path)) continue;
    throw new KitError({
      code: "forbidden",
      message: `${path} is a link that leads out of the project, and kit writes its own files only inside of the project.`,
      hint: `Remove the link ${path}; kit creates what it needs.`,
    });
  }
}

export function isLinkOut(root: string, path: string): boolean {
  const entry = join(root, path);
  if (lstatSync(entry, { throwIfNoEntry: false })?.isSymbolicLink() !== true) return false;
  return attempt(() => !realpathSync(entry).startsWith(realpathSync(root) + sep), true);
}

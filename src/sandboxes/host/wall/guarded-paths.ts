import {
  accessSync,
  chmodSync,
  closeSync,
  constants,
  fstatSync,
  lstatSync,
  openSync,
  readdirSync,
  readlinkSync,
  realpathSync,
} from "node:fs";
import { join, relative } from "node:path";
import { isRepositoryFolder } from "../../../base/names.ts";
import { hasCode, joinPath } from "../../../files/obstacle.ts";
import { canHoldFolders, folderFlags, heldPath } from "../../../files/walk.ts";
import type { PathGuard } from "../../contract.ts";

/**
 * Why a path of the workspace is guarded. A repository is a `.git`, or a folder that Git takes for one. A holder is a link in the
 * place of a folder of protected names: they are found below its target.
 */
export interface Guarded {
  readonly kind: "read-only" | "hidden" | "hidden-folder" | "repository" | "holder";
  /** The target of a link. */
  readonly link?: string;
  /** The holder by which the path has a protected name. */
  readonly holder?: string;
}

export interface FoundPaths {
  readonly paths: ReadonlyMap<string, Guarded>;
  /** Why there may be more guarded paths: the end of a sentence about the workspace. */
  readonly obstacle?: string | undefined;
  /** Which folder was at each path of the walk. */
  readonly folders: ReadonlyMap<string, string>;
}

interface Listing {
  /** The time of the folder's last change, which the system sets at each new, removed and renamed entry. */
  readonly identity: string;
  /** Tells the folder from others at its path. */
  readonly folder: string;
  /** The names of inner folders. */
  readonly folders: readonly string[];
  /** By name; "" is the folder itself. */
  readonly guarded: ReadonlyMap<string, Guarded>;
}

interface Options {
  readonly guard?: PathGuard | undefined;
  readonly skipped: readonly string[];
  /** Whether to give this user the rights to folders that a command took away. */
  readonly opensFolders?: boolean;
  readonly maxFolders?: number;
}

/** The clock of a file system advances in ticks: a folder that changed this short ago may change again in the same tick. */
const tickMs = 50;
/** A walk of more folders would take longer than most commands. */
const defaultMaxFolders = 100_000;
/** Links to folders of links are followed this often; the links themselves are guarded. */
const maxHolders = 4;

const noGuard: PathGuard = () => undefined;
const listings = new WeakMap<PathGuard, Map<string, Map<string, Listing>>>();

/** A folder to read. */
interface Folder {
  /** Its place, relative to the root. */
  readonly path: string;
  /** The name by which the guard knows it: by way of holders. */
  readonly name: string;
  readonly holders: readonly string[];
  /** Whether it is in a guarded folder: then only files of secrets count. */
  readonly isGuarded?: boolean;
}

/**
 * Finds the guarded paths below a root, relative to it. Looks into guarded folders for files of secrets only, and not into
 * `node_modules`. Reads again only folders that have changed since the last call.
 */
export function findGuarded(root: string, options: Options): FoundPaths {
  const { guard = noGuard, skipped, opensFolders = false, maxFolders = defaultMaxFolders } = options;
  const roots = listings.get(guard) ?? new Map<string, Map<string, Listing>>();
  listings.set(guard, roots);
  const known = roots.get(root) ?? new Map<string, Listing>();
  const read = new Map<string, Listing>();
  roots.set(root, read);
  const paths = new Map<string, Guarded>();
  let obstacle: string | undefined;
  const pending: Folder[] = [{ path: "", name: "", holders: [] }];
  for (let folder = pending.pop(); folder !== undefined; folder = pending.pop()) {
    const { path, name, holders } = folder;
    if (read.size >= maxFolders) {
      obstacle = `has more than ${maxFolders} folders`;
      break;
    }
    const request = { guard, known: known.get(name) };
    let listing = listingOf(root, folder, request);
    if (listing === "unreadable" && opensFolders && giveRights(root, path))
      listing = listingOf(root, folder, request);
    if (listing === "unreadable") {
      obstacle = `has a folder that kit cannot read (${path === "" ? "." : JSON.stringify(path)})`;
      continue;
    }
    if (listing === undefined) continue;
    read.set(name, listing);
    const holder = holders.at(-1);
    for (const [entry, guarded] of listing.guarded) {
      const inner = entry === "" ? path : joinPath(path, entry);
      if (skipped.includes(inner) || (folder.isGuarded === true && guarded.kind !== "hidden")) continue;
      if (entry.includes("\ufffd") && !isThere(join(root, inner)))
        obstacle = `has a protected file whose name is no UTF-8 (${JSON.stringify(inner)})`;
      if (!paths.has(inner)) paths.set(inner, holder === undefined ? guarded : { ...guarded, holder });
      if (guarded.kind !== "holder" || holders.length >= maxHolders) continue;
      const target = folderIn(root, inner);
      if (target !== undefined)
        pending.push({ path: target, name: joinPath(name, entry), holders: [...holders, inner] });
    }
    for (const entry of listing.folders) {
      const inner = joinPath(path, entry);
      const isGuarded = folder.isGuarded === true || listing.guarded.has(entry);
      if (!skipped.includes(inner))
        pending.push({ path: inner, name: joinPath(name, entry), holders, isGuarded });
    }
  }
  return { paths, obstacle, folders: new Map([...read].map(([name, { folder }]) => [name, folder])) };
}

function isThere(absolute: string): boolean {
  return lstatSync(absolute, { throwIfNoEntry: false }) !== undefined;
}

/** Whether two walks found the same files of secrets, and no other folder in the place of one. */
export function isSame(one: FoundPaths, other: FoundPaths): boolean {
  const hidden = ({ paths }: FoundPaths): string =>
    JSON.stringify([...paths].flatMap(([path, { kind }]) => (kind.startsWith("hidden") ? path : [])).sort());
  return (
    hidden(one) === hidden(other) &&
    [...one.folders].every(([name, folder]) => (other.folders.get(name) ?? folder) === folder)
  );
}

/** The place of the folder that a link leads to, if it lies in the root. */
function folderIn(root: string, path: string): string | undefined {
  try {
    const real = realpathSync(join(root, path));
    const place = relative(root, real);
    const isIn = place !== "" && place !== ".." && !place.startsWith("../");
    return isIn && lstatSync(real).isDirectory() ? place : undefined;
  } catch {
    return undefined;
  }
}

function listingOf(
  root: string,
  { path, name }: Folder,
  { guard, known }: { readonly guard: PathGuard; readonly known: Listing | undefined },
): Listing | "unreadable" | undefined {
  const absolute = join(root, path);
  try {
    const stats = lstatSync(absolute, { bigint: true });
    // Another process put a link in its place.
    if (!stats.isDirectory()) return undefined;
    if (isClosed(absolute, stats)) return undefined;
    const isSettled = Date.now() - Number(stats.ctimeNs / 1_000_000n) > tickMs;
    const identity = isSettled ? `${stats.dev}:${stats.ino}:${stats.ctimeNs}` : "";
    if (known !== undefined && identity !== "" && known.identity === identity) return known;
    return { identity, folder: `${stats.dev}:${stats.ino}`, ...readListing(absolute, name, guard) };
  } catch (error) {
    // Another process removed the folder, or its name is no UTF-8 and cannot be written.
    const isGone = (hasCode(error, "ENOENT") || hasCode(error, "ENOTDIR")) && !path.includes("\ufffd");
    return isGone ? undefined : "unreadable";
  }
}

/** Whether neither kit nor a command can enter a folder: another user's. */
function isClosed(absolute: string, { uid }: { readonly uid: bigint }): boolean {
  const user = process.geteuid?.();
  if (user === undefined || user === 0 || uid === BigInt(user)) return false;
  try {
    accessSync(absolute, constants.X_OK);
    return false;
  } catch {
    return true;
  }
}

/** Opens a folder without rights to it (O_PATH), which Node does not name. */
const onlyPath = 0o10000000 | folderFlags;

/** Gives this user all rights to a folder and the folders on the way. Follows no link. */
function giveRights(root: string, path: string): boolean {
  if (!canHoldFolders()) return false;
  const opened: number[] = [];
  try {
    let current = root;
    for (const name of ["", ...(path === "" ? [] : path.split("/"))]) {
      const descriptor = openSync(name === "" ? current : join(current, name), onlyPath);
      opened.push(descriptor);
      current = heldPath(descriptor);
      if (name === "" && readlinkSync(current) !== root) return false;
      const mode = fstatSync(descriptor).mode & 0o7777;
      if ((mode & 0o700) !== 0o700) chmodSync(current, mode | 0o700);
    }
    return true;
  } catch {
    // The folder belongs to another user.
    return false;
  } finally {
    for (const descriptor of opened) closeSync(descriptor);
  }
}

function readListing(
  absolute: string,
  folder: string,
  guard: PathGuard,
): Omit<Listing, "identity" | "folder"> {
  const entries = readdirSync(absolute, { withFileTypes: true });
  const has = (name: string): boolean => entries.some((entry) => entry.name === name);
  if (isRepositoryFolder({ has }) && !(folder === "" && has(".git")))
    return { folders: [], guarded: new Map([["", { kind: "repository" }]]) };
  const folders: string[] = [];
  const guarded = new Map<string, Guarded>();
  for (const entry of entries) {
    const path = joinPath(folder, entry.name);
    const isFolder = entry.isDirectory();
    const isLink = entry.isSymbolicLink();
    const kind = kindOf(path, entry.name.toLowerCase(), { isEntered: isFolder || isLink, guard });
    if (kind === undefined || (kind === "hidden" && isFolder) || (kind === "holder" && !isLink)) {
      if (isFolder && entry.name !== "node_modules") folders.push(entry.name);
    } else {
      const link = isLink ? { link: readlinkSync(join(absolute, entry.name)) } : {};
      guarded.set(entry.name, { kind, ...link });
      if (isFolder && kind === "read-only" && entry.name !== "node_modules") folders.push(entry.name);
    }
  }
  return { folders, guarded };
}

function kindOf(
  path: string,
  name: string,
  { isEntered, guard }: { readonly isEntered: boolean; readonly guard: PathGuard },
): Guarded["kind"] | undefined {
  if (name === ".git") return "repository";
  // The state of another project of kit.
  return name === ".kit" && isEntered ? "hidden-folder" : guard(path);
}

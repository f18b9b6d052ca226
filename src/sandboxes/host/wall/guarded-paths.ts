import { lstatSync, readdirSync, readlinkSync } from "node:fs";
import { join } from "node:path";
import { joinPath } from "../../../files/obstacle.ts";
import type { PathGuard } from "../../contract.ts";

/** Why a path of the workspace is guarded. A repository is a `.git`, or a folder that Git takes for one. */
export interface Guarded {
  readonly kind: "read-only" | "hidden" | "repository";
  /** The target of a link. */
  readonly link?: string;
}

interface Listing {
  /** The time of the folder's last change, which the system sets at each new, removed and renamed entry. */
  readonly identity: string;
  readonly folders: readonly string[];
  readonly guarded: ReadonlyMap<string, Guarded>;
}

/** The clock of a file system advances in ticks: a folder that changed this short ago may change again in the same tick. */
const tickMs = 50;
/** A walk of more folders would take longer than most commands. */
const maxFolders = 30_000;

const noGuard: PathGuard = () => undefined;
const listings = new WeakMap<PathGuard, Map<string, Map<string, Listing>>>();

/**
 * Finds the guarded paths below a root, relative to it. Looks neither into guarded folders nor into `node_modules`. Reads again only
 * folders that have changed since the last call.
 */
export function findGuarded(
  root: string,
  options: { readonly guard?: PathGuard | undefined; readonly skipped: readonly string[] },
): ReadonlyMap<string, Guarded> {
  const { guard = noGuard, skipped } = options;
  const roots = listings.get(guard) ?? new Map<string, Map<string, Listing>>();
  listings.set(guard, roots);
  const known = roots.get(root) ?? new Map<string, Listing>();
  const read = new Map<string, Listing>();
  roots.set(root, read);
  const found = new Map<string, Guarded>();
  const pending = [""];
  while (pending.length > 0 && read.size < maxFolders) {
    const folder = pending.pop() ?? "";
    const listing = listingOf(root, folder, { guard, known: known.get(folder) });
    if (listing === undefined) continue;
    read.set(folder, listing);
    for (const [path, guarded] of listing.guarded) if (!skipped.includes(path)) found.set(path, guarded);
    for (const path of listing.folders) if (!skipped.includes(path)) pending.push(path);
  }
  return found;
}

function listingOf(
  root: string,
  folder: string,
  { guard, known }: { readonly guard: PathGuard; readonly known: Listing | undefined },
): Listing | undefined {
  const absolute = join(root, folder);
  try {
    const stats = lstatSync(absolute, { bigint: true });
    const isSettled = Date.now() - Number(stats.ctimeNs / 1_000_000n) > tickMs;
    const identity = isSettled ? `${stats.dev}:${stats.ino}:${stats.ctimeNs}` : "";
    if (known !== undefined && identity !== "" && known.identity === identity) return known;
    return { identity, ...readListing(absolute, folder, guard) };
  } catch {
    // Another process removed the folder, or this user cannot read it.
    return undefined;
  }
}

function readListing(absolute: string, folder: string, guard: PathGuard): Omit<Listing, "identity"> {
  const entries = readdirSync(absolute, { withFileTypes: true });
  const has = (name: string): boolean => entries.some((entry) => entry.name === name);
  // Git finds such a folder from within, under any name.
  if (has("HEAD") && ((has("objects") && has("refs")) || has("commondir")) && !(folder === "" && has(".git")))
    return { folders: [], guarded: new Map([[folder, { kind: "repository" }]]) };
  const folders: string[] = [];
  const guarded = new Map<string, Guarded>();
  for (const entry of entries) {
    const path = joinPath(folder, entry.name);
    const kind = entry.name.toLowerCase() === ".git" ? "repository" : guard(path);
    const isFolder = entry.isDirectory();
    if (kind === undefined || (kind === "hidden" && isFolder)) {
      if (isFolder && entry.name !== "node_modules") folders.push(path);
    } else if (path !== ".git" || !isFolder) {
      const link = entry.isSymbolicLink() ? { link: readlinkSync(join(absolute, entry.name)) } : {};
      guarded.set(path, { kind, ...link });
    } else guarded.set(path, { kind });
  }
  return { folders, guarded };
}

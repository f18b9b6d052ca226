import { type Dirent, readdirSync, type Stats, statSync } from "node:fs";
import { type IgnoreScope, ignoreFileName, isSkippedName } from "../../files/ignore-scope.ts";
import { joinPath } from "../../files/join-path.ts";
import type { Diagnostic } from "../../protocol/diagnostic.ts";
import { type Folder, hasStamp, isUnstamped, setStamp, stampLength } from "./folder.ts";
import { errorCodeOf, unreadable, unreadableBecause } from "./problems.ts";

/** A source that is new, or that may have changed since its stamp was taken. */
export interface Candidate {
  readonly path: string;
  /** Where its new stamp goes, once it was read. */
  readonly stamps: Float64Array;
  readonly stampAt: number;
  /** Set for what is known to be unreadable without opening it. */
  readonly problem?: Diagnostic;
}

export interface LookOptions {
  /** Absolute, with links resolved. */
  readonly root: string;
  /** POSIX, relative to the root. */
  readonly path: string;
  /** The folder as the previous pass left it. */
  readonly before: Folder | undefined;
  /** What the folders above ignore. */
  readonly scope: IgnoreScope;
  /** Lists the folder even when it is unchanged. */
  readonly isStale: boolean;
  readonly isSource: (path: string) => boolean;
}

export interface Look {
  /** The same object as before when nothing differs. */
  readonly folder: Folder;
  readonly candidates: readonly Candidate[];
  /** What is ignored in the folder and below may differ from the previous pass. */
  readonly isStale: boolean;
}

/** What a folder holds now; undefined when there is no such folder any more. Never throws. */
export function lookAtFolder(options: LookOptions): Look | undefined {
  const { before, path } = options;
  const absolute = path === "" ? options.root : `${options.root}/${path}`;
  const nowMs = Date.now();
  const stats = statOf(absolute);
  if (typeof stats === "string") {
    if (stats === "ENOENT" || stats === "ENOTDIR") return undefined;
    const wasUnreadable = before !== undefined && isUnstamped(before.stamps, 0);
    if (wasUnreadable) return { folder: before, candidates: [], isStale: false };
    return unreadableFolder(path, unreadableBecause(path, stats));
  }
  if (!stats.isDirectory()) return undefined;
  const rulesChanged = before !== undefined && haveRulesChanged(before, absolute);
  if (before !== undefined && !options.isStale && !rulesChanged && hasStamp(before.stamps, 0, stats)) {
    return compareSources(before, absolute);
  }
  const listing = list(options, absolute);
  if (typeof listing === "string") {
    const look = unreadableFolder(path, unreadableBecause(path, listing));
    setStamp(look.folder.stamps, 0, { stats, nowMs });
    return look;
  }
  const hadRules = before?.sources.includes(ignoreFileName) ?? false;
  const hasRules = listing.sources.includes(ignoreFileName);
  const look = compareListing(listing, { before, path, absolute });
  setStamp(look.folder.stamps, 0, { stats, nowMs });
  return {
    ...look,
    isStale: options.isStale || rulesChanged || (before !== undefined && hadRules !== hasRules),
  };
}

/** The stats of what a path leads to, or the code of the error. */
function statOf(absolute: string): Stats | string {
  try {
    return statSync(absolute, { throwIfNoEntry: false }) ?? "ENOENT";
  } catch (error) {
    return errorCodeOf(error);
  }
}

function haveRulesChanged(before: Folder, absolute: string): boolean {
  const index = before.sources.indexOf(ignoreFileName);
  if (index === -1) return false;
  const stats = statOf(`${absolute}/${ignoreFileName}`);
  return typeof stats === "string" || !hasStamp(before.stamps, index + 1, stats);
}

/** An unchanged folder: only the content of its sources can differ. */
function compareSources(before: Folder, absolute: string): Look {
  const { stamps, sources } = before;
  let folder = before;
  const candidates: Candidate[] = [];
  for (let index = 0; index < sources.length; index += 1) {
    const name = sources[index] ?? "";
    const stats = statOf(`${absolute}/${name}`);
    // What had no stamp was a dangling link or the like, and still is.
    const isSame =
      typeof stats === "string" ? isUnstamped(stamps, index + 1) : hasStamp(stamps, index + 1, stats);
    if (isSame) continue;
    if (folder === before) folder = { ...before, stamps: stamps.slice() };
    candidates.push(toCandidate(folder, index, typeof stats !== "string" && !stats.isFile()));
  }
  return { folder, candidates, isStale: false };
}

interface Listing {
  readonly folders: readonly string[];
  readonly files: readonly string[];
  readonly sources: readonly string[];
  /** Names among the sources that are neither files nor links. */
  readonly notFiles: ReadonlySet<string>;
}

function list({ path, scope, isSource }: LookOptions, absolute: string): Listing | string {
  let entries: Dirent[];
  try {
    entries = readdirSync(absolute, { withFileTypes: true });
  } catch (error) {
    return errorCodeOf(error);
  }
  const hasRules = entries.some((entry) => entry.name === ignoreFileName && entry.isFile());
  const inner = hasRules ? scope.enter(path) : scope;
  const folders: string[] = [];
  const files: string[] = [];
  const sources: string[] = [];
  const notFiles = new Set<string>();
  for (const entry of entries) {
    const { name } = entry;
    if (isSkippedName(name)) continue;
    const entryPath = joinPath(path, name);
    const isFolder = entry.isDirectory();
    if (inner.ignores(entryPath, isFolder)) continue;
    if (isFolder) folders.push(name);
    const isRules = name === ignoreFileName && entry.isFile();
    if (isRules || (isFolder ? hasSourceExtension(name) && isSource(entryPath) : isSource(entryPath))) {
      sources.push(name);
      if (!entry.isFile() && !entry.isSymbolicLink()) notFiles.add(name);
    } else if (!isFolder) files.push(name);
  }
  return { folders, files, sources, notFiles };
}

// A folder that is named like a source file is a mistake to report. Adapters that take whole
// subtrees match every folder in them, though, so only a name that looks like a file counts.
function hasSourceExtension(name: string): boolean {
  return /\.(?:md|mdc|json|ya?ml)$/i.test(name) || name === ".cursorrules";
}

interface Place {
  readonly path: string;
  readonly absolute: string;
  readonly before: Folder | undefined;
}

function compareListing(listing: Listing, { path, absolute, before }: Place): Look {
  const { folders, files, sources, notFiles } = listing;
  const stamps = new Float64Array((sources.length + 1) * stampLength).fill(Number.NaN);
  const folder: Folder = { path, folders, files, sources, stamps };
  const known = new Map(before?.sources.map((name, index) => [name, index + 1]));
  const candidates: Candidate[] = [];
  for (let index = 0; index < sources.length; index += 1) {
    const name = sources[index] ?? "";
    const at = known.get(name);
    if (name === ignoreFileName) {
      const nowMs = Date.now();
      const stats = statOf(`${absolute}/${name}`);
      if (typeof stats !== "string") setStamp(stamps, index + 1, { stats, nowMs });
    } else if (
      at === undefined ||
      before === undefined ||
      !keepStamp(folder, { index, before, at, absolute })
    ) {
      candidates.push(toCandidate(folder, index, notFiles.has(name)));
    }
  }
  return { folder, candidates, isStale: false };
}

/** Takes over the stamp of a source that is the same as before. */
function keepStamp(
  folder: Folder,
  { index, before, at, absolute }: { index: number; before: Folder; at: number; absolute: string },
): boolean {
  const stats = statOf(`${absolute}/${folder.sources[index] ?? ""}`);
  if (typeof stats === "string" || !hasStamp(before.stamps, at, stats)) return false;
  const from = at * stampLength;
  folder.stamps.set(before.stamps.subarray(from, from + stampLength), (index + 1) * stampLength);
  return true;
}

function toCandidate(folder: Folder, index: number, isNoFile: boolean): Candidate {
  const path = joinPath(folder.path, folder.sources[index] ?? "");
  const place = { path, stamps: folder.stamps, stampAt: index + 1 };
  if (isNoFile) {
    const problem = unreadable({ path, code: "not_a_file", message: "It is not a regular file." });
    return { ...place, problem };
  }
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what it looks for
  if (/[\u0000-\u001f\u007f]/.test(path)) {
    const message = "It is not read, because its path holds a line break or another control character.";
    return { ...place, problem: unreadable({ path, code: "control_character", message }) };
  }
  return place;
}

/** A folder that cannot be listed holds nothing; its problem is told in place of its content. */
function unreadableFolder(path: string, problem: Diagnostic): Look {
  const stamps = new Float64Array(stampLength).fill(Number.NaN);
  const folder: Folder = { path, folders: [], files: [], sources: [], stamps };
  return { folder, candidates: [{ path: `${path}/`, stamps, stampAt: 0, problem }], isStale: false };
}

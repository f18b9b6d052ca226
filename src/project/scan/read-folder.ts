import { type Dirent, lstatSync, readdirSync, type Stats, statSync } from "node:fs";
import { attempt } from "../../base/attempt.ts";
import {
  everythingIgnored,
  type IgnoreScope,
  ignoreFileName,
  isSkippedName,
} from "../../files/ignore-scope.ts";
import { joinPath } from "../../files/obstacle.ts";
import type { Diagnostic } from "../../protocol/diagnostic.ts";
import type { IgnoreExceptions } from "./ignore-exceptions.ts";
import { errorCodeOf, unreadable, unreadableBecause } from "./source-reader.ts";
import {
  copyStamp,
  createStamps,
  type Folder,
  hasStamp,
  holdsName,
  isUnstamped,
  namesIn,
  setStamp,
} from "./tree.ts";

/** A source that is new, or that can have changed since its stamp was taken. */
export interface Candidate {
  readonly path: string;
  /** The folder that stores the new stamp, and the position of the stamp there. */
  readonly folder: Folder;
  readonly stampAt: number;
  /** A symbolic link; the pass resolves it. */
  readonly isLink: boolean;
  /** Set for an entry that is known to be unreadable without opening it. */
  readonly problem?: Diagnostic;
}

export interface ReadFolderOptions {
  /** Absolute, with links resolved. */
  readonly root: string;
  /** POSIX, relative to the root. */
  readonly path: string;
  /** The folder as the previous pass left it. */
  readonly before: Folder | undefined;
  /** The ignore rules of the folders above. Called only when the folder is listed. */
  readonly scope: () => IgnoreScope;
  readonly exceptions: IgnoreExceptions;
  /** Lists the folder even when it is unchanged. */
  readonly isStale: boolean;
  readonly isSource: (path: string) => boolean;
}

export interface FolderReading {
  /** The same object as before when nothing differs. */
  readonly folder: Folder;
  readonly candidates: readonly Candidate[];
  /** The ignore rules of the folder can differ from the previous pass, so the pass lists the folders below again. */
  readonly isStale: boolean;
}

const noCandidates: readonly Candidate[] = [];
const quietly = { throwIfNoEntry: false } as const;

/**
 * Whether a folder and its sources all have their stamps. A pass over an unchanged project
 * consists of this, so it does nothing else; `readFolder` resolves any doubt.
 */
export function isUntouched(root: string, folder: Folder): boolean {
  const { path, sources } = folder;
  const absolute = path === "" ? root : `${root}/${path}`;
  try {
    const stats = statSync(absolute, quietly);
    if (stats === undefined || !hasStamp(folder, 0, stats)) return false;
    if (sources === "") return true;
    const prefix = `${absolute}/`;
    let at = 1;
    for (let from = 0; from < sources.length; at += 1) {
      const slash = sources.indexOf("/", from);
      const end = slash === -1 ? sources.length : slash;
      const source = statSync(prefix + sources.slice(from, end), quietly);
      if (source === undefined || !hasStamp(folder, at, source)) return false;
      from = end + 1;
    }
    return true;
  } catch {
    return false;
  }
}

/** Reads the present state of a folder; undefined for a missing folder. Never throws. */
export function readFolder(options: ReadFolderOptions): FolderReading | undefined {
  const { before, path } = options;
  const absolute = path === "" ? options.root : `${options.root}/${path}`;
  const nowMs = Date.now();
  const stats = statOf(absolute);
  if (typeof stats === "string") {
    if (stats === "ENOENT" || stats === "ENOTDIR") return undefined;
    const wasUnreadable = before !== undefined && isUnstamped(before, 0);
    if (wasUnreadable) return { folder: before, candidates: noCandidates, isStale: false };
    return unreadableFolder(path, unreadableBecause(path, stats));
  }
  if (!stats.isDirectory()) return undefined;
  const rulesChanged = before !== undefined && haveRulesChanged(before, absolute);
  if (before !== undefined && !options.isStale && !rulesChanged && hasStamp(before, 0, stats)) {
    return compareSources(before, absolute);
  }
  const listing = list(options, absolute);
  if (typeof listing === "string") {
    const reading = unreadableFolder(path, unreadableBecause(path, listing));
    setStamp(reading.folder, 0, { stats, nowMs });
    return reading;
  }
  const reading = compareListing(listing, { before, path, absolute });
  setStamp(reading.folder, 0, { stats, nowMs });
  const hadRules = before !== undefined && holdsName(before.sources, ignoreFileName);
  const rulesCameOrWent = before !== undefined && hadRules !== listing.sources.includes(ignoreFileName);
  return { ...reading, isStale: options.isStale || rulesChanged || rulesCameOrWent };
}

/** The stats of what a path leads to, or the code of the error. */
function statOf(absolute: string): Stats | string {
  try {
    return statSync(absolute, quietly) ?? "ENOENT";
  } catch (error) {
    return errorCodeOf(error);
  }
}

function haveRulesChanged(before: Folder, absolute: string): boolean {
  if (!before.sources.includes(ignoreFileName)) return false;
  const index = namesIn(before.sources).indexOf(ignoreFileName);
  if (index === -1) return false;
  const stats = statOf(`${absolute}/${ignoreFileName}`);
  return typeof stats === "string" || !hasStamp(before, index + 1, stats);
}

/** An unchanged folder: only the content of its sources can differ. */
function compareSources(before: Folder, absolute: string): FolderReading {
  if (before.sources === "") return { folder: before, candidates: noCandidates, isStale: false };
  const sources = before.sources.split("/");
  let folder = before;
  let candidates = noCandidates;
  for (let index = 0; index < sources.length; index += 1) {
    const name = sources[index] ?? "";
    const stats = statOf(`${absolute}/${name}`);
    // An entry without a stamp was a dangling link or the like, and still is.
    const isSame =
      typeof stats === "string" ? isUnstamped(before, index + 1) : hasStamp(before, index + 1, stats);
    if (isSame) continue;
    if (folder === before) folder = { ...before, stamps: [...before.stamps] };
    const isNoFile = typeof stats !== "string" && !stats.isFile();
    const isLink = attempt(() => lstatSync(`${absolute}/${name}`, quietly)?.isSymbolicLink() ?? false, false);
    candidates = [...candidates, toCandidate(folder, { name, index, isNoFile: isNoFile && !isLink, isLink })];
  }
  return { folder, candidates, isStale: false };
}

interface Listing {
  readonly folders: readonly string[];
  readonly files: readonly string[];
  readonly sources: readonly string[];
  /** Names among the sources that are neither files nor links. */
  readonly notFiles: ReadonlySet<string>;
  /** Links, all of which are sources: each is another name of what it leads to. */
  readonly links: ReadonlySet<string>;
}

function list({ path, scope, exceptions, isSource }: ReadFolderOptions, absolute: string): Listing | string {
  let entries: Dirent[];
  try {
    entries = readdirSync(absolute, { withFileTypes: true });
  } catch (error) {
    return errorCodeOf(error);
  }
  const hasRules = entries.some((entry) => entry.name === ignoreFileName && entry.isFile());
  const inner = hasRules ? scope().enter(path) : scope();
  const isException = (entryPath: string, entry: Dirent): boolean =>
    (!entry.isDirectory() && exceptions.keepsFile(entryPath, inner === everythingIgnored)) ||
    (!entry.isFile() && exceptions.keepsFolder(entryPath));
  const folders: string[] = [];
  const files: string[] = [];
  const sources: string[] = [];
  const notFiles = new Set<string>();
  const links = new Set<string>();
  for (const entry of entries) {
    const { name } = entry;
    if (isSkippedName(name)) continue;
    const entryPath = joinPath(path, name);
    const isFolder = entry.isDirectory();
    if (inner.ignores(entryPath, isFolder) && !isException(entryPath, entry)) continue;
    if (isFolder) folders.push(name);
    const isRules = name === ignoreFileName && entry.isFile();
    const isLink = entry.isSymbolicLink();
    const isRead = isFolder ? hasSourceExtension(name) && isSource(entryPath) : isLink || isSource(entryPath);
    if (isRules || isRead) {
      sources.push(name);
      if (isLink) links.add(name);
      else if (!entry.isFile()) notFiles.add(name);
    } else if (!isFolder) files.push(name);
  }
  return { folders, files, sources, notFiles, links };
}

// A folder that is named like a source file is a mistake to report. Adapters that take whole subtrees match every folder in them,
// though, so only names that look like files count.
export function hasSourceExtension(name: string): boolean {
  return /\.(?:md|mdc|json|ya?ml)$/i.test(name) || /^\.(?:cursorrules|windsurfrules|rules)$/.test(name);
}

interface ListedFolder {
  readonly path: string;
  readonly absolute: string;
  readonly before: Folder | undefined;
}

function compareListing(listing: Listing, { path, absolute, before }: ListedFolder): FolderReading {
  const { sources } = listing;
  const folder: Folder = {
    path,
    folders: listing.folders.join("/"),
    files: listing.files.join("/"),
    sources: sources.join("/"),
    stamps: createStamps(sources.length),
  };
  const positions = new Map(before && namesIn(before.sources).map((name, index) => [name, index + 1]));
  const candidates: Candidate[] = [];
  for (let index = 0; index < sources.length; index += 1) {
    const name = sources[index] ?? "";
    const nowMs = Date.now();
    const knownAt = positions.get(name);
    if (name === ignoreFileName) {
      const stats = statOf(`${absolute}/${name}`);
      if (typeof stats !== "string") setStamp(folder, index + 1, { stats, nowMs });
    } else if (
      // The target of a link can change without a change of the entry.
      !listing.links.has(name) &&
      knownAt !== undefined &&
      before !== undefined &&
      isSameSource(before, knownAt, `${absolute}/${name}`)
    ) {
      copyStamp(before, knownAt, { to: folder, at: index + 1 });
    } else {
      const isNoFile = listing.notFiles.has(name);
      candidates.push(toCandidate(folder, { name, index, isNoFile, isLink: listing.links.has(name) }));
    }
  }
  return { folder, candidates, isStale: false };
}

function isSameSource(before: Folder, at: number, absolute: string): boolean {
  const stats = statOf(absolute);
  return typeof stats !== "string" && hasStamp(before, at, stats);
}

function toCandidate(
  folder: Folder,
  { name, index, isNoFile, isLink }: { name: string; index: number; isNoFile: boolean; isLink: boolean },
): Candidate {
  const path = joinPath(folder.path, name);
  const file = { path, folder, stampAt: index + 1, isLink };
  if (isNoFile) {
    const problem = unreadable({ path, code: "not_a_file", message: "It is not a regular file." });
    return { ...file, problem };
  }
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what it looks for
  if (/[\u0000-\u001f\u007f]/.test(path)) {
    const message = "It is not read, because its path contains a line break or another control character.";
    return { ...file, problem: unreadable({ path, code: "control_character", message }) };
  }
  return file;
}

/** A folder that cannot be listed: a problem in place of its content. */
function unreadableFolder(path: string, problem: Diagnostic): FolderReading {
  const folder: Folder = { path, folders: "", files: "", sources: "", stamps: createStamps(0) };
  return {
    folder,
    candidates: [{ path: `${path}/`, folder, stampAt: 0, isLink: false, problem }],
    isStale: false,
  };
}

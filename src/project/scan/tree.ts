import type { Stats } from "node:fs";
import { joinPath } from "../../files/obstacle.ts";

/** Numbers per stamp: size, modification and change time in milliseconds, inode. */
const stampLength = 4;

/**
 * A folder of the project as the last pass saw it; without ignored entries. Names are joined by "/", which no name
 * contains: most lists are never split.
 */
export interface Folder {
  /** POSIX, relative to the root; "" is the root itself. */
  readonly path: string;
  /** The folders in it. */
  readonly folders: string;
  /** Files that kit does not read; it knows only that they exist. */
  readonly files: string;
  /** Files that are read, and the ignore file: these have a stamp. */
  readonly sources: string;
  /** The stamp of the folder itself, then one per source, in the order of `sources`; null if none was taken. */
  readonly stamps: (number | null)[];
}

/** The folders of a project by path, each after its parent. */
export type Tree = ReadonlyMap<string, Folder>;

export function namesIn(joined: string): string[] {
  return joined === "" ? [] : joined.split("/");
}

export function holdsName(joined: string, name: string): boolean {
  return joined.includes(name) && namesIn(joined).includes(name);
}

export function parentOf(path: string): string {
  const slash = path.lastIndexOf("/");
  return slash === -1 ? "" : path.slice(0, slash);
}

/** Every file of a tree, sorted. */
export function filesOf(tree: Tree): string[] {
  const files: string[] = [];
  for (const { path, files: fileNames, sources } of tree.values()) {
    for (const name of namesIn(fileNames)) files.push(joinPath(path, name));
    for (const name of namesIn(sources)) files.push(joinPath(path, name));
  }
  return files.sort();
}

/** Answers whether a tree holds a file. Splits the names of each folder once. */
export function createFileSet(tree: () => Pick<Tree, "get">): { has(path: string): boolean } {
  const namesOf = new WeakMap<Folder, ReadonlySet<string>>();
  return {
    has(path) {
      const folder = tree().get(parentOf(path));
      if (folder === undefined) return false;
      let names = namesOf.get(folder);
      if (names === undefined) {
        names = new Set([...namesIn(folder.files), ...namesIn(folder.sources)]);
        namesOf.set(folder, names);
      }
      return names.has(path.slice(path.lastIndexOf("/") + 1));
    },
  };
}

/** Whether an entry is unchanged since its stamp was taken. */
export function hasStamp(folder: Folder, at: number, stats: Stats): boolean {
  const { stamps } = folder;
  const from = at * stampLength;
  return (
    stamps[from + 1] === stats.mtimeMs &&
    stamps[from + 2] === stats.ctimeMs &&
    stamps[from] === stats.size &&
    stamps[from + 3] === stats.ino
  );
}

/** The times and the inode of a source as its stamp has them, as text; undefined if the folder has no such source. */
export function stampOfSource({ sources, stamps }: Folder, name: string): string | undefined {
  const at = (namesIn(sources).indexOf(name) + 1) * stampLength;
  // Without the size, which is left out while the file is fresh.
  return at === 0 ? undefined : stamps.slice(at + 1, at + stampLength).join();
}

/** Whether `stat` failed when the stamp was taken. */
export function isUnstamped(folder: Folder, at: number): boolean {
  return folder.stamps[at * stampLength + 3] === null;
}

export interface Sighting {
  readonly stats: Stats;
  /** The time just before the stats were taken. */
  readonly nowMs: number;
}

/**
 * Takes the stamp of an entry that is about to be read.
 *
 * File systems keep time in ticks. An entry that changed within the present tick can change again without a new time. Its stamp
 * is made to differ from every later stamp, so the next pass reads the entry again ("racily clean" entries in Git).
 */
export function setStamp(folder: Folder, at: number, sighting: Sighting): void {
  const { stamps } = folder;
  const { stats } = sighting;
  const from = at * stampLength;
  stamps[from] = isSettled(sighting) ? stats.size : null;
  stamps[from + 1] = stats.mtimeMs;
  stamps[from + 2] = stats.ctimeMs;
  stamps[from + 3] = stats.ino;
}

/** Whether an entry cannot change again without another time. */
export function isSettled({ stats, nowMs }: Sighting): boolean {
  const tickMs = Number.isInteger(stats.ctimeMs) ? 2000 : 20;
  return nowMs - stats.ctimeMs > tickMs;
}

/** Empty stamps for a folder with this many sources. */
export function createStamps(sources: number): (number | null)[] {
  return new Array<number | null>((sources + 1) * stampLength).fill(null);
}

/** Copies the stamp of a source from the previous version of its folder. */
export function copyStamp(from: Folder, fromAt: number, { to, at }: { to: Folder; at: number }): void {
  for (let part = 0; part < stampLength; part += 1)
    to.stamps[at * stampLength + part] = from.stamps[fromAt * stampLength + part] ?? null;
}

/** A name of a file or folder that is not its real path. */
export interface Link {
  /** `hard`: one of several names of one file in the file system. */
  readonly kind: "file" | "folder" | "hard";
  /** The real path, project-relative, after following chains; for a hard link, device and inode. */
  readonly target: string;
}

/** The links of a project by their path. */
export type Links = ReadonlyMap<string, Link>;

/** The names of files that have several. A link inside the root is an alias of its target. */
export interface Aliases {
  /** The real path of a name, through links of files and of folders; the name itself if it is not a link. */
  realOf(path: string): string;
  /** The other names of a real path, in the order of `byPreference`. */
  namesOf(path: string): readonly string[];
}

/** The limit of names per file; links that lead into each other make more. */
const maxNames = 32;
const maxFolderHops = 3;

const noNames: readonly string[] = [];
const noAliases: Aliases = { realOf: (path) => path, namesOf: () => noNames };

/**
 * Computes aliases from links. An ignored target and a file with hard links have no better
 * path: the first name in `byPreference` counts as the real one.
 */
export function createAliases(links: Links, hasFile: (path: string) => boolean): Aliases {
  if (links.size === 0) return noAliases;
  const byTarget = new Map<string, string[]>();
  const folders: (readonly [path: string, target: string])[] = [];
  for (const [path, { kind, target }] of links) {
    if (kind !== "folder") byTarget.set(target, [...(byTarget.get(target) ?? []), path]);
    // A link to a folder above itself makes endless names.
    else if (!isWithin(path, target)) folders.push([path, target]);
  }
  for (const names of byTarget.values()) names.sort(byPreference);

  const canonical = (target: string): string => {
    const link = links.get(target);
    if (link?.kind === "hard") return byTarget.get(link.target)?.[0] ?? target;
    return hasFile(target) ? target : (byTarget.get(target)?.[0] ?? target);
  };

  const realOf = (path: string): string => {
    let current = path;
    for (let hop = 0; hop <= maxFolderHops; hop += 1) {
      const link = links.get(current);
      if (link?.kind === "hard") return canonical(current);
      if (link !== undefined) return link.kind === "file" ? canonical(link.target) : link.target;
      const folder = folders.find(([from]) => isWithin(current, from));
      if (folder === undefined) return current;
      const rest = current.slice(folder[0].length + 1);
      current = folder[1] === "" ? rest : `${folder[1]}/${rest}`;
    }
    return current;
  };

  const namesOf = (path: string): readonly string[] => {
    const depths = new Map<string, number>([[path, 0]]);
    for (const [name, hops] of depths) {
      const add = (other: string, otherHops: number): void => {
        if (depths.size <= maxNames && !depths.has(other)) depths.set(other, otherHops);
      };
      const link = links.get(name);
      for (const other of byTarget.get(name) ?? noNames) add(other, hops);
      if (link !== undefined && link.kind !== "folder")
        for (const other of byTarget.get(link.target) ?? noNames) add(other, hops);
      if (hops >= maxFolderHops) continue;
      for (const [from, target] of folders) {
        if (!isWithin(name, target)) continue;
        const rest = target === "" ? name : name.slice(target.length + 1);
        add(`${from}/${rest}`, hops + 1);
      }
    }
    depths.delete(path);
    return depths.size === 0 ? noNames : [...depths.keys()].sort(byPreference);
  };

  return { realOf, namesOf };
}

/** Plain names before those of dot files and dot folders, then by path: AGENTS.md, CLAUDE.md, .cursorrules. */
function byPreference(a: string, b: string): number {
  const [dotA, dotB] = [a.startsWith("."), b.startsWith(".")];
  if (dotA !== dotB) return dotA ? 1 : -1;
  return a < b ? -1 : a > b ? 1 : 0;
}

/** That of guidelines would load a package of digests. */
function isWithin(path: string, folder: string): boolean {
  return folder === "" || path.startsWith(`${folder}/`);
}

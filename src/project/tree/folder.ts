import type { Stats } from "node:fs";

/** Numbers per stamp: size, modification and change time in milliseconds, inode. */
export const stampLength = 4;

/** A folder of the project as the last pass saw it; everything ignored is left out. */
export interface Folder {
  /** POSIX, relative to the root; "" is the root itself. */
  readonly path: string;
  /** Names of the folders in it. */
  readonly folders: readonly string[];
  /** Names of files that are not read: all that is known of them is that they exist. */
  readonly files: readonly string[];
  /** Names of the files that are read, and of the ignore file: these have a stamp. */
  readonly sources: readonly string[];
  /** The stamp of the folder itself, then one per source, in the order of `sources`. */
  readonly stamps: Float64Array;
}

/** The folders of a project by path. */
export type Tree = ReadonlyMap<string, Folder>;

export function parentOf(path: string): string {
  const slash = path.lastIndexOf("/");
  return slash === -1 ? "" : path.slice(0, slash);
}

/** Whether an entry still is what it was when the stamp at `at` (counted in stamps) was taken. */
export function hasStamp(stamps: Float64Array, at: number, stats: Stats): boolean {
  const from = at * stampLength;
  return (
    stamps[from] === stats.size &&
    stamps[from + 1] === stats.mtimeMs &&
    stamps[from + 2] === stats.ctimeMs &&
    stamps[from + 3] === stats.ino
  );
}

/** Whether nothing could be stat-ed when the stamp was to be taken. */
export function isUnstamped(stamps: Float64Array, at: number): boolean {
  return Number.isNaN(stamps[at * stampLength + 3]);
}

/**
 * Takes the stamp of an entry that is about to be read at `nowMs`.
 *
 * File systems keep time in ticks. An entry that changed within the present tick may change again
 * without a new time, so its stamp is made to differ from every later one, and the next pass reads
 * it again ("racily clean" entries, as Git calls them).
 */
export function setStamp(stamps: Float64Array, at: number, { stats, nowMs }: Sighting): void {
  const from = at * stampLength;
  const tickMs = Number.isInteger(stats.ctimeMs) ? 2000 : 20;
  const isSettled = nowMs - stats.ctimeMs > tickMs;
  stamps[from] = isSettled ? stats.size : Number.NaN;
  stamps[from + 1] = stats.mtimeMs;
  stamps[from + 2] = stats.ctimeMs;
  stamps[from + 3] = stats.ino;
}

export interface Sighting {
  readonly stats: Stats;
  /** The time just before the stats were taken. */
  readonly nowMs: number;
}

import { readFileSync, renameSync, statSync, writeFileSync } from "node:fs";
import type { IndexDatabase } from "./index-database.ts";

/** A log longer than this is moved into the database after a commit, in bytes. */
const maxLogBytes = 16 * 1024 * 1024;

/**
 * The seal of an index notes size and time of its file as kit left it. A file that differs was
 * changed by something else, or its writer was stopped at the one moment that matters; reading it
 * all to find out would take longer than most starts.
 *
 * Commits go to SQLite's log, which has checksums of its own. The file itself changes only when the
 * log is moved into it, which is done here, under the lock of the index, and sealed at once.
 */
export function isSealed(file: string): boolean {
  try {
    return readFileSync(sealOf(file), "utf8") === describe(file);
  } catch {
    return false;
  }
}

/** To be called by whoever holds the lock. */
export function seal(file: string): void {
  const temporary = `${sealOf(file)}.new`;
  writeFileSync(temporary, describe(file));
  renameSync(temporary, sealOf(file));
}

function sealOf(file: string): string {
  return `${file}-seal`;
}

function describe(file: string): string {
  const { size, mtimeMs, ino } = statSync(file);
  return `${size} ${mtimeMs} ${ino}\n`;
}

/** Whether there is so much in the log that it is time to move it. */
export function isLogLong(file: string): boolean {
  return logSize(file) > maxLogBytes;
}

export function hasLog(file: string): boolean {
  return logSize(file) > 0;
}

function logSize(file: string): number {
  return statSync(`${file}-wal`, { throwIfNoEntry: false })?.size ?? 0;
}

/** Moves the log into the file and seals it. To be called by whoever holds the lock. */
export function moveLog(database: IndexDatabase): void {
  // What readers of other processes still need stays in the log, for the next time.
  database.get("PRAGMA wal_checkpoint(TRUNCATE)");
  seal(database.file);
}

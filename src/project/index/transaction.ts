import { KitError } from "../../base/kit-error.ts";
import type { PassSteps } from "../pass-steps.ts";
import { type IndexDatabase, openDatabase } from "./index-database.ts";

/** How long a pass waits for another process that fills the index. */
const maxWaitMs = 600_000;

/** Takes the right to write, waiting for another process that has it. */
export function beginWrite(database: IndexDatabase): PassSteps<void> {
  return begin(database, "BEGIN IMMEDIATE");
}

/** Takes a database for itself; SQLite gives it back when the process ends, however that ends. */
export function beginExclusive(database: IndexDatabase): PassSteps<void> {
  return begin(database, "BEGIN EXCLUSIVE");
}

function* begin(database: IndexDatabase, statement: string): PassSteps<void> {
  const start = performance.now();
  for (;;) {
    try {
      database.exec(statement);
      return;
    } catch (error) {
      if (!isBusy(error)) throw error;
      if (performance.now() - start > maxWaitMs) throw stuck(error);
    }
    yield { sleepMs: 20 };
  }
}

function stuck(cause: unknown): KitError {
  const message = "Another process is writing the index of this project and does not finish.";
  return new KitError({ code: "unavailable", message, cause });
}

/** SQLITE_BUSY, in its low byte: extended codes add to it. */
function isBusy(error: unknown): boolean {
  return error instanceof Error && "errcode" in error && (Number(error.errcode) & 0xff) === 5;
}

/** Undoes a transaction after an error; one that SQLite has undone itself is left alone. */
export function rollback(database: IndexDatabase): void {
  try {
    database.exec("ROLLBACK");
  } catch {
    // There is nothing to undo any more.
  }
}

/**
 * Runs work while holding the lock of an index, or not at all when another process holds it longer
 * than `waitMs`. Returns whether it ran.
 */
export function tryLocked(
  indexFile: string,
  { waitMs, work }: { readonly waitMs: number; readonly work: () => void },
): boolean {
  const lock = openLock(indexFile, waitMs);
  try {
    lock.exec("BEGIN EXCLUSIVE");
    work();
    return true;
  } catch (error) {
    if (isBusy(error)) return false;
    throw error;
  } finally {
    lock.close();
  }
}

/**
 * The lock of an index is SQLite's own lock on a database beside it: it ends with the process that
 * holds it, however that ends.
 */
export function openLock(indexFile: string, waitMs = 0): IndexDatabase {
  return openDatabase(`${indexFile}-lock`, { busyTimeoutMs: waitMs });
}

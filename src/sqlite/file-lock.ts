import { setTimeout } from "node:timers/promises";
import { KitError } from "../base/kit-error.ts";
import { isBusy } from "./database-file.ts";
import { openFile } from "./statements.ts";

/** Interval at which a waiting process tries the lock again. */
const pollMs = 20;

export interface LockWait {
  /** Milliseconds after which the wait ends with `unavailable`. */
  readonly maxMs: number;
  /** A sentence that says what the caller waits for. */
  readonly message?: string;
  readonly hint?: string;
}

/**
 * Runs `work` while no other process, and no other call of this process, runs work under the same file. The system releases the lock
 * of a process that dies, and keeps that of one that is stopped, so no lock is ever too old. Creates the file, an empty database; its
 * folder must exist. Throws `unavailable` if the lock is not free within `maxMs`.
 */
export async function underFileLock<Result>(
  file: string,
  { maxMs, message, hint }: LockWait,
  work: () => Promise<Result>,
): Promise<Result> {
  const database = openFile(file, { timeoutMs: 0 });
  try {
    const start = performance.now();
    while (!tryBegin(() => database.exec("BEGIN EXCLUSIVE"))) {
      if (performance.now() - start > maxMs)
        throw new KitError({
          code: "unavailable",
          message:
            message ?? `Another process has held a lock for more than ${Math.round(maxMs / 1000)} seconds.`,
          hint,
        });
      await setTimeout(pollMs);
    }
    return await work();
  } finally {
    database.close();
  }
}

function tryBegin(begin: () => void): boolean {
  try {
    begin();
    return true;
  } catch (error) {
    if (isBusy(error)) return false;
    throw error;
  }
}

import { closeSync, openSync, rmSync, statSync } from "node:fs";
import { hasCode } from "../../files/obstacle.ts";

const pollMs = 5;
/** The holder of an older lock was killed. */
const staleMs = 10_000;

/**
 * Does short work while no other process does it with the same lock file; blocks the thread meanwhile. Where the file cannot be
 * created, such as on a read-only disk, does the work without it.
 */
export function exclusively<Value>(lock: string, work: () => Value): Value {
  const isHeld = hold(lock);
  try {
    return work();
  } finally {
    if (isHeld) rmSync(lock, { force: true });
  }
}

function hold(lock: string): boolean {
  const cell = new Int32Array(new SharedArrayBuffer(4));
  for (const start = performance.now(); performance.now() - start < 2 * staleMs; ) {
    try {
      closeSync(openSync(lock, "wx", 0o600));
      return true;
    } catch (error) {
      if (!hasCode(error, "EEXIST")) return false;
    }
    const found = statSync(lock, { throwIfNoEntry: false });
    if (found !== undefined && Date.now() - found.mtimeMs > staleMs) rmSync(lock, { force: true });
    else Atomics.wait(cell, 0, 0, pollMs);
  }
  return false;
}

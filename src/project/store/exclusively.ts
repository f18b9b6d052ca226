import { closeSync, openSync, readFileSync, rmSync, statSync, writeSync } from "node:fs";
import { hasCode } from "../../files/obstacle.ts";
import { isAlive } from "../../processes/is-alive.ts";

const pollMs = 5;
/** The holder of an older lock was killed, on this machine or on another one. */
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
    const file = create(lock);
    if (file !== "exists") {
      if (file !== undefined) noteHolder(file);
      return file !== undefined;
    }
    if (isLeft(lock)) rmSync(lock, { force: true });
    else Atomics.wait(cell, 0, 0, pollMs);
  }
  return false;
}

/** Returns undefined if no file can be created there. */
function create(lock: string): number | "exists" | undefined {
  try {
    return openSync(lock, "wx", 0o600);
  } catch (error) {
    return hasCode(error, "EEXIST") ? "exists" : undefined;
  }
}

function noteHolder(file: number): void {
  try {
    writeSync(file, String(process.pid));
  } catch {
    // On a full disk the lock holds, but names no process.
  } finally {
    closeSync(file);
  }
}

/** Whether the holder of a lock was killed. */
function isLeft(lock: string): boolean {
  try {
    // An empty text is 0.
    const pid = Number(readFileSync(lock, "utf8"));
    return (pid > 0 && !isAlive(pid)) || Date.now() - statSync(lock).mtimeMs > staleMs;
  } catch {
    // The holder has removed it.
    return false;
  }
}

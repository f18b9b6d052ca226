/**
 * A thread that watches the one that runs Python. A native operation of Monty can exceed its limits by seconds or gigabytes,
 * and nothing on the same thread can stop it, so this thread ends the process. It also ends a process whose host has
 * ended while it computes.
 */
import { writeSync } from "node:fs";
import { workerData } from "node:worker_threads";
import { monotonicMs, type WatchdogState, watchdogNote } from "./watchdog-state.ts";

const { armed, limits, host } = workerData as WatchdogState;
const periodMs = 20;

for (;;) {
  // Sleeps without waking while nothing runs.
  Atomics.wait(armed, 0, 0);
  Atomics.wait(armed, 0, 1, periodMs);
  if (Atomics.load(armed, 0) === 0) continue;
  const [deadline = 0, ceiling = 0] = limits;
  if (process.ppid !== host) end("host");
  if (monotonicMs() > deadline) end("time");
  if (process.memoryUsage.rss() > ceiling) end("memory");
}

function end(reason: string): void {
  try {
    writeSync(2, `${watchdogNote}${reason}\n`);
  } catch {
    // No reader is left.
  }
  process.kill(process.pid, "SIGKILL");
}

import { uptime } from "node:os";
import { type Clock, systemClock } from "../../base/clock.ts";

/** The clock of durable waits: it never goes back while a process runs, even if the machine's clock is set. */
export interface WaitClock extends Clock {
  /** Milliseconds; close to those since 1970 as long as the machine's clock is not set. */
  now(): number;
  /** Converts a time of this clock to the time of day, as the machine's clock is set now. */
  toWall(ms: number): number;
}

/** How often the uptime is read: the system reads a file for it. */
const readEveryMs = 1_000;
/** The two counters differ by at most this much while the machine is awake. */
const minSleepMs = 1_000;

/** The system's clock, which knows how long the machine was asleep: the system's uptime includes that time. */
export function createMachineClock(): Clock {
  const offset = uptime() * 1_000 - performance.now();
  let readAt = performance.now();
  let asleep = 0;
  return {
    ...systemClock,
    asleep() {
      const now = performance.now();
      if (now - readAt >= readEveryMs) {
        readAt = now;
        const addedSleep = uptime() * 1_000 - now - offset - asleep;
        if (addedSleep >= minSleepMs) asleep += addedSleep;
      }
      return asleep;
    },
  };
}

/** How late a wait can end after the machine was asleep, or its clock was set. */
const checkMs = 60_000;

/**
 * Sleeps until a time (ms since 1970); rejects with the signal's reason. A timer counts only while the machine
 * is awake, counts at most 24 days, and ignores changes of the clock, so the clock is read again each minute.
 */
export async function sleepUntil(clock: Clock, at: number, signal: AbortSignal): Promise<void> {
  do await clock.sleep(Math.min(checkMs, Math.max(0, at - clock.now())), signal);
  while (clock.now() < at);
}

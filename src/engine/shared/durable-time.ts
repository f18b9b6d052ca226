import { uptime } from "node:os";
import { type Clock, systemClock } from "../../base/clock.ts";

/** The clock of durable waits: it never goes back while a process runs, whatever is done to the time of day. */
export interface WaitClock extends Clock {
  /** Milliseconds; close to those since 1970 as long as the machine's clock is not set. */
  now(): number;
  /** Converts a time of this clock to the time of day, as the machine's clock is set now. */
  toWall(ms: number): number;
}

/** How often the system is asked: it reads a file for the answer. */
const askEveryMs = 1_000;
/** The two counters differ by this much at the most while the machine is awake. */
const leastSleepMs = 1_000;

/** The system's clock, which knows how long the machine was asleep: what a system says of its uptime includes that. */
export function createMachineClock(): Clock {
  const ahead = uptime() * 1_000 - performance.now();
  let askedAt = performance.now();
  let asleep = 0;
  return {
    ...systemClock,
    asleep() {
      const now = performance.now();
      if (now - askedAt >= askEveryMs) {
        askedAt = now;
        const more = uptime() * 1_000 - now - ahead - asleep;
        if (more >= leastSleepMs) asleep += more;
      }
      return asleep;
    },
  };
}

/** How late a wait may end after a machine was asleep, or its clock was set. */
const checkMs = 60_000;

/**
 * Sleeps until a time (ms since 1970); rejects with the signal's reason. A timer counts only while the machine
 * is awake, can count 24 days at most, and knows nothing of a clock that is set: so the clock is looked at
 * each minute.
 */
export async function sleepUntil(clock: Clock, at: number, signal: AbortSignal): Promise<void> {
  do await clock.sleep(Math.min(checkMs, Math.max(0, at - clock.now())), signal);
  while (clock.now() < at);
}

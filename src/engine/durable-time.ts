import { uptime } from "node:os";
import { type Clock, systemClock } from "../base/clock.ts";

/**
 * The time that durable waits are counted in. It goes on as evenly as the machine does, asleep or awake, over restarts
 * and changes of hands, whatever is done to the time of day; so a sleep of 20 s takes 20 s. While no process
 * runs, the time of day is all there is to count by: then it never goes back, and a clock that was set forward counts
 * as time that has passed.
 */
export interface Timeline extends Clock {
  /** Milliseconds; close to those since 1970 as long as the machine's clock is not set. */
  now(): number;
  /** Converts a time of the timeline to the time of day, as the clock is set now. */
  toWall(ms: number): number;
  /** Reads the position that another process has stored. */
  resume(): void;
  /** Stores the position. Call it in a transaction. */
  mark(): void;
  /**
   * By how many milliseconds the time of day was set since the last look: forward, back (negative), or 0. What is less than
   * 1.5 s is none: a time service corrects it bit by bit.
   */
  jump(): number;
  /** Keeps all records until a time of the timeline. Call it in a transaction. */
  keepUntil(ms: number): void;
  /** Whether retention may remove old records now. */
  mayRemove(): boolean;
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

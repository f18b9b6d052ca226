import { uptime } from "node:os";
import { type Clock, systemClock } from "../../../base/clock.ts";

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

import { setImmediate } from "node:timers/promises";
import type { Clock } from "../base/clock.ts";

export interface ManualClock extends Clock {
  /** Advances the clock: wakes the sleepers one after the other, and lets their work continue. */
  advance(ms: number): Promise<void>;
  /** Sets the time (ms since 1970), as a user sets a system's clock. Wakes no sleeper. */
  set(ms: number): void;
  /** The machine sleeps for this long. Wakes no sleeper: a timer counts only while the machine is awake. */
  suspend(ms: number): void;
}

/**
 * A clock that stands still until the test advances it.
 *
 * @example
 * ```ts
 * import { createManualClock, createScriptedModel, openTestApp } from "kit/testing";
 *
 * const clock = createManualClock();
 * const app = await openTestApp({ root: ".", model: createScriptedModel([]), clock });
 * console.log(new Date(clock.now()));
 * await app.close();
 * ```
 */
export function createManualClock(startMs: number = Date.parse("2026-11-21T10:00:00Z")): ManualClock {
  const sleepers = new Set<{ readonly at: number; readonly wake: () => void }>();
  // Sleepers count `now`; the clock adds `ahead` to it.
  let now = 0;
  let ahead = startMs;
  let asleep = 0;
  return {
    now: () => ahead + now,
    elapsed: () => now,
    asleep: () => asleep,
    suspend(ms) {
      ahead += ms;
      asleep += ms;
    },
    set(ms) {
      ahead = ms - now;
    },
    sleep: (ms, signal) =>
      new Promise((resolve, reject) => {
        if (signal?.aborted) {
          reject(signal.reason);
          return;
        }
        const stop = (): void => {
          sleepers.delete(sleeper);
          reject(signal?.reason);
        };
        const wake = (): void => {
          signal?.removeEventListener("abort", stop);
          resolve();
        };
        const sleeper = { at: now + ms, wake };
        sleepers.add(sleeper);
        signal?.addEventListener("abort", stop, { once: true });
      }),
    async advance(ms) {
      const end = now + ms;
      await setImmediate();
      for (;;) {
        const [next] = [...sleepers].filter(({ at }) => at <= end).sort((a, b) => a.at - b.at);
        if (next === undefined) break;
        sleepers.delete(next);
        now = Math.max(now, next.at);
        next.wake();
        await setImmediate();
      }
      now = end;
    },
  };
}

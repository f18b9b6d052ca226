/** The time and its timers, as a dependency: tests pass a clock that they move themselves. */
export interface Clock {
  /** Milliseconds since 1970-01-01 UTC. */
  now(): number;
  /**
   * Milliseconds since an arbitrary moment, for measuring durations: a change to the time of day does not alter the
   * count. The time during which the machine slept is not counted. Default: `performance.now`.
   */
  elapsed?(): number;
  /** Milliseconds that the machine has slept since the process started. Default: 0. */
  asleep?(): number;
  /** Resolves after `ms` milliseconds; rejects with `signal.reason` if the signal fires first. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

/** The longest delay of a timer: Node fires a longer one at once. */
export const longestTimerMs: number = 2 ** 31 - 1;

export const systemClock: Clock = {
  now: () => Date.now(),
  sleep: (ms, signal) =>
    new Promise((resolve, reject) => {
      if (signal?.aborted) {
        reject(signal.reason);
        return;
      }
      const stop = (): void => {
        clearTimeout(timer);
        reject(signal?.reason);
      };
      const end = (left: number): void => {
        if (left > 0) {
          timer = setTimeout(end, Math.min(left, longestTimerMs), left - longestTimerMs);
          return;
        }
        signal?.removeEventListener("abort", stop);
        resolve();
      };
      let timer = setTimeout(end, Math.min(ms, longestTimerMs), ms - longestTimerMs);
      signal?.addEventListener("abort", stop, { once: true });
    }),
};

/** Returns `clock.elapsed()`, or its default. */
export function elapsedOf(clock: Clock): number {
  return clock.elapsed?.() ?? performance.now();
}

let lastMs = Number.NaN;
let lastText = "";

/** Formats a time as ISO 8601. Streams ask many times within a millisecond, so the last result is cached. */
export function isoTime(ms: number): string {
  if (ms !== lastMs) {
    lastMs = ms;
    lastText = new Date(ms).toISOString();
  }
  return lastText;
}

/** Time as a dependency, so that tests need not wait. */
export interface Clock {
  /** Milliseconds since 1970-01-01 UTC. */
  now(): number;
  /**
   * Milliseconds since a moment of the clock's own choice, which no user or program sets: for how long
   * something has taken. The count leaves out the time that the machine was asleep. Default: the process's
   * own (`performance.now`).
   */
  elapsed?(): number;
  /** How many milliseconds the machine was asleep since the process began. Default: none. */
  asleep?(): number;
  /** Resolves after `ms`; rejects with `signal.reason` when the signal fires first. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

/** The longest time that a timer can be set for: a longer one would fire at once. */
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
      const end = (): void => {
        signal?.removeEventListener("abort", stop);
        resolve();
      };
      let timer: ReturnType<typeof setTimeout>;
      const wait = (left: number): void => {
        timer =
          left > longestTimerMs
            ? setTimeout(wait, longestTimerMs, left - longestTimerMs)
            : setTimeout(end, left);
      };
      wait(ms);
      signal?.addEventListener("abort", stop, { once: true });
    }),
};

/** The milliseconds that a clock has counted; a change to the time of day does not alter them. */
export function elapsedOf(clock: Clock): number {
  return clock.elapsed?.() ?? performance.now();
}

let lastMs = Number.NaN;
let lastText = "";

/** ISO 8601 of a time. Streams ask many times within a millisecond, so the last answer is kept. */
export function isoTime(ms: number): string {
  if (ms !== lastMs) {
    lastMs = ms;
    lastText = new Date(ms).toISOString();
  }
  return lastText;
}

const warmUpMs = 1_500;
const measureMs = 1_500;

/** Returns the mean time of `work` in µs, repeated sequentially after a warm-up: processor time and elapsed time. */
export async function meanMicros(work: () => Promise<unknown>): Promise<Means> {
  await repeat(work, warmUpMs);
  return await repeat(work, measureMs);
}

/** On a shared machine elapsed time means little, so the benchmarks compare processor time, garbage collection included. */
export interface Means {
  readonly micros: number;
  readonly clock_micros: number;
}

async function repeat(work: () => Promise<unknown>, forMs: number): Promise<Means> {
  const time = startTime();
  let count = 0;
  while (time.spentMs() < forMs) {
    // Reading the time is a system call, so it is done rarely enough not to count.
    for (let index = 0; index < 10; index += 1) await work();
    count += 10;
  }
  return { micros: (time.spentMs() * 1_000) / count, clock_micros: (time.clockMs() * 1_000) / count };
}

/** Starts a measurement; the result returns processor time and elapsed time since then, in ms. */
export function startTime(): { spentMs(): number; clockMs(): number } {
  const since = process.cpuUsage();
  const started = performance.now();
  return {
    spentMs() {
      const { user, system } = process.cpuUsage(since);
      return (user + system) / 1_000;
    },
    clockMs: () => performance.now() - started,
  };
}

export async function microsOf(work: () => Promise<unknown>): Promise<number> {
  const started = process.hrtime.bigint();
  await work();
  return Number(process.hrtime.bigint() - started) / 1_000;
}

export function medianOf(values: readonly number[]): number {
  const sorted = values.toSorted((left, right) => left - right);
  const middle = Math.floor(sorted.length / 2);
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : (upper + (sorted[middle - 1] ?? Number.NaN)) / 2;
}

const warmUpMs = 1_500;
const measureMs = 1_500;

/** Mean microseconds of `work`, done one after the other after a warm-up: of processor time, and of the clock's. */
export async function meanMicros(work: () => Promise<unknown>): Promise<Means> {
  await repeat(work, warmUpMs);
  return await repeat(work, measureMs);
}

/** A machine that others use too says little by its clock: what is compared is processor time, garbage included. */
export interface Means {
  readonly micros: number;
  readonly clock_micros: number;
}

async function repeat(work: () => Promise<unknown>, forMs: number): Promise<Means> {
  const time = startTime();
  let count = 0;
  while (time.spentMs() < forMs) {
    // Asking for the time is a system call: seldom enough to weigh nothing.
    for (let index = 0; index < 10; index += 1) await work();
    count += 10;
  }
  return { micros: (time.spentMs() * 1_000) / count, clock_micros: (time.clockMs() * 1_000) / count };
}

/** Milliseconds since now: of this process's processors, and of the clock. */
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

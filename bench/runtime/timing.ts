const warmUpMs = 2_000;
const blockMs = 250;
const blocks = 12;

/**
 * The time of one call in µs, over blocks of 250 ms in one process, after a warm-up of two seconds: of the median block, and of the best one, which
 * other work on the machine disturbed least. On a shared machine elapsed time means little, so the benchmarks compare processor time,
 * garbage collection included.
 */
export interface BlockTimes {
  readonly micros: number;
  readonly best_micros: number;
  readonly clock_micros: number;
  readonly best_clock_micros: number;
}

/** Repeats `work` sequentially in blocks. */
export async function timeInBlocks(work: () => Promise<unknown>): Promise<BlockTimes> {
  await repeat(work, warmUpMs);
  const times: Awaited<ReturnType<typeof repeat>>[] = [];
  for (let block = 0; block < blocks; block += 1) times.push(await repeat(work, blockMs));
  const spent = times.map(({ micros }) => micros);
  const clock = times.map(({ clockMicros }) => clockMicros);
  return {
    micros: medianOf(spent),
    best_micros: Math.min(...spent),
    clock_micros: medianOf(clock),
    best_clock_micros: Math.min(...clock),
  };
}

async function repeat(work: () => Promise<unknown>, forMs: number) {
  const time = startTime();
  let count = 0;
  while (time.spentMs() < forMs) {
    // Reading the time is a system call, so it is done rarely enough not to count.
    for (let index = 0; index < 10; index += 1) await work();
    count += 10;
  }
  return { micros: (time.spentMs() * 1_000) / count, clockMicros: (time.clockMs() * 1_000) / count };
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

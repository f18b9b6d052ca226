const warmUpMs = 700;
const measureMs = 1_200;

/** Mean microseconds of `work`, done one after the other for about a second, after a warm-up. */
export async function meanMicros(work: () => Promise<unknown>): Promise<number> {
  await repeat(work, warmUpMs);
  const { count, ms } = await repeat(work, measureMs);
  return (ms * 1_000) / count;
}

async function repeat(work: () => Promise<unknown>, forMs: number): Promise<{ count: number; ms: number }> {
  const started = performance.now();
  let count = 0;
  let ms = 0;
  while (ms < forMs) {
    await work();
    count += 1;
    ms = performance.now() - started;
  }
  return { count, ms };
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

/** The measured cost of one thing, as a multiple of its floor in the same run. */
export interface MeasuredRatio {
  readonly name: string;
  readonly ratio: number;
}

/** An entry of `bench/ratios.json`: the ratio measured when it was written, and the limit for a run. */
export interface RatioLimit {
  readonly measured: number;
  readonly limit: number;
}

export type RatioLimits = Readonly<Record<string, RatioLimit>>;

/** How far a limit lies above the measured ratio, to allow for other work on the machine, another processor or another disk. */
const headRoom = 1.6;

/** Returns the limits that follow from a run. */
export function toLimits(ratios: readonly MeasuredRatio[]): RatioLimits {
  const round = (value: number): number => Number(value.toPrecision(2));
  return Object.fromEntries(
    ratios.map(({ name, ratio }) => [name, { measured: round(ratio), limit: round(ratio * headRoom) }]),
  );
}

/** Returns a sentence for each measurement above its limit or without one, and for each limit without a measurement. */
export function judgeRatios(ratios: readonly MeasuredRatio[], limits: RatioLimits): readonly string[] {
  const faults = ratios.flatMap(({ name, ratio }) => {
    const known = limits[name];
    if (known === undefined)
      return [`"${name}" has no limit in bench/ratios.json: run 'npm run bench:guard -- --write'.`];
    if (ratio <= known.limit) return [];
    return [
      `"${name}" takes ${ratio.toFixed(1)} times its floor; its limit is ${known.limit}, and it was ${known.measured} when the limit was written. Make it cheaper, or raise the limit in bench/ratios.json and say in the commit why.`,
    ];
  });
  const measured = new Set(ratios.map(({ name }) => name));
  const unmeasured = Object.keys(limits).filter((name) => !measured.has(name));
  return [
    ...faults,
    ...unmeasured.map((name) => `"${name}" has a limit in bench/ratios.json, and was not measured.`),
  ];
}

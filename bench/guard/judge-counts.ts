/** The cost of one prompt in counts, which other work on the machine does not change. */
export interface PromptCounts {
  readonly bytes: number;
  /** Bytes that live through a collection of young objects: those that last, and dead ones in the old space that keep others. */
  readonly kept: number;
  /** Bytes that a prompt keeps while its last model call waits. */
  readonly waiting: number;
  readonly promises: number;
  readonly timers: number;
  /** Calls of SQLite. */
  readonly statements: number;
}

/** The counts of each measurement, as `bench/counts.json` has them. */
export type CountsByName = Readonly<Record<string, PromptCounts>>;

/** How far a count may grow: bytes differ by about two percent from run to run, the other counts by nothing. */
const headRoom = 1.05;

const kinds = ["bytes", "kept", "waiting", "promises", "timers", "statements"] as const;

/** Returns a sentence for each count above its limit, and for each measurement that only one of the two has. */
export function judgeCounts(counts: CountsByName, known: CountsByName): readonly string[] {
  const names = new Set([...Object.keys(counts), ...Object.keys(known)]);
  return [...names].flatMap((name) => {
    const [now, before] = [counts[name], known[name]];
    if (before === undefined)
      return [`"${name}" has no counts in bench/counts.json: run 'npm run bench:guard -- --write'.`];
    if (now === undefined) return [`"${name}" has counts in bench/counts.json, and was not counted.`];
    return kinds.flatMap((kind) =>
      now[kind] <= before[kind] * headRoom
        ? []
        : [
            `"${name}" costs ${now[kind]} ${kind}; it cost ${before[kind]} when the limit was written. Make it cheaper, or raise the count in bench/counts.json and say in the commit why.`,
          ],
    );
  });
}

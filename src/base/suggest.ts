/** The candidate that the author of `text` most likely meant, or nothing when none is near. */
export function suggest(text: string, candidates: Iterable<string>): string | undefined {
  const lowered = text.toLowerCase();
  // One slip in three letters: more than that is a guess that does not help the reader.
  let limit = Math.max(1, Math.floor(lowered.length / 3)) + 1;
  let best: string | undefined;
  for (const candidate of candidates) {
    const distance = editDistance(lowered, candidate.toLowerCase(), limit);
    if (distance < limit) {
      limit = distance;
      best = candidate;
    }
  }
  return best;
}

/** `a field`, `an option`. */
export function withArticle(noun: string): string {
  return `${/^[aeiou]/i.test(noun) ? "an" : "a"} ${noun}`;
}

/** The keys of an object, and what one is called: "field of a tool". */
export interface KnownKeys {
  readonly of: string;
  readonly keys: readonly string[];
  /** Names that other tools have for a key. */
  readonly otherNames?: Readonly<Record<string, string>> | undefined;
}

/** The first key that no such object has: "`parameters` is not a field of a tool; did you mean input?" */
export function unknownKey(value: object, { of, keys, otherNames = {} }: KnownKeys): string | undefined {
  const unknown = Object.keys(value).find((key) => !keys.includes(key));
  if (unknown === undefined) return undefined;
  const near = Object.hasOwn(otherNames, unknown) ? otherNames[unknown] : suggest(unknown, keys);
  return `\`${unknown.slice(0, 100)}\` is not ${withArticle(of)}${near === undefined ? `; there are ${keys.join(", ")}` : `; did you mean ${near}?`}`;
}

/**
 * Insertions, deletions, replacements and swaps of neighbours between two texts (optimal string
 * alignment), or `limit` when there are that many or more.
 */
function editDistance(a: string, b: string, limit: number): number {
  if (Math.abs(a.length - b.length) >= limit || a.length > 200) return limit;
  let beforeLast: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const cost = a[i - 1] === b[j - 1] ? 0 : 1;
      let distance = Math.min((last[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1, (last[j - 1] ?? 0) + cost);
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) {
        distance = Math.min(distance, (beforeLast[j - 2] ?? 0) + 1);
      }
      row.push(distance);
    }
    if (Math.min(...row) >= limit) return limit;
    beforeLast = last;
    last = row;
  }
  return Math.min(limit, last[b.length] ?? limit);
}

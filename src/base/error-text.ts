/** Returns the candidate that the author of `text` most likely meant; `undefined` if none is similar. */
export function suggest(text: string, candidates: Iterable<string>): string | undefined {
  const lowered = text.toLowerCase();
  // One typing error in three letters: a suggestion for more than that rarely helps.
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

/** Returns the noun with its article: `a field`, `an option`. */
export function withArticle(noun: string): string {
  return `${/^[aeiou]/i.test(noun) ? "an" : "a"} ${noun}`;
}

/** The keys of a kind of object, and the name of one key in messages: "field of a tool". */
export interface KnownKeys {
  readonly of: string;
  readonly keys: readonly string[];
  /** Names of other tools for a key, and the key. */
  readonly otherNames?: Readonly<Record<string, string>> | undefined;
}

/** Returns an error text for the first unknown key: "`parameters` is not a field of a tool; did you mean input?" */
export function unknownKey(value: object, { of, keys, otherNames = {} }: KnownKeys): string | undefined {
  const unknown = Object.keys(value).find((key) => !keys.includes(key));
  if (unknown === undefined) return undefined;
  const near = Object.hasOwn(otherNames, unknown) ? otherNames[unknown] : suggest(unknown, keys);
  return `\`${unknown.slice(0, 100)}\` is not ${withArticle(of)}${near === undefined ? `; there are ${keys.join(", ")}` : `; did you mean ${near}?`}`;
}

/**
 * Counts the insertions, deletions, replacements and swaps of neighbours between two texts (optimal string
 * alignment); returns `limit` if there are that many or more.
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

/** Adds a full stop to a text that has no end mark yet. */
export function toSentence(text: string): string {
  const trimmed = text.trimEnd();
  return /[.!?…]$/.test(trimmed) ? trimmed : `${trimmed}.`;
}

/** A source of reproducible randomness and of text that looks like a specification. */
export interface RandomText {
  /** A whole number from 0 to `below` - 1. */
  below(below: number): number;
  chance(probability: number): boolean;
  pick<Value>(values: readonly Value[]): Value;
  oneWord(): string;
  /** Words without capital and period. */
  words(count: number): string;
  sentence(words: number): string;
  /** Sentences on lines of about a hundred characters. */
  paragraph(words: number): string;
  title(words: number): string;
}

// The most frequent words of specifications, most frequent first; invented ones follow.
const frequentWords =
  `and the for to with a requirements in when is that as shall user test from then all or add of system be
  error create should it this by data not on if can file update tests service use state new each are request
  code response value must valid list name design page session token key path field order type event check
  read write delete send store load return invalid empty first last before after without account password
  authentication authorization payment checkout inventory shipping catalog search invoice refund customer
  profile reset notification email webhook queue worker schedule retry timeout cache database schema migration
  endpoint pagination filter sort export import report dashboard metric audit permission role tenant locale
  translation currency discount voucher basket stock supplier warehouse label tracking parser adapter registry
  index cursor snapshot replica backup encryption certificate rotation rate limit quota throttle upload download
  attachment preview thumbnail editor draft review approval workflow comment mention reaction subscription plan
  renewal trial cancellation receipt ledger balance transfer settlement reconciliation`
    .trim()
    .split(/\s+/);
const syllables = [..."bcdfghjklmnprstvwz"].flatMap((consonant) =>
  [..."aeiou"].map((vowel) => consonant + vowel),
);

// Zipf's law with Mandelbrot's shift, fitted to the corpus: the most frequent word is in a third of
// all blocks, the two hundredth in a twenty-fifth, and a word of a title typically in a fortieth.
const vocabularySize = 40_000;
const shift = 25;

function wordAt(rank: number): string {
  const known = frequentWords[rank];
  if (known !== undefined) return known;
  let word = "";
  for (let rest = rank; rest > 0; rest = Math.floor(rest / syllables.length)) {
    word += syllables[rest % syllables.length];
  }
  return word;
}

/** Creates a source from a seed (mulberry32). The same seed gives the same text on every machine. */
export function createRandomText(seed: number): RandomText {
  let state = seed >>> 0;
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
  const below = (limit: number): number => Math.floor(next() * limit);
  const pick = <Value>(values: readonly Value[]): Value => values[below(values.length)] as Value;
  /** The word that a share of all text is made of more frequent ones than it. */
  const wordAtShare = (share: number): string =>
    wordAt(Math.floor((1 + shift) * ((vocabularySize + shift) / (1 + shift)) ** share - shift));
  const oneWord = (): string => wordAtShare(next());
  const words = (count: number): string => Array.from({ length: count }, oneWord).join(" ");
  const capital = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);
  return {
    below,
    chance: (probability) => next() < probability,
    pick,
    oneWord,
    words,
    sentence: (count) => `${capital(words(count))}.`,
    paragraph(count) {
      const lines: string[] = [];
      let line = "";
      for (let left = count; left > 0; ) {
        const size = Math.min(left, 6 + below(12));
        left -= size;
        for (const part of `${capital(words(size))}.`.split(" ")) {
          if (line.length + part.length > 100) {
            lines.push(line);
            line = part;
          } else line = line === "" ? part : `${line} ${part}`;
        }
      }
      return [...lines, line].join("\n");
    },
    title: (count) =>
      capital(Array.from({ length: count }, () => wordAtShare(0.15 + 0.6 * next())).join(" ")),
  };
}

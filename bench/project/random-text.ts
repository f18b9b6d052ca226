/** A source of reproducible randomness and of text that looks like a specification. */
export interface RandomText {
  /** A whole number from 0 to `below` - 1. */
  below(below: number): number;
  chance(probability: number): boolean;
  pick<Value>(values: readonly Value[]): Value;
  word(): string;
  /** Words without capital and period. */
  words(count: number): string;
  sentence(words: number): string;
  /** Sentences on lines of about a hundred characters. */
  paragraph(words: number): string;
  title(words: number): string;
}

const common =
  `the a of to and in is for on with that be as by it or from an are this when if must should can not use user
  system data request response service file test code error value state event order session token account
  page list item name type field key path rule check update create delete read write send store load return
  valid invalid empty new old first last each all any only before after without between under`.split(/\s+/);
const domain =
  `authentication authorization payment checkout inventory shipping catalog search invoice refund customer
  profile password reset notification email webhook queue worker schedule retry timeout cache database schema
  migration endpoint pagination filter sort export import report dashboard metric audit permission role tenant
  locale translation currency discount voucher basket stock supplier warehouse return label tracking parser
  adapter registry index cursor snapshot replica backup encryption certificate rotation rate limit quota throttle
  upload download attachment preview thumbnail editor draft review approval workflow comment mention reaction
  subscription plan renewal trial cancellation receipt ledger balance transfer settlement reconciliation`.split(/\s+/);
const syllables =
  "con ter pro cess da tion ver ser re quest im port val id ate sys tem log ger hand ler fac to ry man age buf fer stream par ti al map per".split(" ");

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
  const rare: string[] = [];
  for (let index = 0; index < 6000; index += 1) {
    let word = "";
    for (let part = 0; part < 2 + below(3); part += 1) word += pick(syllables);
    rare.push(word);
  }
  // Roughly as in English prose: half of the words are very common, few are rare.
  const word = (): string => {
    const roll = next();
    if (roll < 0.55) return common[Math.floor(next() ** 2 * common.length)] as string;
    if (roll < 0.85) return pick(domain);
    return rare[Math.floor(next() ** 2 * rare.length)] as string;
  };
  const words = (count: number): string => Array.from({ length: count }, word).join(" ");
  const capital = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);
  return {
    below,
    chance: (probability) => next() < probability,
    pick,
    word,
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
    title: (count) => capital(Array.from({ length: count }, () => (next() < 0.7 ? pick(domain) : word())).join(" ")),
  };
}

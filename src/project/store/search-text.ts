import { crc32 } from "node:zlib";

/** Scripts that are written without spaces: Han, kana, Hangul syllables, Thai, Lao, Khmer, Myanmar. */
const unspaced =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}ー々]+/gu;
const mayHoldUnspaced =
  /[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005\u3041-\ud7a3\uf900-\ufaff\ud840-\ud8ff]/;

/**
 * A text as the full-text index takes it. Runs of a script without spaces become overlapping pairs
 * of characters, then the last one alone: 認証画面 → 認証 証画 画面 面. So any part of a run is found
 * by the pairs of its characters, and a single character by its prefix.
 */
export function toSearchText(text: string): string {
  if (!mayHoldUnspaced.test(text)) return text;
  return text.replace(unspaced, (run) => {
    const characters = [...run];
    return ` ${characters.map((character, index) => character + (characters[index + 1] ?? "")).join(" ")} `;
  });
}

/** A word that stands for exactly one tag, so that a filter needs no look at the blocks. */
export function tagMark(tag: string): string {
  return `t${crc32(tag).toString(36)}`;
}

/** What `unicode61` takes for a part of a word: letters, digits, and characters of private use. */
const words = /[\p{L}\p{M}\p{N}\p{Co}]+/gu;

/**
 * The phrases of a search, as terms of an FTS5 query that must all match; empty when it has no word.
 *
 * Every word is quoted, so that nothing a user types is syntax. What is joined by punctuation
 * (`user_id`, `a.ts`) stays a phrase.
 */
export function toSearchTerms(query: string): string[] {
  const terms: string[] = [];
  for (const chunk of query.split(/\s+/)) {
    let spaced = "";
    let from = 0;
    for (const run of chunk.matchAll(unspaced)) {
      const characters = [...run[0]];
      if (characters.length === 1) terms.push(`"${run[0]}"*`);
      for (let index = 0; index + 1 < characters.length; index += 1) {
        terms.push(`"${characters[index]}${characters[index + 1]}"`);
      }
      spaced += `${chunk.slice(from, run.index)} `;
      from = run.index + run[0].length;
    }
    for (const part of (spaced + chunk.slice(from)).split(" ")) {
      const phrase = part.match(words)?.join(" ");
      if (phrase !== undefined) terms.push(`"${phrase}"`);
    }
  }
  return terms;
}

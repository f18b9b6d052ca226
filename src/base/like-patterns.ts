/**
 * The patterns of SQL's LIKE, with `\` as its escape character, for texts that contain these words in upper or lower case.
 * Databases compare only ASCII letters in any case, so a text with other letters becomes several patterns.
 */
export function likePatterns(words: string): readonly string[] {
  const first = String.fromCodePoint(words.codePointAt(0) ?? 0);
  const lower = words.toLowerCase();
  const capital = first.toUpperCase() + lower.slice(first.length);
  const isAscii = /^[\0-\x7f]*$/.test(words);
  const spellings = isAscii ? [words] : new Set([words, lower, words.toUpperCase(), capital]);
  return [...spellings].map((text) => `%${text.replace(/[\\%_]/g, "\\$&")}%`);
}

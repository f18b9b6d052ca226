/**
 * Whether a text has at most `max` code points, the characters that `maxLength` of JSON Schema counts: an emoji
 * counts as one.
 */
export function hasAtMostCodePoints(text: string, max: number): boolean {
  return text.length <= max || (text.length <= 2 * max && codePointsIn(text) <= max);
}

export function codePointsIn(text: string): number {
  let count = 0;
  for (const _ of text) count += 1;
  return count;
}

/**
 * Estimates the tokens of a text: a quarter of its characters, and one for each character of a script without an
 * alphabet.
 */
export function textTokens(text: string): number {
  let wide = 0;
  // Chinese, Japanese, Korean and similar scripts begin at U+2E80.
  for (let index = 0; index < text.length; index += 1) if (text.charCodeAt(index) >= 0x2e80) wide += 1;
  return Math.ceil((text.length - wide) / 4) + wide;
}

/**
 * A rough count of a text's tokens: a quarter of its characters, a whole token for each character of
 * scripts that are not written with an alphabet.
 */
export function textTokens(text: string): number {
  let wide = 0;
  // From U+2E80 on: CJK, Hangul and their like.
  for (let index = 0; index < text.length; index += 1) if (text.charCodeAt(index) >= 0x2e80) wide += 1;
  return Math.ceil((text.length - wide) / 4) + wide;
}

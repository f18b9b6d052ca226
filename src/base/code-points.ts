/**
 * Whether a text has at most so many characters as JSON Schema counts them (`maxLength`): code points,
 * so that an emoji is one and not two.
 */
export function hasAtMostCodePoints(text: string, max: number): boolean {
  return text.length <= max || (text.length <= 2 * max && codePointsIn(text) <= max);
}

export function codePointsIn(text: string): number {
  let count = 0;
  for (const _ of text) count += 1;
  return count;
}

/** What the model sees of one result, in characters, where nothing else is said. */
export const defaultMaxResultChars = 50_000;

/**
 * A text of at most `limit` characters and a line that says what was cut. The beginning and the end of an
 * output say most; the middle is what one can do without.
 */
export function cutText(text: string, limit: number = defaultMaxResultChars): string {
  // Half of a surrogate pair, from a tool or from a cut, is what providers refuse to read.
  if (text.length <= limit) return text.toWellFormed();
  const head = Math.ceil(limit * 0.7);
  const tail = limit - head;
  const dropped = text.length - limit;
  const rest = tail > 0 ? text.slice(-tail) : "";
  return `${text.slice(0, head)}\n[… ${dropped} characters cut …]\n${rest}`.toWellFormed();
}

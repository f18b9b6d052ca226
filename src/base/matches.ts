/**
 * All matches of a global pattern. `text.matchAll` makes a copy of the pattern for each text, which takes longer than the search of a
 * short text. The matches of a long text come one by one: a caller with a limit does not wait for the others. Throws for a pattern
 * that matches an empty text, which would never end.
 */
export function matchesOf(pattern: RegExp, text: string): Iterable<RegExpExecArray> {
  if (text.length > longText) return text.matchAll(pattern);
  const matches: RegExpExecArray[] = [];
  pattern.lastIndex = 0;
  for (let match = pattern.exec(text); match !== null; match = pattern.exec(text)) {
    if (match[0] === "") throw new Error("The pattern matches an empty text.");
    matches.push(match);
  }
  return matches;
}

/** In characters. */
const longText = 4_000;

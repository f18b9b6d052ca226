/**
 * All matches of a global pattern. `text.matchAll` makes a copy of the pattern for each text, which takes longer than the search of a
 * short text. Throws for a pattern that matches an empty text, which would never end.
 */
export function matchesOf(pattern: RegExp, text: string): RegExpExecArray[] {
  const matches: RegExpExecArray[] = [];
  pattern.lastIndex = 0;
  for (let match = pattern.exec(text); match !== null; match = pattern.exec(text)) {
    if (match[0] === "") throw new Error("The pattern matches an empty text.");
    matches.push(match);
  }
  return matches;
}

/** Said after a text that was cut, with the tool that gives all of it. */
export function cutMark(cut: number | undefined, tool: string): string {
  return cut === undefined ? "" : `\n[cut: ${cut.toLocaleString("en")} more characters; ${tool} gives them]`;
}

/** Said at the end of an answer that does not hold everything. */
export function nextPageMark(cursor: string | undefined): string {
  return cursor === undefined ? "" : `\n\n[cut: there is more; call again with cursor "${cursor}"]`;
}

/** A place in a file, as editors and terminals understand it. */
export function placeOf(path: string, line: number | undefined): string {
  return line === undefined ? path : `${path}:${line}`;
}

/** The beginning of a text on one line, for a list. */
export function excerptOf(text: string, max: number): string {
  const line = text
    .slice(0, 4 * max)
    .replace(/\s+/g, " ")
    .trim();
  return line.length <= max ? line : `${line.slice(0, max - 1).replace(/[\ud800-\udbff]$/, "")}…`;
}

/** Whether a line is blank as Markdown has it: other white space is text. */
export function isBlankLine(text: string): boolean {
  return /^[ \t]*$/.test(text);
}

/** How many columns the white space at the start of a line takes; a tab goes to the next multiple of 4. */
export function columnsBefore(text: string): number {
  let columns = 0;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === 32) columns += 1;
    else if (code === 9) columns += 4 - (columns % 4);
    else break;
  }
  return columns;
}

/** A line without at most `width` columns of the white space at its start. */
export function withoutColumns(text: string, width: number): string {
  let columns = 0;
  let at = 0;
  for (; columns < width && at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code !== 32 && code !== 9) break;
    columns += code === 32 ? 1 : 4 - (columns % 4);
  }
  return text.slice(at);
}

/** The offsets of each line's first character, and of its end without the line terminator. */
export interface LineOffsets {
  readonly starts: number[];
  readonly ends: number[];
}

/** Splits a text into lines at LF, CRLF and CR; offsets are those of the text as given. */
export function splitLines(text: string): LineOffsets {
  const offsets: LineOffsets = { starts: [], ends: [] };
  const start = text.includes("\r") ? splitAtAny(text, offsets) : splitAtLineFeeds(text, offsets);
  if (start < text.length) {
    offsets.starts.push(start);
    offsets.ends.push(text.length);
  }
  return offsets;
}

function splitAtLineFeeds(text: string, { starts, ends }: LineOffsets): number {
  let start = 0;
  for (let end = text.indexOf("\n"); end !== -1; end = text.indexOf("\n", start)) {
    starts.push(start);
    ends.push(end);
    start = end + 1;
  }
  return start;
}

function splitAtAny(text: string, { starts, ends }: LineOffsets): number {
  let start = 0;
  for (const match of text.matchAll(/\r\n|\n|\r/g)) {
    starts.push(start);
    ends.push(match.index);
    start = match.index + match[0].length;
  }
  return start;
}

// The scanner reads lines by character code between two offsets, without copying them.

const tab = 9;
const space = 32;

export function isSpace(code: number): boolean {
  return code === space || code === tab;
}

/** The offset of the first character that is not a space or tab; `end` if there is none. */
export function firstInk(text: string, from: number, end: number): number {
  let at = from;
  while (at < end && isSpace(text.charCodeAt(at))) at += 1;
  return at;
}

/** The length of the run of one character that starts at an offset. */
export function runLength(text: string, from: number, end: number): number {
  const code = text.charCodeAt(from);
  let at = from;
  while (at < end && text.charCodeAt(at) === code) at += 1;
  return at - from;
}

/** Whether the text between two offsets is blank. */
export function isBlank(text: string, from: number, end: number): boolean {
  return text.slice(from, end).trim() === "";
}

/** Whether a line is blank in Markdown: white space other than spaces and tabs is text. */
export function isBlankLine(text: string): boolean {
  return /^[ \t]*$/.test(text);
}

/** The width of the white space at the start of a line, in columns; a tab advances to the next multiple of 4. */
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

/** Removes up to `width` columns of white space at the start of a line. */
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

/** Splits at commas, but not inside `{ts,tsx}`. */
export function splitOutsideBraces(text: string): string[] {
  const parts: string[] = [];
  let depth = 0;
  let start = 0;
  for (let index = 0; index < text.length; index += 1) {
    const character = text[index];
    if (character === "{") depth += 1;
    else if (character === "}") depth = Math.max(0, depth - 1);
    else if (character === "," && depth === 0) {
      parts.push(text.slice(start, index));
      start = index + 1;
    }
  }
  parts.push(text.slice(start));
  return parts;
}

/** The offsets of each line's first character, and of its end without the line terminator. */
interface LineOffsets {
  readonly starts: number[];
  readonly ends: number[];
}

/** Splits a text into lines at LF, CRLF and CR; offsets are positions in `text`. */
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

/** A code span of a line: the offsets of its content, between the backtick runs. */
export interface CodeSpan {
  readonly from: number;
  readonly to: number;
}

/** Code spans after CommonMark 0.31.2, section 6.1: a run of backticks closes with an equal run. */
export function codeSpans(line: string): CodeSpan[] {
  const runs = backtickRuns(line);
  const first = runs[0]?.length;
  const isUniform = runs.every((run) => run.length === first);
  const spans: CodeSpan[] = [];
  // If all runs have the same length, as on most lines, each run closes with the next.
  const closers = isUniform ? undefined : closersOf(runs);
  for (let index = 0; index < runs.length; index += 1) {
    const close = closers === undefined ? index + 1 : (closers[index] ?? runs.length);
    const opener = runs[index];
    const closer = runs[close];
    if (opener === undefined || closer === undefined) continue;
    spans.push({ from: opener.at + opener.length, to: closer.at });
    index = close;
  }
  return spans;
}

interface Run {
  readonly at: number;
  readonly length: number;
}

function backtickRuns(line: string): Run[] {
  const runs: Run[] = [];
  for (let at = line.indexOf("`"); at !== -1; ) {
    let end = at + 1;
    while (line.charCodeAt(end) === 96) end += 1;
    runs.push({ at, length: end - at });
    at = line.indexOf("`", end);
  }
  return runs;
}

/** Per run the next one of the same length, found from the right, so that unmatched runs stay linear. */
function closersOf(runs: readonly Run[]): (number | undefined)[] {
  const closers: (number | undefined)[] = new Array(runs.length);
  const nextOfLength = new Map<number, number>();
  for (let index = runs.length - 1; index >= 0; index -= 1) {
    const length = runs[index]?.length ?? 0;
    closers[index] = nextOfLength.get(length);
    nextOfLength.set(length, index);
  }
  return closers;
}

import { columnsBefore, isBlankLine, withoutColumns } from "./characters.ts";
import { type Heading, lineKinds, lineText, type MarkdownScan, textOfLines } from "./scan-markdown.ts";

/** A heading above other headings. */
export interface SegmentParent {
  readonly level: number;
  readonly title: string;
}

/**
 * A stretch of a text between two headings of the chosen levels. Segments do not overlap, and
 * together they hold every line: each section without its subsections.
 */
export interface Segment {
  /** Absent for the text before the first heading. */
  readonly heading?: Heading;
  /** The headings above it, outermost first. */
  readonly parents: readonly SegmentParent[];
  /** The heading's line, or the first line of text; the last line that is not blank. */
  readonly startLine: number;
  readonly endLine: number;
  /** First and last line of the body; `bodyStart > bodyEnd` if there is no body. */
  readonly bodyStart: number;
  readonly bodyEnd: number;
  /** The body with its own line ends, without blank lines at its start and end. */
  readonly body: string;
  /** Whether the body holds more than blank lines and comments. */
  readonly hasContent: boolean;
  /** Whether another segment is directly below this one. */
  readonly hasChildren: boolean;
}

/** Cuts a text at its headings of level 1 to `maxLevel`. Linear in the text. */
export function segmentsOf(scan: MarkdownScan, maxLevel: number): Segment[] {
  const headings = scan.headings.filter((heading) => heading.level <= maxLevel);
  const segments: Segment[] = [];
  const beforeFirst = (headings[0]?.line ?? scan.lineCount + 1) - 1;
  if (hasContent(scan, scan.bodyLine, beforeFirst)) {
    const { from, to } = withoutBlankEdges(scan, scan.bodyLine, beforeFirst);
    const lines = { startLine: from, endLine: to, bodyStart: from, bodyEnd: to };
    segments.push({
      parents: [],
      ...lines,
      body: textOfLines(scan, from, to),
      hasContent: true,
      hasChildren: false,
    });
  }
  const open: SegmentParent[] = [];
  for (const [index, heading] of headings.entries()) {
    const next = headings[index + 1];
    const { from, to } = withoutBlankEdges(
      scan,
      heading.end_line + 1,
      (next?.line ?? scan.lineCount + 1) - 1,
    );
    while ((open.at(-1)?.level ?? 0) >= heading.level) open.pop();
    segments.push({
      heading,
      parents: [...open],
      startLine: heading.line,
      endLine: Math.max(to, heading.end_line),
      bodyStart: from,
      bodyEnd: to,
      body: textOfLines(scan, from, to),
      hasContent: hasContent(scan, from, to),
      hasChildren: next !== undefined && next.level > heading.level,
    });
    open.push({ level: heading.level, title: heading.title });
  }
  return segments;
}

function hasContent(scan: MarkdownScan, from: number, to: number): boolean {
  for (let line = from; line <= to; line += 1) {
    if (scan.kinds[line - 1] !== lineKinds.comment && lineText(scan, line).trim() !== "") return true;
  }
  return false;
}

/** A section to write: what `segmentsOf` reads back as the same heading, parents and body. */
export interface WritableSegment {
  /** Absent for text before the first heading. */
  readonly title?: string;
  /** 1 to 6; 0 without a title. */
  readonly level: number;
  readonly parents: readonly SegmentParent[];
  readonly body: string;
}

/**
 * Renders sections as Markdown, in order. A parent without a section of its own becomes a heading without text, so that reading
 * the text returns the same parents.
 *
 * With `titleIsBody`, a section whose text is its title is a bare heading. For formats where the content of a heading without
 * text is its title.
 */
export function writeSegments(
  segments: readonly WritableSegment[],
  options: { readonly titleIsBody?: boolean } = {},
): string {
  const parts: string[] = [];
  const open: SegmentParent[] = [];
  for (const [index, { title, level, parents, body }] of segments.entries()) {
    if (title !== undefined) {
      for (const heading of headingsToOpen(open, parents, level)) {
        parts.push(headingLine(heading.title, heading.level));
        open.push(heading);
      }
      parts.push(headingLine(title, level));
      open.push({ title, level });
    }
    const isLeaf = (segments[index + 1]?.level ?? 0) <= level;
    if (body !== "" && !(options.titleIsBody === true && isLeaf && body === title)) parts.push(body);
  }
  return parts.length === 0 ? "" : `${parts.join("\n\n")}\n`;
}

/** Closes the parents that do not contain a section of this level, and returns the parents to open. */
function headingsToOpen(
  open: SegmentParent[],
  parents: readonly SegmentParent[],
  level: number,
): readonly SegmentParent[] {
  let shared = 0;
  while (shared < open.length && isSame(open[shared], parents[shared])) shared += 1;
  // Only a heading of the same or a higher level closes an open heading: if the next heading is deeper, the parent that it shares
  // with the previous section is written again.
  const next = parents[shared]?.level ?? level;
  if (shared > 0 && next > (open[shared]?.level ?? 6)) shared -= 1;
  open.length = shared;
  return parents.slice(shared);
}

function isSame(one: SegmentParent | undefined, other: SegmentParent | undefined): boolean {
  return one?.title === other?.title && one?.level === other?.level;
}

/** An ATX heading; a title that ends in `#` is closed, because the marks would be taken for the closing. */
export function headingLine(title: string, level: number): string {
  const marks = "#".repeat(Math.min(6, Math.max(1, level)));
  return /(?:^|\s)#+$/.test(title) ? `${marks} ${title} ${marks}` : `${marks} ${title}`;
}

/** A heading and all that belongs to it, up to the next heading of the same or a higher level. */
export interface Section {
  readonly heading: Heading;
  /** First line after the heading, and the last line of the section (1-based, inclusive). */
  readonly bodyLine: number;
  readonly endLine: number;
  /** The body with its own line ends, without blank lines at its start and end. */
  readonly body: string;
}

/**
 * The sections whose heading passes `accepts`; a section may contain others. Linear in the text.
 *
 * @example
 * ```ts
 * import { scanMarkdown, sectionsOf } from "kit/specs";
 *
 * const scan = scanMarkdown("# Returns\n\n## Refunds\n\nWithin 30 days.\n");
 * console.log(sectionsOf(scan, ({ level }) => level === 2).map(({ body }) => body)); // ["Within 30 days."]
 * ```
 */
export function sectionsOf(scan: MarkdownScan, accepts: (heading: Heading) => boolean): Section[] {
  const sections: Section[] = [];
  // Per level, the line before the next heading that closes it, seen from the end of the text.
  const closes: number[] = new Array(7).fill(scan.lineCount);
  for (let index = scan.headings.length - 1; index >= 0; index -= 1) {
    const heading = scan.headings[index];
    if (heading === undefined) continue;
    const endLine = closes[heading.level] ?? scan.lineCount;
    if (accepts(heading)) sections.push(toSection(scan, heading, endLine));
    closes.fill(heading.line - 1, heading.level);
  }
  return sections.reverse();
}

/** The headings that start on lines `from` to `to`, found by bisection. */
export function headingsBetween(scan: MarkdownScan, from: number, to: number): Heading[] {
  const { headings } = scan;
  let low = 0;
  let high = headings.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((headings[middle]?.line ?? 0) < from) low = middle + 1;
    else high = middle;
  }
  let end = low;
  while (end < headings.length && (headings[end]?.line ?? 0) <= to) end += 1;
  return headings.slice(low, end);
}

/** Narrows a range of lines to the part between its first and last line that are not blank. */
export function withoutBlankEdges(
  scan: MarkdownScan,
  from: number,
  to: number,
): { from: number; to: number } {
  let first = from;
  let last = to;
  while (first <= last && isBlankLine(lineText(scan, first))) first += 1;
  while (last >= first && isBlankLine(lineText(scan, last))) last -= 1;
  return { from: first, to: last };
}

function toSection(scan: MarkdownScan, heading: Heading, endLine: number): Section {
  const bodyLine = heading.end_line + 1;
  const trimmed = withoutBlankEdges(scan, bodyLine, endLine);
  return { heading, bodyLine, endLine, body: textOfLines(scan, trimmed.from, trimmed.to) };
}

/** A list marker with the white space around it: bullets and numbers. */
export const listMarker: RegExp = /^[ \t]*(?:[-*+]|(\d{1,9})[.)])(?:[ \t]+|$)/;

/**
 * The last line of the list item that starts on `line`, at most `limit`: with its paragraphs, nested lists and code, without the
 * blank lines after it. Linear in the lines of the item.
 */
export function listItemEnd(scan: MarkdownScan, line: number, limit: number): number {
  const indent = columnsBefore(lineText(scan, line));
  let end = line;
  for (let at = line + 1; at <= limit; at += 1) {
    const text = lineText(scan, at);
    const kind = scan.kinds[at - 1];
    if (kind === lineKinds.prose && isBlankLine(text)) continue;
    const followsGap = at > end + 1;
    const isNested = columnsBefore(text) >= indent + 2;
    if (kind !== lineKinds.prose) {
      if (followsGap && !isNested) return end;
      while (at < limit && scan.kinds[at] === kind) at += 1;
    } else if (!isNested && (followsGap || listMarker.test(text) || cannotContinue(text))) {
      return end;
    }
    end = at;
  }
  return end;
}

/**
 * The text of a list item from line `from` to `to`, without its marker and indent, joined by line feeds. `toListItem` is the
 * reverse.
 */
export function listItemText(scan: MarkdownScan, from: number, to: number): string {
  const first = lineText(scan, from);
  const marker = listMarker.exec(first)?.[0] ?? "";
  const lines = [first.slice(marker.length)];
  const width = columnsBefore(first) + markerWidth(marker);
  for (let line = from + 1; line <= to; line += 1) {
    const text = lineText(scan, line);
    lines.push(isBlankLine(text) ? "" : withoutColumns(text, width));
  }
  return lines.join("\n").trim();
}

/** The columns from the marker of an item to its text; one space after a marker without text. */
export function markerWidth(marker: string): number {
  return Math.max(marker.trimStart().length, marker.trim().length + 1);
}

/** Lines that would make headings less than four columns from the margin, and HTML that ends there. */
const headings = /\n[ \t]*[=\-#]/;
const html = /(?:^|\n) {0,3}</;

/**
 * Renders a text as a list item: its first line after the marker, the other lines indented as far. Code and HTML start on the
 * line below the marker, because after the marker they would be text.
 */
export function toListItem(marker: string, text: string): string {
  const [first = "", ...rest] = text.split("\n");
  if (/^(?:```|~~~|<)/.test(first)) return [marker, ...indented([first, ...rest], 2)].join("\n");
  const width = headings.test(text) && !html.test(text) ? 4 : 2;
  return [`${marker.padEnd(width - 1)} ${first}`, ...indented(rest, width)].join("\n");
}

function indented(lines: readonly string[], width: number): string[] {
  return lines.map((line) => (line === "" ? "" : `${" ".repeat(width)}${line}`));
}

function cannotContinue(text: string): boolean {
  return /^[ \t]*(?:#{1,6}(?:[ \t]|$)|(?:-[ \t]*){3,}$|(?:\*[ \t]*){3,}$|(?:_[ \t]*){3,}$)/.test(text);
}

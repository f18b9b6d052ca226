import { isBlankLine } from "./characters.ts";
import { type Heading, lineText, type MarkdownScan, textOfLines } from "./scan-markdown.ts";

/** A heading and all that belongs to it, up to the next heading of the same or a higher level. */
export interface Section {
  readonly heading: Heading;
  /** First line behind the heading, and the last line of the section (1-based, inclusive). */
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

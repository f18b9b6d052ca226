import { type Heading, lineKinds, lineText, type MarkdownScan, textOfLines } from "./scan-markdown.ts";
import { withoutBlankEdges } from "./sections.ts";

/** A heading that others lie under. */
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
  /** The headings it lies under, outermost first. */
  readonly parents: readonly SegmentParent[];
  /** The heading's line, or the first line of text; the last line that is not blank. */
  readonly startLine: number;
  readonly endLine: number;
  /** First and last line of the body; `bodyStart > bodyEnd` when there is none. */
  readonly bodyStart: number;
  readonly bodyEnd: number;
  /** The body with its own line ends, without blank lines at its start and end. */
  readonly body: string;
  /** Whether the body holds more than blank lines and comments. */
  readonly says: boolean;
  /** Whether another segment lies directly below this one. */
  readonly hasChildren: boolean;
}

/** Cuts a text at its headings of level 1 to `maxLevel`. Linear in the text. */
export function segmentsOf(scan: MarkdownScan, maxLevel: number): Segment[] {
  const headings = scan.headings.filter((heading) => heading.level <= maxLevel);
  const segments: Segment[] = [];
  const beforeFirst = (headings[0]?.line ?? scan.lineCount + 1) - 1;
  if (says(scan, scan.bodyLine, beforeFirst)) {
    const { from, to } = withoutBlankEdges(scan, scan.bodyLine, beforeFirst);
    const lines = { startLine: from, endLine: to, bodyStart: from, bodyEnd: to };
    segments.push({
      parents: [],
      ...lines,
      body: textOfLines(scan, from, to),
      says: true,
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
      says: says(scan, from, to),
      hasChildren: next !== undefined && next.level > heading.level,
    });
    open.push({ level: heading.level, title: heading.title });
  }
  return segments;
}

function says(scan: MarkdownScan, from: number, to: number): boolean {
  for (let line = from; line <= to; line += 1) {
    if (scan.kinds[line - 1] !== lineKinds.comment && lineText(scan, line).trim() !== "") return true;
  }
  return false;
}

import type { MarkdownScan } from "../../markdown/scan-markdown.ts";
import { textOfLines } from "../../markdown/scan-markdown.ts";
import { withoutBlankEdges } from "../../markdown/sections.ts";
import { type Segment, type SegmentParent, segmentsOf } from "../../markdown/segments.ts";

/** A part of a Tessl file, without overlap: a capability, or other text. */
export interface SpecPart {
  readonly isCapability: boolean;
  /** Absent for text before the first heading. */
  readonly title?: string;
  readonly level: number;
  readonly parents: readonly SegmentParent[];
  readonly from: number;
  readonly bodyFrom: number;
  readonly to: number;
  readonly body: string;
}

const capabilities = /^capabilities$/i;
/** Sections of Tessl's template that describe no capability. */
const otherSections =
  /^(?:targets?|api|dependencies|overview|introduction|usage|installation|examples?|notes)$/i;

function isListTitle(heading: SegmentParent | undefined): boolean {
  return heading?.level === 2 && capabilities.test(heading.title);
}

/**
 * The parts of a Tessl file, in order: third-level sections below `## Capabilities`, and otherwise
 * second-level sections, those of the template's own names apart. A file without either is one
 * capability.
 */
export function specParts(scan: MarkdownScan): SpecPart[] {
  const segments = segmentsOf(scan, 3);
  const hasList = segments.some(
    ({ heading, says, hasChildren }) => isListTitle(heading) && (says || hasChildren),
  );
  const parts: SpecPart[] = [];
  for (let index = 0; index < segments.length; index += 1) {
    const segment = segments[index];
    if (segment === undefined) continue;
    const { heading, parents } = segment;
    const isInList = heading?.level === 3 && isListTitle(parents.at(-1));
    const isList = isListTitle(heading);
    let last = index;
    // Sections keep their subsections; only the list of capabilities is taken apart.
    if (heading?.level === 2 && !isList) while (segments[last + 1]?.heading?.level === 3) last += 1;
    const isSection = heading?.level === 2 && !isList && !hasList && !otherSections.test(heading.title);
    const part = toPart(scan, { segment, end: segments[last] ?? segment });
    index = last;
    // A heading of other headings says nothing; one that stands alone says what it says.
    if (part.body === "" && (segment.hasChildren || !(isInList || isSection))) continue;
    parts.push({ ...part, isCapability: isInList || isList || isSection });
  }
  return parts.some(({ level }) => level > 1)
    ? parts
    : parts.map((part) => ({ ...part, isCapability: true }));
}

function toPart(
  scan: MarkdownScan,
  lines: { segment: Segment; end: Segment },
): Omit<SpecPart, "isCapability"> {
  const { segment, end } = lines;
  const { heading, parents, startLine } = segment;
  const bodyStart = heading === undefined ? startLine : heading.end_line + 1;
  const { from, to } = withoutBlankEdges(scan, bodyStart, end.endLine);
  const body = textOfLines(scan, from, to);
  return {
    ...(heading !== undefined && { title: heading.title || "Untitled" }),
    level: heading?.level ?? 0,
    parents,
    from: startLine,
    bodyFrom: from,
    to: Math.max(to, heading?.end_line ?? to),
    body: body.trim() === "" ? "" : body,
  };
}

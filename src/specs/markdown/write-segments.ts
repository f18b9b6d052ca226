import type { SegmentParent } from "./segments.ts";

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
 * Renders sections as Markdown, in order. A parent that no section before has opened becomes a
 * heading without text, so that the sections below read back with the same parents.
 *
 * With `titleIsBody`, a section whose text is its title is a bare heading. That is for
 * formats where a heading with nothing below it is its own content.
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

/** Closes what a section of this level does not lie in, and returns the parents that are not open. */
function headingsToOpen(
  open: SegmentParent[],
  parents: readonly SegmentParent[],
  level: number,
): readonly SegmentParent[] {
  let shared = 0;
  while (shared < open.length && isSame(open[shared], parents[shared])) shared += 1;
  // Only a heading of its level or above closes what is open: where the next one lies deeper, the
  // parent it shares with its predecessor is opened once more.
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

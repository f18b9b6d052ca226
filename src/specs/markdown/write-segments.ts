/** A section to write: what `segmentsOf` reads back as the same heading, parents and body. */
export interface WritableSegment {
  /** Absent for text before the first heading. */
  readonly title?: string;
  /** 1 to 6. */
  readonly level: number;
  readonly parents: readonly string[];
  readonly body: string;
}

/**
 * Renders sections as Markdown, in order. A parent that no section before has opened becomes a
 * heading without text, so that the sections below read back with the same parents.
 */
export function writeSegments(segments: readonly WritableSegment[]): string {
  const parts: string[] = [];
  const open: { title: string; level: number }[] = [];
  for (const { title, level, parents, body } of segments) {
    if (title !== undefined) {
      while ((open.at(-1)?.level ?? 0) >= level) open.pop();
      let shared = 0;
      while (shared < open.length && open[shared]?.title === parents[shared]) shared += 1;
      open.length = shared;
      for (const [index, parent] of parents.entries()) {
        if (index < shared) continue;
        // Each parent lies above the ones that follow, and all of them above the section.
        const parentLevel = Math.max((open.at(-1)?.level ?? 0) + 1, level - (parents.length - index));
        open.push({ title: parent, level: parentLevel });
        parts.push(headingLine(parent, parentLevel));
      }
      open.push({ title, level });
      parts.push(headingLine(title, level));
    }
    if (body !== "") parts.push(body);
  }
  return parts.length === 0 ? "" : `${parts.join("\n\n")}\n`;
}

/** An ATX heading; a title that ends in `#` is closed, because the marks would be taken for the closing. */
export function headingLine(title: string, level: number): string {
  const marks = "#".repeat(Math.min(6, Math.max(1, level)));
  return /(?:^|\s)#+$/.test(title) ? `${marks} ${title} ${marks}` : `${marks} ${title}`;
}

import type { GuidelineDraft } from "./adapter.ts";

/** A guideline as the index keeps it: the draft, its id, and where it lies. */
export interface GuidelineRecord extends GuidelineDraft {
  readonly id: string;
  /** POSIX, relative to the project root. */
  readonly source_file: string;
  /** Zero-based, in the order of the file. */
  readonly position: number;
}

/** The order of every list: by file, then by position. */
export function compareRecords(
  a: Pick<GuidelineRecord, "source_file" | "position">,
  b: Pick<GuidelineRecord, "source_file" | "position">,
): number {
  if (a.source_file !== b.source_file) return a.source_file < b.source_file ? -1 : 1;
  return a.position - b.position;
}

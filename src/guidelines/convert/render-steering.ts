import type { GuidelineRecord } from "../guideline-record.ts";
import { toFrontMatter } from "../yaml-value.ts";
import { headingLine } from "./render-section.ts";

/**
 * The front matter of a steering file: the pattern, one as text and several as a list, as Kiro reads
 * them; without a pattern the file is always included.
 *
 * @see docs/guidelines.md
 */
export function steeringFrontMatter(
  record: Pick<GuidelineRecord, "globs">,
): Record<string, string | readonly string[]> {
  const [only] = record.globs;
  if (only === undefined) return { inclusion: "always" };
  return { inclusion: "fileMatch", fileMatchPattern: record.globs.length === 1 ? only : record.globs };
}

/** A file that is one guideline: front matter, the title as its heading, the content. */
export function renderWholeFile(
  record: Pick<GuidelineRecord, "title" | "content">,
  frontMatter: Readonly<Record<string, string | boolean | readonly string[]>>,
): string {
  const block = Object.keys(frontMatter).length === 0 ? "" : `${toFrontMatter(frontMatter)}\n`;
  const body = record.content === "" ? "" : `\n${record.content}\n`;
  return `${block}${headingLine(1, record.title)}\n${body}`;
}

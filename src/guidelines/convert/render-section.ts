import { scanMarkdown } from "../../specs/markdown/scan-markdown.ts";
import { parseSectionedFile } from "../adapters/whole-file.ts";
import { filePatternOf, type GuidelineRecord } from "../guideline-record.ts";
import { toPatternLine } from "../match/guideline-matcher.ts";
import { embedContent, embeddedMark, toFrontMatter } from "./embedded-content.ts";

type Renderable = Pick<GuidelineRecord, "title" | "content" | "globs">;

/**
 * A guideline as a second-level section, without a line end at its end. Read back, it has the same
 * title, content and `file_pattern`: content that would end the section early is sealed.
 */
export function renderSection(record: Renderable): string {
  const open = sectionWith(record, record.content);
  // A seal inside the content would close with that of a later section.
  const isOpen = !record.content.includes(embeddedMark) && readsBack(record, open);
  return isOpen ? open : sectionWith(record, embedContent(record.content));
}

/** A heading line whose title reads back: closing marks are closed again. */
export function headingLine(level: number, title: string): string {
  const text = title.replace(/[\r\n]+/g, " ").trim();
  const marks = "#".repeat(level);
  return text.endsWith("#") ? `${marks} ${text} ${marks}` : `${marks} ${text}`;
}

function sectionWith(record: Renderable, content: string): string {
  const pattern = filePatternOf(record);
  const parts = [headingLine(2, record.title)];
  if (pattern !== undefined) parts.push(toPatternLine(pattern));
  if (content !== "") parts.push(content);
  return parts.join("\n\n");
}

/** Parses it between other text: any other check would repeat the rules of the reader. */
function readsBack(record: Renderable, section: string): boolean {
  const text = `# Guidelines\n\n${section}\n\n## End\n`;
  const kind = { source_type: "agents", tool: "agents", scope: "", imports: "none" } as const;
  const { drafts } = parseSectionedFile({ path: "AGENTS.md", text }, kind);
  const [first, second] = drafts;
  return (
    drafts.length === 2 &&
    first !== undefined &&
    first.title === titleAsRead(record.title) &&
    first.content === record.content &&
    filePatternOf(first) === filePatternOf(record) &&
    second?.title === "End"
  );
}

function titleAsRead(title: string): string {
  return scanMarkdown(headingLine(2, title)).headings[0]?.title ?? "";
}

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

import { KitError } from "../../base/kit-error.ts";
import type { ConversionFormat, ConversionResult } from "../../protocol/guideline.ts";
import { splitLines } from "../../specs/markdown/characters.ts";
import { textOfLines } from "../../specs/markdown/scan-markdown.ts";
import { sectionsOf, withoutBlankEdges } from "../../specs/markdown/segments.ts";
import { cleanTitle, parseSectionedFile } from "../adapters/whole-file.ts";
import { filePatternOf, type GuidelineRecord } from "../guideline-record.ts";
import { isInside, managedLines, managedPartOf, scanShared } from "../kit-marks.ts";
import { conversionLosses } from "./conversion-losses.ts";
import {
  conversionFilename,
  conversionTargets,
  renderSection,
  renderWholeFile,
} from "./conversion-targets.ts";

export interface ConversionContext {
  /** The text of the source file, including its byte order mark. */
  readonly sourceText?: string;
}

/**
 * A guideline in another format. To the format it already has, the result is the source byte for byte, under its own file name:
 * the whole file (a `.mdc` file stays one), or the lines of the section. Nothing is guessed; `losses` lists what is left out.
 *
 * @example
 * ```ts
 * import { convertGuideline, readGuidelines } from "kit/guidelines";
 *
 * const { records } = readGuidelines({ path: "AGENTS.md", text: "# Rules\n\n## Style\n\nUse tabs.\n" });
 * for (const record of records) console.log(convertGuideline(record, "steering").filename);
 * ```
 */
export function convertGuideline(
  record: GuidelineRecord,
  format: ConversionFormat,
  context: ConversionContext = {},
): ConversionResult {
  const target = conversionTargets[format];
  if (record.source_type === format && context.sourceText !== undefined) {
    const filename = record.source_file.slice(record.source_file.lastIndexOf("/") + 1);
    const frontmatter = record.whole_file ? record.frontmatter : {};
    const content = sourceOf(record, context.sourceText);
    return { filename, source_id: record.id, content, frontmatter, losses: [] };
  }
  const result = { filename: conversionFilename(record, target), source_id: record.id };
  const losses = conversionLosses(record, format);
  if (target.kind === "section")
    return { ...result, content: `${renderSection(record)}\n`, frontmatter: {}, losses };
  const frontmatter = target.frontMatter(record);
  return { ...result, content: renderWholeFile(record, frontmatter), frontmatter, losses };
}

/** The text that a guideline was read from: the file, or its lines of it. */
export function sourceOf(record: Pick<GuidelineRecord, "whole_file" | "span">, sourceText: string): string {
  if (record.whole_file) return sourceText;
  const text = sourceText.startsWith("\ufeff") ? sourceText.slice(1) : sourceText;
  const { starts, ends } = splitLines(text);
  return text.slice(starts[record.span.start_line - 1] ?? 0, ends[record.span.end_line - 1] ?? text.length);
}

type Mergeable = Pick<GuidelineRecord, "title" | "content" | "globs">;

/**
 * Merges a guideline into a file as a section: replaces the first section with the same heading, or appends the section. Keeps
 * every other byte and the file's line ends.
 *
 * Throws `conflict` if a reader would not find the section, because the file leaves a code fence or a comment open.
 */
export function mergeSection(fileText: string, record: Mergeable): string {
  const mark = fileText.startsWith("\ufeff") ? "\ufeff" : "";
  const text = fileText.slice(mark.length);
  const lineEnd = lineEndOf(text);
  const section = withLineEnds(renderSection(record), lineEnd);
  const merged =
    replaceSection(text, section, { title: record.title, lineEnd }) ?? append(text, section, lineEnd);
  if (!holds(merged, record)) {
    throw new KitError({
      code: "conflict",
      message:
        "The file leaves a code fence, a comment or an HTML block open, so a section cannot be merged into it.",
      hint: "Close it in the file, and convert again.",
    });
  }
  return mark + merged;
}

/** The line end of a text: that of its first line. */
export function lineEndOf(text: string): string {
  return /\r\n|\n|\r/.exec(text)?.[0] ?? "\n";
}

export function withLineEnds(text: string, lineEnd: string): string {
  return text.replace(/\r\n|\n|\r/g, lineEnd);
}

function replaceSection(
  text: string,
  section: string,
  options: { readonly title: string; readonly lineEnd: string },
): string | undefined {
  const scan = scanShared(text);
  const wantedTitle = cleanTitle(options.title, "Untitled");
  const [found] = sectionsOf(
    scan,
    (heading) => heading.level === 2 && cleanTitle(heading.title, "Untitled") === wantedTitle,
  );
  const managed = managedPartOf(scan);
  if (found !== undefined && isInside(managed, found.heading.line)) throw managedSection(wantedTitle);
  if (found === undefined) return undefined;
  const mark = managedLines(scan).find((line) => line > found.heading.line) ?? Number.POSITIVE_INFINITY;
  const { from, to } = withoutBlankEdges(scan, found.heading.line, Math.min(found.endLine, mark - 1));
  const start = scan.starts[from - 1] ?? text.length;
  const end = scan.ends[to - 1] ?? text.length;
  const isTight = to < scan.lineCount && textOfLines(scan, to + 1, to + 1).trim() !== "";
  return text.slice(0, start) + section + (isTight ? options.lineEnd : "") + text.slice(end);
}

function managedSection(title: string): KitError {
  return new KitError({
    code: "conflict",
    message: `The section "${title}" of that file is written by "kit guidelines sync".`,
    hint: "Edit its source, which the comment above the section names.",
  });
}

function append(text: string, section: string, lineEnd: string): string {
  // Blanks at the end of the text would become part of the heading's line.
  if (text.trim() === "") return text + (/[^\r\n]$/.test(text) ? lineEnd : "") + section + lineEnd;
  const ending = /(?:\r\n|\n|\r)?[ \t]*(?:\r\n|\n|\r)?$/.exec(text)?.[0] ?? "";
  const breaks = ending.match(/\r\n|\n|\r/g)?.length ?? 0;
  return text + lineEnd.repeat(2 - breaks) + section + lineEnd;
}

function holds(text: string, record: Mergeable): boolean {
  const kind = { source_type: "agents", tool: "agents", scope: "", imports: "none" } as const;
  const unified = (content: string): string => content.replace(/\r\n?/g, "\n");
  return parseSectionedFile({ path: "AGENTS.md", text }, kind).drafts.some(
    (draft) =>
      draft.title === cleanTitle(record.title, "Untitled") &&
      unified(draft.content) === unified(record.content) &&
      filePatternOf(draft) === filePatternOf(record),
  );
}

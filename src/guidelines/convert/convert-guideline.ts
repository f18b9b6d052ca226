import type { ConversionFormat, ConversionResult } from "../../protocol/guideline.ts";
import { splitLines } from "../../specs/markdown/characters.ts";
import type { GuidelineRecord } from "../guideline-record.ts";
import { conversionLosses } from "./conversion-losses.ts";
import { conversionFilename, conversionTargets } from "./conversion-targets.ts";
import { renderSection, renderWholeFile } from "./render-section.ts";

export interface ConversionContext {
  /** The source file as it lies on disk, its byte order mark included. */
  readonly sourceText?: string;
}

/**
 * A guideline in another format. To the format it already has, the result is the source byte for byte:
 * the whole file, or the lines of the section. Nothing is guessed; `losses` lists what is left out.
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
  const result = { filename: conversionFilename(record, target), source_id: record.id };
  if (record.source_type === format && context.sourceText !== undefined) {
    const frontmatter = target.kind === "file" && record.whole_file ? record.frontmatter : {};
    return { ...result, content: sourceOf(record, context.sourceText), frontmatter, losses: [] };
  }
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

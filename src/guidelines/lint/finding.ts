import type { Diagnostic, DiagnosticRule } from "../../protocol/diagnostic.ts";
import { type MarkdownScan, scanMarkdown } from "../../specs/markdown/scan-markdown.ts";
import type { GuidelineRecord } from "../guideline-record.ts";

/** The project around the guidelines that a check needs. */
export interface LintProject {
  /** Every file of the project that is not ignored. */
  readonly files: readonly string[];
  /** Whether a file or folder exists, also one that Git ignores. Default: whether `files` has it. */
  readonly hasPath?: ((path: string) => boolean) | undefined;
  /** The scan of a guideline file; undefined where its text is not known: findings then have no column. */
  readonly scanOf: (path: string) => MarkdownScan | undefined;
  /** Whether the findings about a guideline are asked for. */
  readonly isAsked: (record: GuidelineRecord) => boolean;
}

/** The message of a check about a guideline. */
interface Finding extends Pick<Diagnostic, "message" | "fix" | "other" | "field"> {
  readonly rule: DiagnosticRule;
  readonly code: string;
}

/** The place of a text: a line, and columns where the text is known. */
export type Place = Pick<Diagnostic, "line" | "column" | "end_column">;

/** A finding about a guideline, at its first line or at a place in it. */
export function warningAbout(
  record: GuidelineRecord,
  { fix, ...found }: Finding,
  place: Place = { line: record.span.start_line },
): Diagnostic {
  // A fix replaces a range, so it needs the columns.
  const mended = fix === undefined || place.column === undefined ? {} : { fix };
  return { severity: "warning", ...found, ...mended, path: record.source_file, id: record.id, ...place };
}

/** `"Title" in path:line`. */
export function nameAndPlace(record: GuidelineRecord): string {
  return `"${record.title}" in ${record.source_file}:${record.span.start_line}`;
}

/** The scans of guideline files; each file is read and scanned once. */
export function createScans(
  readText: ((path: string) => string | undefined) | undefined,
): LintProject["scanOf"] {
  const scans = new Map<string, MarkdownScan | undefined>();
  return (path) => {
    if (!scans.has(path)) {
      const text = readText?.(path);
      scans.set(path, text === undefined ? undefined : scanMarkdown(text.replace(/^\ufeff/, "")));
    }
    return scans.get(path);
  };
}

/** A text of a file for a message: short and without control characters. */
export function quoteText(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what must not reach a message
  return text.slice(0, 120).replace(/[\u0000-\u001f\u007f-\u009f]/g, " ");
}

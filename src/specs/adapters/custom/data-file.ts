import type { Diagnostic } from "../../../protocol/diagnostic.ts";
import type { ParsedSpecs, SpecDraft, SpecSource } from "../../adapter.ts";
import { atMost } from "../../data/at-most.ts";
import type { DataProblem, DataRecord } from "../../data/data-record.ts";
import { type DataFormat, readRecords } from "../../data/read-records.ts";
import { scanMarkdown } from "../../markdown/scan-markdown.ts";
import { mentionsIn } from "../../model/mentions.ts";
import { type CustomDefaults, recordDraft } from "./record-draft.ts";

/** The spec blocks that a JSON, JSONL or YAML file holds. */
export function readDataFile(source: SpecSource, format: DataFormat, defaults: CustomDefaults): ParsedSpecs {
  const { path } = source;
  const { records, problems } = readRecords(source.text, format);
  const drafts: SpecDraft[] = [];
  const diagnostics: Diagnostic[] = problems.map((problem) => toDiagnostic(problem, path));
  for (const record of records) {
    const read = recordDraft({ ...record, path, mentions: mentionsOf(record) }, defaults);
    if (read.draft !== undefined) drafts.push(read.draft);
    for (const diagnostic of read.diagnostics) diagnostics.push(diagnostic);
  }
  return { drafts, diagnostics: atMost(diagnostics, path) };
}

function toDiagnostic({ message, line, field, isLimit }: DataProblem, path: string): Diagnostic {
  return {
    severity: "error",
    rule: isLimit === true ? "limit" : "structure",
    message,
    path,
    ...(line !== undefined && { line }),
    ...(field !== undefined && { field }),
  };
}

/** The lines of a content are not those of the file, so a mention stands where its record starts. */
function mentionsOf({ value, startLine, lineOf }: DataRecord): SpecDraft["mentions"] {
  const content =
    typeof value === "object" && value !== null && "content" in value ? value.content : undefined;
  if (typeof content !== "string") return [];
  const scan = scanMarkdown(content);
  const mentions = mentionsIn(scan, 1, scan.lineCount);
  const line = mentions.length === 0 ? startLine : lineOf("content");
  return mentions.map((mention) => ({ ...mention, line }));
}

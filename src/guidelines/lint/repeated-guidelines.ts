import type { Diagnostic } from "../../protocol/diagnostic.ts";
import { type SyncFormat, syncFormats } from "../../protocol/enums.ts";
import type { GuidelineRecord } from "../guideline-record.ts";

/** Shorter texts, counted without blanks, are not reported as copies. */
const minComparedLength = 24;

/**
 * Guidelines with the same text, and guidelines of the same heading that apply to the same files with different texts. Each
 * diagnostic names both places. A copy that a sync wrote is not reported.
 */
export function repeatedGuidelines(
  records: readonly GuidelineRecord[],
  synced: SyncedFormats = {},
): Diagnostic[] {
  const isSynced = syncedFormats(records, synced);
  const own = records.filter((record) => record.managed === undefined && record.source_type !== "sample");
  const texts = new Map(own.map((record) => [record.id, normalized(record.content)]));
  const textOf = (record: GuidelineRecord): string => texts.get(record.id) ?? "";
  const diagnostics: Diagnostic[] = [];

  const copies = own.filter((record) => textOf(record).replaceAll(" ", "").length >= minComparedLength);
  for (const [first, ...others] of Map.groupBy(copies, textOf).values()) {
    for (const record of others) {
      if (first === undefined || isInStep(first, record, isSynced)) continue;
      const message = `"${record.title}" has the same text as ${placeOf(first)}.`;
      diagnostics.push(warning(record, { rule: "duplicate-guideline", code: "same_text", message }));
    }
  }

  const said = own.filter((record) => textOf(record) !== "" && hasHeading(record));
  for (const [first, ...others] of Map.groupBy(said, audienceOf).values()) {
    for (const record of others) {
      if (first === undefined || first.source_file === record.source_file) continue;
      if (textOf(first) === textOf(record)) continue;
      const message = `"${record.title}" says something else than ${placeOf(first)}, and both apply to the same files.`;
      diagnostics.push(warning(record, { rule: "contradiction", code: "same_heading", message }));
    }
  }
  return diagnostics;
}

/** The formats that a sync of the project keeps in step, as the configuration names them. */
export interface SyncedFormats {
  readonly source?: SyncFormat | undefined;
  readonly targets?: readonly SyncFormat[] | undefined;
}

/** The configured formats, and those with files that a sync wrote. */
function syncedFormats(
  records: readonly GuidelineRecord[],
  { source, targets }: SyncedFormats,
): (format: string) => boolean {
  const formats = new Set<string>(source === undefined ? [] : [source, ...(targets ?? syncFormats)]);
  for (const { managed, source_type } of records)
    if (managed !== undefined) formats.add(managed).add(source_type);
  return (format) => formats.has(format);
}

/** A copy that a sync leaves alone: the same text under the same title as in the source. */
function isInStep(
  one: GuidelineRecord,
  other: GuidelineRecord,
  isSynced: (format: string) => boolean,
): boolean {
  if (one.source_type === other.source_type || audienceOf(one) !== audienceOf(other)) return false;
  return isSynced(one.source_type) && isSynced(other.source_type);
}

/** Guidelines of one heading that apply to the same files. */
function audienceOf(record: GuidelineRecord): string {
  const globs = record.inclusion === "pattern" ? record.globs.toSorted() : [];
  return JSON.stringify([record.scope, globs, record.title.toLowerCase().replace(/\s+/g, " ")]);
}

/** Text without a heading is named after its file, which does not describe its topic. */
function hasHeading(record: GuidelineRecord): boolean {
  return record.title !== record.source_file.slice(record.source_file.lastIndexOf("/") + 1);
}

function normalized(text: string): string {
  return text.replace(/\s+/g, " ").trim().toLowerCase();
}

function placeOf(record: GuidelineRecord): string {
  return `"${record.title}" in ${record.source_file}:${record.span.start_line}`;
}

function warning(
  record: GuidelineRecord,
  about: Pick<Diagnostic, "rule" | "message"> & { readonly code: string },
): Diagnostic {
  return {
    severity: "warning",
    ...about,
    path: record.source_file,
    line: record.span.start_line,
    id: record.id,
  };
}

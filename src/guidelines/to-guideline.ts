import type { Guideline } from "../protocol/guideline.ts";
import type { GuidelineDraft } from "./adapter.ts";
import type { GuidelineRecord } from "./guideline-record.ts";

/** The record as it crosses the wire. */
export function toGuideline(record: GuidelineRecord): Guideline {
  const pattern = filePatternOf(record);
  return {
    id: record.id,
    title: record.title,
    content: record.content,
    source_type: record.source_type,
    source_file: record.source_file,
    ...(record.aliases !== undefined && { aliases: record.aliases }),
    ...(pattern !== undefined && { file_pattern: pattern }),
    tags: record.tags,
    is_sample: record.source_type === "sample",
  };
}

/** The declared globs, joined by commas; nothing where there is none. */
export function filePatternOf(draft: Pick<GuidelineDraft, "globs">): string | undefined {
  return draft.globs.length === 0 ? undefined : draft.globs.join(",");
}

import type { SpecDraft } from "../../specs/adapter.ts";
import { baseOf, idKinds } from "../index/block-id.ts";
import { classCodeOf } from "../index/block-key.ts";
import type { BlockEntry } from "../index/file-entry.ts";
import { refsOf } from "../index/refs.ts";
import { packBlock, packEdges } from "../index/stored-block.ts";

/** Makes a draft ready for the index. */
export function toBlockEntry(draft: SpecDraft): BlockEntry {
  const { title, content, summary, tags } = draft;
  return {
    classCode: classCodeOf(draft),
    kind: idKinds[draft.id.kind],
    base: baseOf(draft.id),
    title,
    content,
    summary: summary === undefined || content.startsWith(summary) ? "" : summary,
    tags,
    data: packBlock(draft),
    edges: packEdges(draft),
    refs: refsOf(draft),
  };
}

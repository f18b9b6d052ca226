import type { SpecDraft } from "../../specs/adapter.ts";
import { baseOf, firstNumberOf, idKinds } from "../index/block-id.ts";
import { classCodeOf } from "../index/block-key.ts";
import type { BlockEntry } from "../index/file-entry.ts";
import { refsOf } from "../index/refs.ts";
import { tagMark, toSearchText } from "../index/search-text.ts";
import { packBlock } from "../index/stored-block.ts";

/** Makes a draft ready for the index. */
export function toBlockEntry(draft: SpecDraft): BlockEntry {
  const { summary, content, tags } = draft;
  // Many a summary is the first line of the content; its words need not be found twice.
  const body = summary === undefined || content.startsWith(summary) ? content : `${summary}\n${content}`;
  return {
    classCode: classCodeOf(draft),
    kind: idKinds[draft.id.kind],
    base: baseOf(draft.id),
    n: firstNumberOf(draft.id),
    data: packBlock(draft),
    refs: refsOf(draft),
    search: {
      title: toSearchText(draft.title),
      body: toSearchText(body),
      tags: toSearchText(tags.join(" ")),
      marks: tags.map(tagMark).join(" "),
    },
  };
}

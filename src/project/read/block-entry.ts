import type { SpecDraft } from "../../specs/adapter.ts";
import { baseOf, idKinds } from "../index/block-id.ts";
import { classCodeOf } from "../index/block-key.ts";
import type { BlockEntry } from "../index/file-entry.ts";
import { refsOf } from "../index/refs.ts";
import { tagMark, toSearchText } from "../index/search-text.ts";
import { blockChecksum, edgesChecksum, packBlock, packEdges } from "../index/stored-block.ts";

/** Makes a draft ready for the index. */
export function toBlockEntry(draft: SpecDraft): BlockEntry {
  const { title, content, summary, tags } = draft;
  const data = packBlock(draft);
  const edges = packEdges(draft);
  // Many a summary is the first line of the content; its words need not be found twice.
  const body = summary === undefined || content.startsWith(summary) ? content : `${summary}\n${content}`;
  const searchTitle = toSearchText(title);
  const searchBody = toSearchText(body);
  return {
    classCode: classCodeOf(draft),
    kind: idKinds[draft.id.kind],
    base: baseOf(draft.id),
    title,
    content,
    data,
    checksum: blockChecksum({ title, content, data }),
    edges,
    edgesChecksum: edgesChecksum(edges),
    searchTitle: searchTitle === title ? "" : searchTitle,
    searchBody: searchBody === content ? "" : searchBody,
    tags: toSearchText(tags.join(" ")),
    marks: tags.map(tagMark).join(" "),
    refs: refsOf(draft),
  };
}

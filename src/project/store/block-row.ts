import type { SpecMetadata } from "../../protocol/spec-block.ts";
import type { DraftLink, DraftMention, SpecDraft } from "../../specs/adapter.ts";
import type { BlockClass } from "./block-class.ts";
import { baseOf, type IdKind } from "./block-id.ts";
import { parseStored } from "./damage.ts";
import { refsOf } from "./refs.ts";
import { tagMark, toSearchText } from "./search-text.ts";

/** A block ready to be written, and to be sent to another thread. */
export interface BlockEntry {
  /** Framework, type, lifecycle, priority. */
  readonly class: readonly [string, string, string, string];
  readonly idKind: IdKind;
  readonly base: string;
  /** The columns of `blocks` from `feature` on. */
  readonly row: readonly (string | number | null)[];
  /** Targets of the table `refs`. */
  readonly refs: readonly string[];
  /** Title, body, tags and marks as they are searched; "" for a title or body that is the block's own. */
  readonly search: readonly [string, string, string, string];
}

/** Where title and content stand in `BlockEntry.row`. */
export const titleAt = 8;
export const contentAt = 12;

/** Makes a draft ready for the index. */
export function toBlockEntry(draft: SpecDraft): BlockEntry {
  const { title, content, summary, tags, span, links, mentions, aliases = [] } = draft;
  // Many a summary is the first line of the content; its words need not be found twice.
  const body = summary === undefined || content.startsWith(summary) ? content : `${summary}\n${content}`;
  const searchTitle = toSearchText(title);
  const searchBody = toSearchText(body);
  return {
    class: [draft.framework, draft.spec_type, draft.lifecycle, draft.priority],
    idKind: draft.id.kind,
    base: baseOf(draft.id),
    row: [
      ...[draft.feature ?? null, toJson(links), toJson(mentions), toJson(aliases)],
      ...[span.start_line, span.end_line, draft.created_at ?? null, draft.updated_at ?? null],
      ...[title, summary ?? null, toJson(tags), JSON.stringify(draft.metadata), content],
    ],
    refs: refsOf(draft),
    search: [
      searchTitle === title ? "" : searchTitle,
      searchBody === content ? "" : searchBody,
      toSearchText(tags.join(" ")),
      tags.map(tagMark).join(" "),
    ],
  };
}

function toJson(list: readonly unknown[]): string {
  return list.length === 0 ? "" : JSON.stringify(list);
}

function listOf<Item>(json: string): readonly Item[] {
  return json === "" ? [] : parseStored<readonly Item[]>(json);
}

/** What a block names, and the feature it is of: all that following references takes. */
export interface BlockEdges {
  readonly feature?: string;
  readonly links: readonly DraftLink[];
  readonly mentions: readonly DraftMention[];
  readonly aliases: readonly string[];
}

export type EdgeColumns = readonly [feature: string | null, links: string, mentions: string, aliases: string];

export function toEdges([feature, links, mentions, aliases]: EdgeColumns): BlockEdges {
  return {
    links: listOf(links),
    mentions: listOf(mentions),
    aliases: listOf(aliases),
    ...(feature !== null && { feature }),
  };
}

/** A draft as the index gives it back: its id is made from other columns. */
export type StoredBlock = Omit<SpecDraft, "id">;

/** The columns of `blocks` from `start_line` on. */
export type TextColumns = readonly [
  startLine: number,
  endLine: number,
  createdAt: string | null,
  updatedAt: string | null,
  title: string,
  summary: string | null,
  tags: string,
  metadata: string,
  content: string,
];

export function toStoredBlock(
  [start, end, createdAt, updatedAt, title, summary, tags, metadata, content]: TextColumns,
  { framework, spec_type, lifecycle, priority }: BlockClass,
  { feature, links, mentions }: BlockEdges,
): StoredBlock {
  return {
    framework,
    spec_type,
    lifecycle,
    priority,
    title,
    content,
    tags: listOf(tags),
    metadata: parseStored<SpecMetadata>(metadata),
    span: { start_line: start, end_line: end },
    links,
    mentions,
    ...(feature === undefined ? {} : { feature }),
    ...(summary === null ? {} : { summary }),
    ...(createdAt === null ? {} : { created_at: createdAt }),
    ...(updatedAt === null ? {} : { updated_at: updatedAt }),
  };
}

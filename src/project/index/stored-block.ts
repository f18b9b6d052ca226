import { crc32 } from "node:zlib";
import type { SpecMetadata } from "../../protocol/spec-block.ts";
import type { DraftLink, DraftMention, SpecDraft } from "../../specs/adapter.ts";
import { classCodeOfKey, classOf } from "./block-key.ts";
import { DamagedIndexError } from "./damaged-index-error.ts";

/** A draft as the index gives it back: its id is made from other columns. */
export type StoredBlock = Omit<SpecDraft, "id">;

/** Packs a draft as a JSON list, because names would be a third of the index. */
export function packBlock(draft: SpecDraft): string {
  return JSON.stringify([
    draft.title,
    draft.content,
    draft.summary ?? null,
    draft.tags,
    draft.created_at ?? null,
    draft.updated_at ?? null,
    draft.metadata,
    draft.span.start_line,
    draft.span.end_line,
    draft.feature ?? null,
    draft.links,
    draft.mentions,
  ]);
}

type Packed = readonly [
  title: string,
  content: string,
  summary: string | null,
  tags: readonly string[],
  createdAt: string | null,
  updatedAt: string | null,
  metadata: SpecMetadata,
  startLine: number,
  endLine: number,
  feature: string | null,
  links: readonly DraftLink[],
  mentions: readonly DraftMention[],
];

/** The block of a stored text and its key; throws a `DamagedIndexError` when the text was altered. */
export function unpackBlock(text: string, { key, checksum }: { key: number; checksum: number }): StoredBlock {
  const [
    title,
    content,
    summary,
    tags,
    createdAt,
    updatedAt,
    metadata,
    start,
    end,
    feature,
    links,
    mentions,
  ] = parseStored<Packed>(text, checksum);
  return {
    ...classOf(classCodeOfKey(key)),
    title,
    content,
    tags,
    metadata,
    span: { start_line: start, end_line: end },
    links,
    mentions,
    ...(summary === null ? {} : { summary }),
    ...(createdAt === null ? {} : { created_at: createdAt }),
    ...(updatedAt === null ? {} : { updated_at: updatedAt }),
    ...(feature === null ? {} : { feature }),
  };
}

/** The checksum that a stored text is verified by when it is read. */
export function checksumOf(text: string): number {
  return crc32(text);
}

/**
 * Reads a JSON text of the index. The checksum vouches for it being what this version wrote, so its
 * shape is taken as given. Throws a `DamagedIndexError` otherwise.
 */
export function parseStored<Value>(text: string, checksum: number): Value {
  verifyStored(text, checksum);
  return JSON.parse(text) as Value;
}

/** Throws a `DamagedIndexError` when a text is not the one that the checksum was taken of. */
export function verifyStored(text: string, checksum: number): void {
  if (crc32(text) !== checksum) throw new DamagedIndexError("A record does not match its checksum.");
}

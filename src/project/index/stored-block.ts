import { crc32 } from "node:zlib";
import type { SpecMetadata } from "../../protocol/spec-block.ts";
import type { DraftLink, DraftMention, SpecDraft } from "../../specs/adapter.ts";
import { classCodeOfKey, classOf } from "./block-key.ts";
import { DamagedIndexError } from "./damaged-index-error.ts";

/** A draft as the index gives it back: its id is made from other columns. */
export type StoredBlock = Omit<SpecDraft, "id">;

/** What a draft is stored as beside its class: two texts as they are, and the rest as JSON. */
export interface BlockColumns {
  readonly title: string;
  readonly content: string;
  readonly data: string;
}

/** What a block names, and the feature it is of: all that following references takes. */
export interface BlockEdges {
  readonly feature?: string;
  readonly links: readonly DraftLink[];
  readonly mentions: readonly DraftMention[];
  readonly aliases?: readonly string[];
}

/** Packs the rest of a draft as a JSON list, because names would be a third of it. */
export function packBlock(draft: SpecDraft): string {
  const { summary = null, tags, created_at = null, updated_at = null, metadata, span } = draft;
  return JSON.stringify([summary, tags, created_at, updated_at, metadata, span.start_line, span.end_line]);
}

type Packed = readonly [
  summary: string | null,
  tags: readonly string[],
  createdAt: string | null,
  updatedAt: string | null,
  metadata: SpecMetadata,
  startLine: number,
  endLine: number,
];

export function packEdges({ feature, links, mentions, aliases = [] }: SpecDraft): string {
  const packed: unknown[] = [feature ?? null];
  if (links.length + mentions.length + aliases.length > 0) packed.push(links, mentions);
  if (aliases.length > 0) packed.push(aliases);
  return packed.length === 1 && feature === undefined ? "" : JSON.stringify(packed);
}

type PackedEdges = readonly [
  feature: string | null,
  links?: readonly DraftLink[],
  mentions?: readonly DraftMention[],
  aliases?: readonly string[],
];

/** The checksum of a block's columns. */
export function blockChecksum({ title, content, data }: BlockColumns): number {
  return crc32(data, crc32(content, crc32(title)));
}

export function edgesChecksum(edges: string): number {
  return crc32(edges);
}

/** The block of its columns and key; throws a `DamagedIndexError` when one of them was altered. */
export function unpackBlock(
  columns: BlockColumns,
  { key, checksum, edges }: { readonly key: number; readonly checksum: number; readonly edges: BlockEdges },
): StoredBlock {
  if (blockChecksum(columns) !== checksum)
    throw new DamagedIndexError("A block does not match its checksum.");
  const [summary, tags, createdAt, updatedAt, metadata, start, end] = JSON.parse(columns.data) as Packed;
  return {
    ...classOf(classCodeOfKey(key)),
    ...edges,
    title: columns.title,
    content: columns.content,
    tags,
    metadata,
    span: { start_line: start, end_line: end },
    ...(summary === null ? {} : { summary }),
    ...(createdAt === null ? {} : { created_at: createdAt }),
    ...(updatedAt === null ? {} : { updated_at: updatedAt }),
  };
}

const noEdges: BlockEdges = { links: [], mentions: [] };

/** The edges of their column; throws a `DamagedIndexError` when it was altered. */
export function unpackEdges(text: string, checksum: number): BlockEdges {
  if (crc32(text) !== checksum) throw new DamagedIndexError("Edges do not match their checksum.");
  if (text === "") return noEdges;
  const [feature, links = [], mentions = [], aliases] = JSON.parse(text) as PackedEdges;
  return { links, mentions, ...(feature !== null && { feature }), ...(aliases && { aliases }) };
}

/** The checksum that a file's records are verified by when they are read. */
export function recordsChecksum(guidelines: string, diagnostics: string): number {
  return crc32(diagnostics, crc32(guidelines));
}

/** Throws a `DamagedIndexError` when the records of a file are not those that were written. */
export function verifyRecords(guidelines: string, diagnostics: string, checksum: number): void {
  if (recordsChecksum(guidelines, diagnostics) === checksum) return;
  throw new DamagedIndexError("The records of a file do not match their checksum.");
}

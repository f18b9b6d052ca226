import { crc32 } from "node:zlib";
import { lifecycleWeights, priorityWeights } from "../../protocol/enums.ts";
import type { Framework, Lifecycle, Priority, SpecMetadata, SpecType } from "../../protocol/spec-block.ts";
import type { DraftId, DraftLink, DraftMention, SpecDraft } from "../../specs/adapter.ts";
import { numberGroup, parentBaseOf } from "../../specs/model/assemble-blocks.ts";
import type { Connection } from "../../sqlite/statements.ts";
import { parseStored } from "./open-index.ts";

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
  /** Title, body, tags and marks for the full-text index; "" for a title or body that equals the block's. */
  readonly search: readonly [string, string, string, string];
}

/** The positions of title and content in `BlockEntry.row`. */
export const titleAt = 8;
export const contentAt = 12;

/** Converts a draft to its rows of the index. */
export function toBlockEntry(draft: SpecDraft): BlockEntry {
  const { title, content, summary, tags, span, links, mentions, aliases = [] } = draft;
  // Many summaries are the first line of the content, whose words are already searched.
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

/** The references of a block and its feature. */
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

/** A draft as the index returns it; its id is made from other columns. */
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

/** The rows of a block in the table `refs`: each thing that it names, once. */
export function refsOf(block: {
  readonly links: readonly DraftLink[];
  readonly mentions: readonly DraftMention[];
  readonly aliases?: readonly string[];
}): string[] {
  const { aliases = [] } = block;
  if (block.links.length + block.mentions.length + aliases.length === 0) return [];
  const targets = new Set<string>();
  for (const alias of aliases) targets.add(aliasRef(alias));
  for (const { target } of block.links) targets.add(blockRef(target));
  for (const { path } of block.mentions) targets.add(`${mentionRefsOf(path).from}${path}`);
  return [...targets];
}

/** The target of a link to a block with this base or declared id. */
export function blockRef(base: string): string {
  return `b${base}`;
}

/** The entry of a block that has an alias, by which links find it. */
export function aliasRef(alias: string): string {
  return `a${alias}`;
}

/** The range of targets that can mean the file at a path; `to` is exclusive. */
export function mentionRefsOf(path: string): { readonly from: string; readonly to: string } {
  const name = `m${path.slice(path.lastIndexOf("/") + 1)}`;
  return { from: `${name}\n`, to: `${name}\v` };
}

/** The path as the block spells it, from the target of a mention. */
export function writtenPathOf(target: string): string {
  return target.slice(target.indexOf("\n") + 1);
}

/** Scripts that are written without spaces: Han, kana, Hangul syllables, Thai, Lao, Khmer, Myanmar. */
const unspaced =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}ー々]+/gu;
const mayHoldUnspaced =
  /[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005\u3041-\ud7a3\uf900-\ufaff\ud840-\ud8ff]/;

/**
 * Converts a text for the full-text index. Runs of a script without spaces become overlapping pairs of characters, then the last
 * one alone: 認証画面 → 認証 証画 画面 面. So any part of a run is found by the pairs of its characters, and a single character by its
 * prefix.
 */
function toSearchText(text: string): string {
  if (!mayHoldUnspaced.test(text)) return text;
  return text.replace(unspaced, (run) => {
    const characters = [...run];
    return ` ${characters.map((character, index) => character + (characters[index + 1] ?? "")).join(" ")} `;
  });
}

/** A search word for exactly one tag, so that a filter by tag reads no blocks. */
export function tagMark(tag: string): string {
  return `t${crc32(tag).toString(36)}`;
}

/** The characters that `unicode61` counts as parts of words: letters, digits, and private use. */
const words = /[\p{L}\p{M}\p{N}\p{Co}]+/gu;

/**
 * The phrases of a search, as terms of an FTS5 query that must all match; empty when it has no word.
 *
 * Every word is quoted, so that nothing a user types is syntax. What is joined by punctuation
 * (`user_id`, `a.ts`) stays a phrase.
 */
export function toSearchTerms(query: string): string[] {
  const terms: string[] = [];
  for (const chunk of query.split(/\s+/)) {
    let spaced = "";
    let from = 0;
    for (const run of chunk.matchAll(unspaced)) {
      const characters = [...run[0]];
      if (characters.length === 1) terms.push(`"${run[0]}"*`);
      for (let index = 0; index + 1 < characters.length; index += 1) {
        terms.push(`"${characters[index]}${characters[index + 1]}"`);
      }
      spaced += `${chunk.slice(from, run.index)} `;
      from = run.index + run[0].length;
    }
    for (const part of (spaced + chunk.slice(from)).split(" ")) {
      const phrase = part.match(words)?.join(" ");
      if (phrase !== undefined) terms.push(`"${phrase}"`);
    }
  }
  return terms;
}

/** A row of `classes`: one combination of the four values, and how many blocks have it. */
export interface BlockClass {
  readonly id: number;
  readonly framework: Framework;
  readonly spec_type: SpecType;
  readonly lifecycle: Lifecycle;
  readonly priority: Priority;
  readonly blocks: number;
}

/** The classes of an index by their id; there are a few dozen. */
export function readClasses(database: Connection): Map<number, BlockClass> {
  const rows = database.all<[number, Framework, SpecType, Lifecycle, Priority, number]>(
    "SELECT id, framework, spec_type, lifecycle, priority, blocks FROM classes ORDER BY id",
  );
  return new Map(
    rows.map(([id, framework, spec_type, lifecycle, priority, blocks]) => [
      id,
      { id, framework, spec_type, lifecycle, priority, blocks },
    ]),
  );
}

/** The factor of a class in a ranking: lifecycle weight times priority weight. */
export function weightOf({ lifecycle, priority }: Pick<BlockClass, "lifecycle" | "priority">): number {
  return lifecycleWeights[lifecycle] * priorityWeights[priority];
}

/** Larger than every running number: no index has this many blocks. */
const keysPerClass: number = 2 ** 32;

/**
 * The key of a block: its class, then a running number. The blocks of a class are a range of keys, so the
 * full-text index counts them without reading any. A search for a common word depends on that.
 */
export function toKey(classId: number, number: number): number {
  return classId * keysPerClass + number;
}

export function classIdOf(key: number): number {
  return Math.floor(key / keysPerClass);
}

/** First and last key of a class. As bigints, because FTS5 does not accept floating point as the limits of a range. */
export function keyRangeOf(classId: number): [from: bigint, to: bigint] {
  return [BigInt(toKey(classId, 0)), BigInt(toKey(classId + 1, 0) - 1)];
}

export type IdKind = DraftId["kind"];

/** The base of a draft's id as stored: the wish, the prefix of the sequence, or the declared id. */
export function baseOf(id: DraftId): string {
  return id.kind === "sequence" ? id.prefix : id.value;
}

/** The number of a block that shares its base with no other block. */
export function firstNumberOf(kind: IdKind): number {
  return kind === "sequence" ? 0 : 1;
}

/**
 * Numbers blocks again after blocks of these bases were added or removed, in path, then position order. Also numbers the blocks
 * of base X for a base X-3. Writes only numbers that differ.
 */
export function numberBlocks(database: Connection, touched: Iterable<string>): void {
  const bases = new Set<string>();
  for (const base of touched) {
    bases.add(base);
    const parent = parentBaseOf(base);
    if (parent !== undefined) bases.add(parent);
  }
  // Nearly all bases have one block, which has the first number already.
  const unsure = database.all<[string]>(
    `SELECT value FROM json_each(?) WHERE EXISTS (
       SELECT 1 FROM blocks WHERE base = value GROUP BY base
       HAVING count(*) > 1 OR max(n <> (id_kind <> 'sequence'))
     )`,
    JSON.stringify([...bases]),
  );
  for (const [base] of unsure) {
    const blocks = database.all<[key: number, kind: IdKind, n: number]>(
      `SELECT b.key, b.id_kind, b.n FROM blocks b JOIN files f ON f.id = b.file
       WHERE b.base = ? ORDER BY f.path, b.position`,
      base,
    );
    const isTaken = (id: string): boolean =>
      database.get("SELECT 1 FROM blocks WHERE base = ? AND id_kind <> 'sequence' LIMIT 1", id) !== undefined;
    const numbers = numberGroup(base, { kinds: blocks.map(([, kind]) => kind), isTaken });
    for (const [at, [key, , n]] of blocks.entries()) {
      if (numbers[at] !== n) database.run("UPDATE blocks SET n = ? WHERE key = ?", numbers[at] ?? n, key);
    }
  }
}

/** Keys of the blocks that have an id: one, or several where files declare the same one. */
export function keysOfId(database: Connection, id: string): number[] {
  const keys = database
    .all<[number]>(
      `SELECT b.key FROM blocks b JOIN files f ON f.id = b.file
       WHERE b.base = ? AND (b.id_kind = 'declared' OR (b.id_kind = 'base' AND b.n = 1)) ORDER BY f.path, b.position`,
      id,
    )
    .map(([key]) => key);
  if (keys.length > 0) return keys;
  const byNumber = "SELECT key FROM blocks WHERE base = ? AND id_kind = ? AND n = ?";
  const suffixed = /^(.+)-([1-9]\d{0,8})$/s.exec(id);
  if (suffixed?.[1] !== undefined && Number(suffixed[2]) > 1) {
    const found = database.get<[number]>(byNumber, suffixed[1], "base", Number(suffixed[2]));
    if (found !== undefined) return [found[0]];
  }
  // A prefix can itself end in digits, so this tries every split of the trailing digits.
  const digits = /\d{1,9}$/.exec(id)?.[0].length ?? 0;
  for (let length = digits; length > 0; length -= 1) {
    const number = id.slice(-length);
    if (length > 1 && number.startsWith("0")) continue;
    const found = database.get<[number]>(byNumber, id.slice(0, -length), "sequence", Number(number));
    if (found !== undefined) return [found[0]];
  }
  return [];
}

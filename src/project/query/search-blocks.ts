import { classCodeOfKey, keyRangeOf, toKey, weightOf } from "../index/block-key.ts";
import type { IndexDatabase } from "../index/index-database.ts";
import { parseCursor, toCursor, wrongCursor } from "./cursor.ts";
import { type Match, toCounts } from "./match.ts";
import type { QueryPlan } from "./query-plan.ts";

/** Up to so many matches every one is weighed, at about half a microsecond each. */
const maxRanked = 8000;

/** How much a word counts in a title, in the text, among the tags; marks are filters only. */
const columnWeights = "8.0, 1.0, 4.0, 0.0";

/** What is searched for: an FTS5 expression, and the filters that it does not hold. */
interface Search {
  readonly expression: string;
  /** The same, but all words must be in the title. */
  readonly titleExpression: string;
  readonly classes: readonly number[];
  /** The blocks that pass the path filter. */
  readonly allowed: ReadonlySet<number> | undefined;
}

/**
 * The blocks that hold all words, best first: text relevance (BM25) × lifecycle weight × priority
 * weight, then in the order of their keys. Counts are exact.
 *
 * Words that more than `maxRanked` blocks hold are too common to tell those apart by their text:
 * blocks with all words in the title are then ranked by it and come first, the others follow by
 * their weights.
 */
export function searchBlocks(
  database: IndexDatabase,
  { plan, cursor }: { readonly plan: QueryPlan; readonly cursor: string | undefined },
): Match {
  const offset = cursor === undefined ? 0 : offsetOf(plan, cursor);
  const search = toSearch(database, plan);
  if (search === undefined) return { keys: [], counts: toCounts([]) };
  const { counts, keys } = isCommon(database, search)
    ? rankCommon(database, search, offset + plan.limit)
    : rankAll(database, search);
  const page = keys.slice(offset, offset + plan.limit);
  const end = offset + page.length;
  return {
    keys: page,
    counts,
    ...(page.length > 0 && end < counts.total && { nextCursor: toCursor(plan, [end]) }),
  };
}

function offsetOf(plan: QueryPlan, cursor: string): number {
  const [offset] = parseCursor(plan, cursor);
  if (typeof offset !== "number" || !Number.isSafeInteger(offset) || offset < 0) throw wrongCursor();
  return offset;
}

/** Undefined when nothing can match. */
function toSearch(database: IndexDatabase, { terms, mark, classes, files }: QueryPlan): Search | undefined {
  if (terms === undefined || terms.length === 0 || classes.size === 0 || files?.length === 0)
    return undefined;
  const words = terms.join(" ");
  const tagged = mark === undefined ? "" : ` AND marks : "${mark}"`;
  const allowed =
    files &&
    database.all<[number]>(
      "SELECT key FROM blocks WHERE file IN (SELECT value FROM json_each(?))",
      JSON.stringify(files),
    );
  return {
    expression: `(${words})${tagged}`,
    titleExpression: `title : (${words})${tagged}`,
    classes: [...classes.keys()],
    allowed: allowed && new Set(allowed.map(([key]) => key)),
  };
}

function isCommon(database: IndexDatabase, { expression }: Search): boolean {
  const [count] = database.get<[number]>("SELECT count(*) FROM search WHERE search MATCH ?", expression) ?? [
    0,
  ];
  return count > maxRanked;
}

type Scored = readonly [key: number, score: number];

/** Weighs every match. */
function rankAll(database: IndexDatabase, search: Search): Pick<Match, "keys" | "counts"> {
  const scored = scoredMatches(database, search.expression, search);
  const perClass = new Map<number, number>();
  for (const [key] of scored) {
    const code = classCodeOfKey(key);
    perClass.set(code, (perClass.get(code) ?? 0) + 1);
  }
  return { keys: byScore(scored), counts: toCounts(perClass) };
}

function scoredMatches(database: IndexDatabase, expression: string, { classes, allowed }: Search): Scored[] {
  const rows = database.all<[number, number]>(
    `SELECT rowid, bm25(search, ${columnWeights}) FROM search WHERE search MATCH ?
     AND rowid / ${toKey(1, 0)} IN (SELECT value FROM json_each(?))`,
    ...[expression, JSON.stringify(classes)],
  );
  const weights = new Map(classes.map((code) => [code, weightOf(code)]));
  const scored: Scored[] = [];
  for (const [key, relevance] of rows) {
    if (allowed !== undefined && !allowed.has(key)) continue;
    // FTS5 gives the better match the lower number.
    scored.push([key, -relevance * (weights.get(classCodeOfKey(key)) ?? 0)]);
  }
  return scored;
}

function byScore(scored: Scored[]): number[] {
  return scored.sort(([a, x], [b, y]) => y - x || a - b).map(([key]) => key);
}

/** The first `needed` blocks of a match that is too large to weigh, and exact counts of all of it. */
function rankCommon(database: IndexDatabase, search: Search, needed: number): Pick<Match, "keys" | "counts"> {
  const counts = toCounts(search.classes.map((code) => [code, countClass(database, search, code)]));
  const [inTitle] = database.get<[number]>(
    "SELECT count(*) FROM search WHERE search MATCH ?",
    search.titleExpression,
  ) ?? [0];
  const keys = inTitle > maxRanked ? [] : byScore(scoredMatches(database, search.titleExpression, search));
  const first = new Set(keys);
  const classes = [...search.classes].sort((a, b) => weightOf(b) - weightOf(a) || a - b);
  for (const code of classes) {
    if (keys.length >= needed) break;
    const limit = search.allowed === undefined ? needed - keys.length + first.size : -1;
    for (const key of keysOfClass(database, search, { code, limit })) {
      if (!first.has(key) && search.allowed?.has(key) !== false) keys.push(key);
    }
  }
  return { keys, counts };
}

function countClass(database: IndexDatabase, search: Search, code: number): number {
  if (search.allowed !== undefined) {
    const { allowed } = search;
    return keysOfClass(database, search, { code, limit: -1 }).filter((key) => allowed.has(key)).length;
  }
  const [count] = database.get<[number]>(
    "SELECT count(*) FROM search WHERE search MATCH ? AND rowid BETWEEN ? AND ?",
    ...[search.expression, ...rangeOf(code)],
  ) ?? [0];
  return count;
}

function keysOfClass(
  database: IndexDatabase,
  { expression }: Search,
  { code, limit }: { readonly code: number; readonly limit: number },
): number[] {
  return database
    .all<[number]>(
      "SELECT rowid FROM search WHERE search MATCH ? AND rowid BETWEEN ? AND ? LIMIT ?",
      ...[expression, ...rangeOf(code), limit],
    )
    .map(([key]) => key);
}

/** Numbers are bound as floating point, which FTS5 does not take for the limits of a range. */
function rangeOf(code: number): [bigint, bigint] {
  const { from, to } = keyRangeOf(code);
  return [BigInt(from), BigInt(to)];
}

import type { Connection } from "../../sqlite/statements.ts";
import { type BlockClass, classIdOf, keyRangeOf, toKey, weightOf } from "../store/block-row.ts";
import { type Match, parseCursor, type QueryPlan, toCounts, toCursor, wrongCursor } from "./query-plan.ts";

/** Up to so many matches are all ranked, at up to a microsecond each. */
const maxRanked = 3000;

/** The weight of a word in a title, in the text, among the tags; marks are filters only. */
const columnWeights = "8.0, 1.0, 4.0, 0.0";

/** A search: an FTS5 expression, and the filters that the expression does not contain. */
interface Search {
  readonly expression: string;
  /** The same, but all words must be in the title. */
  readonly titleExpression: string;
  readonly classes: ReadonlyMap<number, BlockClass>;
  /** The blocks that pass the path filter. */
  readonly allowed: ReadonlySet<number> | undefined;
}

/**
 * The blocks that hold all words, best first: text relevance (BM25) × lifecycle weight × priority
 * weight, then in the order of their keys. Counts are exact.
 *
 * Words that more than `maxRanked` blocks hold are too common to tell those apart by their text:
 * blocks with all words in the title then come first, and among equals their weights decide.
 */
export function searchBlocks(
  database: Connection,
  { plan, cursor }: { readonly plan: QueryPlan; readonly cursor: string | undefined },
): Match {
  const offset = cursor === undefined ? 0 : offsetOf(plan, cursor);
  const search = toSearch(database, plan);
  if (search === undefined) return { keys: [], counts: toCounts([], plan.classes) };
  const { keys, counts } = isCommon(database, search)
    ? matchCommon(database, search, offset + plan.limit)
    : matchRare(database, search);
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
function toSearch(database: Connection, { terms, mark, classes, files }: QueryPlan): Search | undefined {
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
    classes,
    allowed: allowed && new Set(allowed.map(([key]) => key)),
  };
}

/** Whether too many blocks hold the words to weigh each, whatever the other filters leave of them. */
function isCommon(database: Connection, { expression }: Search): boolean {
  const [count] = database.get<[number]>("SELECT count(*) FROM search WHERE search MATCH ?", expression) ?? [
    0,
  ];
  return count > maxRanked;
}

type Ranked = Pick<Match, "keys" | "counts">;

/** All keys of a match, and their counts, in one query. */
function matchRare(database: Connection, search: Search): Ranked {
  const keys = rankByText(database, search);
  const perClass = new Map<number, number>();
  for (const key of keys) {
    const id = classIdOf(key);
    perClass.set(id, (perClass.get(id) ?? 0) + 1);
  }
  return { keys, counts: toCounts(perClass, search.classes) };
}

/** The counts of a match, which the index gives per class without reading blocks, and its first keys. */
function matchCommon(database: Connection, search: Search, needed: number): Ranked {
  const perClass = countClasses(database, search);
  const counts = toCounts(perClass, search.classes);
  const keys =
    counts.total <= maxRanked
      ? rankByText(database, search)
      : rankByTitle(database, { search, perClass, needed });
  return { keys, counts };
}

/** The number of matching blocks per class. */
function countClasses(database: Connection, { expression, classes, allowed }: Search): Map<number, number> {
  const perClass = new Map([...classes.keys()].map((id) => [id, 0]));
  if (allowed === undefined) {
    for (const id of classes.keys()) {
      const [count] = database.get<[number]>(
        "SELECT count(*) FROM search WHERE search MATCH ? AND rowid BETWEEN ? AND ?",
        ...[expression, ...keyRangeOf(id)],
      ) ?? [0];
      perClass.set(id, count);
    }
    return perClass;
  }
  for (const [key] of database.all<[number]>("SELECT rowid FROM search WHERE search MATCH ?", expression)) {
    const id = classIdOf(key);
    const count = perClass.get(id);
    if (count !== undefined && allowed.has(key)) perClass.set(id, count + 1);
  }
  return perClass;
}

/** Ranks every match. */
function rankByText(database: Connection, { expression, classes, allowed }: Search): number[] {
  const rows = database.all<[key: number, relevance: number]>(
    `SELECT rowid, bm25(search, ${columnWeights}) FROM search WHERE search MATCH ?
     AND rowid / ${toKey(1, 0)} IN (SELECT value FROM json_each(?))`,
    ...[expression, JSON.stringify([...classes.keys()])],
  );
  const weights = new Map([...classes].map(([id, each]) => [id, weightOf(each)]));
  return (
    rows
      .filter(([key]) => allowed?.has(key) !== false)
      // FTS5 gives the better match the lower number.
      .map(([key, relevance]) => [key, -relevance * (weights.get(classIdOf(key)) ?? 0)] as const)
      .sort(([a, x], [b, y]) => y - x || a - b)
      .map(([key]) => key)
  );
}

/** The first `needed` blocks of a match that is too large to rank. */
function rankByTitle(
  database: Connection,
  {
    search,
    perClass,
    needed,
  }: { readonly search: Search; readonly perClass: ReadonlyMap<number, number>; readonly needed: number },
): number[] {
  const classes = [...search.classes.values()].filter(({ id }) => (perClass.get(id) ?? 0) > 0);
  classes.sort((a, b) => weightOf(b) - weightOf(a) || a.id - b.id);
  const keys = new Set<number>();
  for (const expression of [search.titleExpression, search.expression]) {
    for (const { id } of classes) {
      // The answer may repeat keys that are known already, so the limit counts them in.
      const limit = search.allowed === undefined ? needed : -1;
      const found = database.all<[number]>(
        "SELECT rowid FROM search WHERE search MATCH ? AND rowid BETWEEN ? AND ? LIMIT ?",
        ...[expression, ...keyRangeOf(id), limit],
      );
      for (const [key] of found) if (search.allowed?.has(key) !== false) keys.add(key);
      if (keys.size >= needed) return [...keys];
    }
  }
  return [...keys];
}

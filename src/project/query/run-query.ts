import { compileGlob } from "../../base/glob/glob.ts";
import type { SpecPage, SpecQuery } from "../../protocol/spec-query.ts";
import { isProposed, proposedFolder } from "../../specs/adapters/openspec/openspec-document.ts";
import { isRuleBlock } from "../../specs/frameworks.ts";
import type { Connection } from "../../sqlite/statements.ts";
import type { ProjectSpecs } from "../project.ts";
import { type ProjectFacts, readBlocks } from "../store/block-reader.ts";
import {
  type BlockClass,
  classIdOf,
  keyRangeOf,
  readClasses,
  tagMark,
  toKey,
  toSearchTerms,
  weightOf,
} from "../store/block-row.ts";
import { digestOf, invalid, pageSize, parseCursor, toCursor, wrongCursor } from "./page.ts";

interface RunQueryOptions {
  readonly query: SpecQuery;
  readonly facts: ProjectFacts;
}

/** Answers a query over the blocks of an index. Throws `invalid_request` for an invalid query or cursor. */
export function runQuery(database: Connection, { query, facts }: RunQueryOptions): SpecPage {
  const plan = planQuery(database, query);
  const match: Match =
    plan.terms === undefined
      ? listBlocks(database, { plan, cursor: query.cursor })
      : searchBlocks(database, { plan, cursor: query.cursor });
  return {
    specs: readBlocks(database, { keys: match.keys, facts }),
    total_count: match.counts.total,
    counts_by_framework: match.counts.byFramework,
    next_cursor: match.nextCursor,
  };
}

interface ListOptions {
  readonly plan: QueryPlan;
  readonly cursor: string | undefined;
}

type PlacedKey = [key: number, path: string, position: number];

/** The blocks that pass the filters, in path, then position order; what is proposed comes after what is current. */
function listBlocks(database: Connection, { plan, cursor }: ListOptions): Match {
  const counts = countBlocks(database, plan);
  const from = cursor === undefined ? start : placeOf(plan, cursor);
  const most = plan.limit + 1;
  const keys: PlacedKey[] = [];
  if (counts.total > 0) {
    const current = isProposed(from[0]) ? [] : readPlaced(database, plan, { from, most, proposed: 0 });
    keys.push(...current);
    const next = isProposed(from[0]) ? from : start;
    if (keys.length < most)
      keys.push(...readPlaced(database, plan, { from: next, most: most - keys.length, proposed: 1 }));
  }
  const page = keys.slice(0, plan.limit);
  const last = page.at(-1);
  return {
    keys: page.map(([key]) => key),
    counts,
    ...(keys.length > plan.limit && last && { nextCursor: toCursor(plan.digest, [last[1], last[2]]) }),
  };
}

type Place = readonly [path: string, position: number];

const start: Place = ["", -1];

function readPlaced(
  database: Connection,
  plan: QueryPlan,
  { from: [path, position], most, proposed }: { from: Place; most: number; proposed: 0 | 1 },
): PlacedKey[] {
  const filter = filterOf(plan);
  return database.all<PlacedKey>(
    `SELECT b.key, f.path, b.position FROM files f CROSS JOIN blocks b ON b.file = f.id
     WHERE f.path >= ? AND (f.path > ? OR b.position > ?)
     AND (instr('/' || f.path, '/${proposedFolder}') > 0) = ? ${filter.sql}
     ORDER BY f.path, b.position LIMIT ?`,
    ...[path, path, position, proposed, ...filter.values, most],
  );
}

function placeOf(plan: QueryPlan, cursor: string): [string, number] {
  const [path, position] = parseCursor(plan.digest, cursor);
  if (typeof path !== "string" || typeof position !== "number") throw wrongCursor();
  return [path, position];
}

function countBlocks(database: Connection, plan: QueryPlan): MatchCounts {
  const { classes } = plan;
  if (plan.mark === undefined && plan.files === undefined)
    return toCounts(
      [...classes].map(([id, { blocks }]) => [id, blocks] as const),
      classes,
    );
  const filter = filterOf(plan);
  return toCounts(
    database.all<[number, number]>(
      `SELECT b.key / ${toKey(1, 0)} AS class, count(*) FROM blocks b WHERE TRUE ${filter.sql} GROUP BY class`,
      ...filter.values,
    ),
    classes,
  );
}

/** The conditions of a plan on a row of `blocks b`. Lists are bound as JSON, so that the statement stays the same. */
function filterOf({ classes, mark, files }: QueryPlan): { sql: string; values: (string | number)[] } {
  let sql = `AND b.key / ${toKey(1, 0)} IN (SELECT value FROM json_each(?))`;
  const values: (string | number)[] = [JSON.stringify([...classes.keys()])];
  if (files !== undefined) {
    sql += " AND b.file IN (SELECT value FROM json_each(?))";
    values.push(JSON.stringify(files));
  }
  if (mark !== undefined) {
    sql += " AND b.key IN (SELECT rowid FROM search WHERE search MATCH ?)";
    values.push(`marks : "${mark}"`);
  }
  return { sql, values };
}

/**
 * A page for a person: leaves out the rules of instruction files (CLAUDE.md, Cursor's rules) where the project has other specs,
 * unless a search, a filter or `rules` asks for them. `rules_left_out` is their number.
 */
export function listForPerson(specs: Pick<ProjectSpecs, "query">, query: SpecQuery): SpecPage {
  const { q, framework, spec_type, path, tag, rules } = query;
  if ((q ?? framework ?? spec_type ?? path ?? tag ?? rules) !== undefined) return specs.query(query);
  const { cursor: _, ...first } = query;
  const otherCount = specs.query({ ...first, rules: false, limit: 1 }).total_count;
  if (otherCount === 0) return specs.query(query);
  const ruleCount = specs.query({ ...first, limit: 1 }).total_count - otherCount;
  const page = specs.query({ ...query, rules: false });
  return ruleCount === 0 ? page : { ...page, rules_left_out: ruleCount };
}

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
 * The blocks that hold all words, best first: text relevance (BM25) × lifecycle weight × priority weight, then in the order of
 * their keys. Counts are exact.
 *
 * If more than `maxRanked` blocks hold the words, text relevance is too expensive: blocks with all words in the title come first
 * then, and the weights order the rest.
 */
function searchBlocks(
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
    ...(page.length > 0 && end < counts.total && { nextCursor: toCursor(plan.digest, [end]) }),
  };
}

function offsetOf(plan: QueryPlan, cursor: string): number {
  const [offset] = parseCursor(plan.digest, cursor);
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

/** Whether too many blocks hold the words to rank each of them, before the other filters apply. */
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

/** The counts of a match, which the index computes per class without reading blocks, and its first keys. */
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
      // FTS5 returns a lower number for a better match.
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
      // The answer can repeat keys that are already in the list, so the limit includes them.
      const limit = search.allowed === undefined ? needed : -1;
      const rows = database.all<[number]>(
        "SELECT rowid FROM search WHERE search MATCH ? AND rowid BETWEEN ? AND ? LIMIT ?",
        ...[expression, ...keyRangeOf(id), limit],
      );
      for (const [key] of rows) if (search.allowed?.has(key) !== false) keys.add(key);
      if (keys.size >= needed) return [...keys];
    }
  }
  return [...keys];
}

/** A query in terms of the index. */
interface QueryPlan {
  /** FTS5 terms that must all match; undefined for a query without `q`, empty for one without words. */
  readonly terms: readonly string[] | undefined;
  /** The classes of blocks that pass the filters on framework, type, lifecycle and priority, by their id. */
  readonly classes: ReadonlyMap<number, BlockClass>;
  /** The word of the tag filter. */
  readonly mark: string | undefined;
  /** Ids of the files that pass the path filter. */
  readonly files: readonly number[] | undefined;
  readonly limit: number;
  /** Identifies the query without its page, so that a cursor is refused by another query. */
  readonly digest: string;
}

/** The limit of words in a search; each word costs a lookup. */
const maxTerms = 32;

/** Throws `invalid_request` for a query without meaning. */
function planQuery(database: Connection, query: SpecQuery): QueryPlan {
  const limit = pageSize(query.limit);
  const terms = query.q === undefined || query.q.trim() === "" ? undefined : toSearchTerms(query.q);
  if (terms !== undefined && terms.length > maxTerms)
    throw invalid("q", `may have at most ${maxTerms} words`);
  const classes = new Map([...readClasses(database)].filter(([, each]) => passes(each, query)));
  const { q, framework, spec_type, lifecycle, priority, tag, path, rules } = query;
  return {
    terms,
    classes,
    mark: tag === undefined ? undefined : tagMark(tag),
    files: path === undefined || path === "" ? undefined : filesAt(database, path),
    limit,
    digest: digestOf([q, framework, spec_type, lifecycle, priority, tag, path, rules]),
  };
}

function passes(block: BlockClass, query: SpecQuery): boolean {
  if (query.rules === false && isRuleBlock(block)) return false;
  const { framework, spec_type, lifecycle, priority } = block;
  return (
    (query.framework === undefined || query.framework === framework) &&
    (query.spec_type === undefined || query.spec_type === spec_type) &&
    (query.priority === undefined || query.priority === priority) &&
    (query.lifecycle === undefined ? lifecycle !== "obsolete" : query.lifecycle === lifecycle)
  );
}

/** Files at a path: the file itself, those of a folder and below, or those that a glob matches. */
function filesAt(database: Connection, path: string): number[] {
  const clean = path.replace(/^\.\//, "").replace(/\/+$/, "");
  if (clean === "." || clean === "") return database.all<[number]>("SELECT id FROM files").map(([id]) => id);
  const rows = database.all<[number]>(
    // "0" is the character after "/", so the range holds all paths below the folder.
    "SELECT id FROM files WHERE path = ? OR (path > ? AND path < ?)",
    ...[clean, `${clean}/`, `${clean}0`],
  );
  if (rows.length > 0 || !/[*?[{]/.test(clean)) return rows.map(([id]) => id);
  const glob = compileGlob(clean);
  const files = database.all<[number, string]>("SELECT id, path FROM files");
  return files.filter(([, file]) => glob.matches(file)).map(([id]) => id);
}

/** The page of a match, and the counts of all of it. */
interface Match {
  readonly keys: readonly number[];
  readonly counts: MatchCounts;
  readonly nextCursor?: string;
}

interface MatchCounts {
  readonly total: number;
  readonly byFramework: Readonly<Record<string, number>>;
}

/** Adds up the blocks of a match from the numbers per class. */
function toCounts(
  perClass: Iterable<readonly [classId: number, blocks: number]>,
  classes: ReadonlyMap<number, BlockClass>,
): MatchCounts {
  const byFramework: Record<string, number> = {};
  let total = 0;
  for (const [id, blocks] of perClass) {
    const framework = classes.get(id)?.framework;
    if (blocks === 0 || framework === undefined) continue;
    byFramework[framework] = (byFramework[framework] ?? 0) + blocks;
    total += blocks;
  }
  return { total, byFramework: Object.fromEntries(Object.entries(byFramework).sort()) };
}

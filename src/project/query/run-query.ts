import type { Impact, ImpactRequest, SpecPage, SpecQuery } from "../../protocol/spec-query.ts";
import type { Connection } from "../../sqlite/statements.ts";
import type { ProjectSpecs } from "../project.ts";
import { type ProjectFacts, readBlocks } from "../store/block-reader.ts";
import { toKey } from "../store/block-row.ts";
import {
  type Match,
  type MatchCounts,
  parseCursor,
  planQuery,
  type QueryPlan,
  toCounts,
  toCursor,
  wrongCursor,
} from "./query-plan.ts";
import { searchBlocks } from "./search-blocks.ts";

export interface RunQueryOptions {
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

/** The blocks that pass the filters, in path, then position order. */
function listBlocks(database: Connection, { plan, cursor }: ListOptions): Match {
  const counts = countBlocks(database, plan);
  const [path, position] = cursor === undefined ? ["", -1] : placeOf(plan, cursor);
  const filter = filterOf(plan);
  const found =
    counts.total === 0
      ? []
      : database.all<PlacedKey>(
          `SELECT b.key, f.path, b.position FROM files f CROSS JOIN blocks b ON b.file = f.id
           WHERE f.path >= ? AND (f.path > ? OR b.position > ?) ${filter.sql}
           ORDER BY f.path, b.position LIMIT ?`,
          ...[path, path, position, ...filter.values, plan.limit + 1],
        );
  const page = found.slice(0, plan.limit);
  const last = page.at(-1);
  return {
    keys: page.map(([key]) => key),
    counts,
    ...(found.length > plan.limit && last && { nextCursor: toCursor(plan, [last[1], last[2]]) }),
  };
}

function placeOf(plan: QueryPlan, cursor: string): [string, number] {
  const [path, position] = parseCursor(plan, cursor);
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
 * A page for lists: leaves out the rules of instruction files (CLAUDE.md, Cursor's rules) where the project has other specs,
 * unless a search, a filter or `rules` asks for them. `rules_left_out` is their number.
 */
export function listSpecs(specs: Pick<ProjectSpecs, "query">, query: SpecQuery): SpecPage {
  const { q, framework, spec_type, path, tag, rules } = query;
  if ((q ?? framework ?? spec_type ?? path ?? tag ?? rules) !== undefined) return specs.query(query);
  const { cursor: _, ...first } = query;
  const others = specs.query({ ...first, rules: false, limit: 1 }).total_count;
  if (others === 0) return specs.query(query);
  const left = specs.query({ ...first, limit: 1 }).total_count - others;
  const page = specs.query({ ...query, rules: false });
  return left === 0 ? page : { ...page, rules_left_out: left };
}

/** All pages of an impact as one, for callers that cut the answer elsewhere. */
export function wholeImpact(specs: Pick<ProjectSpecs, "impact">, request: ImpactRequest): Impact {
  const { next_cursor, ...first } = specs.impact({ ...request, limit: 1_000 });
  const affected = [...first.affected];
  for (let cursor = next_cursor; cursor !== undefined; ) {
    const page = specs.impact({ ...request, limit: 1_000, cursor });
    affected.push(...page.affected);
    cursor = page.next_cursor;
  }
  return { ...first, affected };
}

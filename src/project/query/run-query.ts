import type { SpecPage, SpecQuery } from "../../protocol/spec-query.ts";
import type { Connection } from "../../sqlite/connection.ts";
import { type ProjectFacts, readBlocks } from "../store/block-reader.ts";
import { listBlocks } from "./list-blocks.ts";
import type { Match } from "./match.ts";
import { planQuery } from "./query-plan.ts";
import { searchBlocks } from "./search-blocks.ts";

export interface RunQueryOptions {
  readonly query: SpecQuery;
  readonly facts: ProjectFacts;
}

/** Answers a query over the blocks of an index. Throws `invalid_request` for a query or cursor that is none. */
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
    ...(match.nextCursor === undefined ? {} : { next_cursor: match.nextCursor }),
  };
}

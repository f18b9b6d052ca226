import type { DispatchRecord } from "../../../protocol/dispatch.ts";
import { type Query, query } from "../../../sqlite/statements.ts";
import type { DispatchFilter, Page } from "../../contract.ts";
import { badCursor, readPage } from "../database/read-page.ts";
import type { EngineBase } from "../engine-base.ts";
import { type DispatchRow, toRecord } from "./dispatch-rows.ts";

const columns = ["agent", "instance_id", "status"] as const;
type Column = (typeof columns)[number];

/** Newest first, by their ids, which sort by time: the last one of a page is the cursor to the next. */
export function createDispatchList(base: EngineBase): (filter?: DispatchFilter) => Page<DispatchRecord> {
  const { database, blobs } = base;
  const queries = new Map<string, Query<DispatchRow>>();

  function find(used: readonly Column[], filter: DispatchFilter): Query<DispatchRow> {
    const sql = `SELECT * FROM dispatches INDEXED BY ${indexFor(used, filter)}
      WHERE ${used.map((column) => `${column} = ? AND `).join("")}
      ${filter.status === "completed" || filter.status === undefined ? "" : "status <> 'completed' AND"}
      dispatch_id < ? ORDER BY dispatch_id DESC LIMIT ?`;
    let found = queries.get(sql);
    if (found === undefined) {
      found = query<DispatchRow>(database, sql);
      queries.set(sql, found);
    }
    return found;
  }

  return (filter = {}) => {
    const { cursor, limit } = filter;
    if (cursor !== undefined && !isDispatchId(cursor)) throw badCursor();
    const used = columns.filter((column) => filter[column] !== undefined);
    const values = used.map((column) => String(filter[column]));
    return readPage({
      rows: (most) => find(used, filter).each(...values, cursor ?? "~", most),
      limit,
      size: ({ input, result }) => blobs.size(input) + (result === null ? 0 : blobs.size(result)),
      toItem: (row) => toRecord(row, base),
      toCursor: ({ dispatch_id }) => dispatch_id,
    });
  };
}

function isDispatchId(text: string): boolean {
  return /^dispatch_[0-9A-HJKMNP-TV-Z]{26}$/.test(text);
}

/** Named, because SQLite's guess without statistics may be a walk over all that ever completed. */
function indexFor(used: readonly Column[], filter: DispatchFilter): string {
  if (filter.status !== undefined && filter.status !== "completed") return "dispatches_by_status";
  if (used.includes("instance_id")) return "dispatches_by_instance";
  return used.includes("agent") ? "dispatches_by_agent" : "dispatches_by_id";
}

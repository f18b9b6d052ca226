import { KitError } from "../../../base/kit-error.ts";
import type { DispatchRecord } from "../../../protocol/dispatch.ts";
import type { DispatchFilter, Page } from "../../contract.ts";
import { type Query, query } from "../database/query.ts";
import type { EngineBase } from "../engine-base.ts";
import { type DispatchRow, toRecord } from "./dispatch-rows.ts";

const columns = ["agent", "instance_id", "status"] as const;
type Column = (typeof columns)[number];

/** Newest first, by their ids, which sort by time: the last one of a page is the cursor to the next. */
export function createDispatchList(base: EngineBase): (filter?: DispatchFilter) => Page<DispatchRecord> {
  const queries = new Map<string, Query<DispatchRow>>();

  function find(used: readonly Column[], filter: DispatchFilter): Query<DispatchRow> {
    const sql = `SELECT * FROM dispatches INDEXED BY ${indexFor(used, filter)}
      WHERE ${used.map((column) => `${column} = ? AND `).join("")}
      ${filter.status === "completed" || filter.status === undefined ? "" : "status <> 'completed' AND"}
      dispatch_id < ? ORDER BY dispatch_id DESC LIMIT ?`;
    let found = queries.get(sql);
    if (found === undefined) {
      found = query<DispatchRow>(base.database, sql);
      queries.set(sql, found);
    }
    return found;
  }

  return (filter = {}) => {
    const limit = filter.limit ?? 50;
    if (!Number.isInteger(limit) || limit < 1 || limit > 1_000) throw badLimit();
    const used = columns.filter((column) => filter[column] !== undefined);
    const values = used.map((column) => String(filter[column]));
    const rows = find(used, filter).all(...values, filter.cursor ?? "~", limit + 1);
    const items = rows.slice(0, limit).map((row) => toRecord(row, base.blobs));
    const last = items.at(-1);
    return rows.length > limit && last !== undefined ? { items, next_cursor: last.dispatch_id } : { items };
  };
}

/** Named, because SQLite's guess without statistics may be a walk over all that ever completed. */
function indexFor(used: readonly Column[], filter: DispatchFilter): string {
  if (filter.status !== undefined && filter.status !== "completed") return "dispatches_by_status";
  if (used.includes("instance_id")) return "dispatches_by_instance";
  return used.includes("agent") ? "dispatches_by_agent" : "dispatches_by_id";
}

function badLimit(): KitError {
  return new KitError({ code: "invalid_request", message: "A limit is a whole number from 1 to 1,000." });
}

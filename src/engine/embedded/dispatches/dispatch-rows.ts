import type { DispatchRecord } from "../../../protocol/dispatch.ts";
import { type Query, query } from "../../../sqlite/statements.ts";
import type { DispatchFilter, Page } from "../../contract.ts";
import {
  type DispatchRow,
  type DispatchStore,
  isDispatchId,
  toRecord,
} from "../../shared/dispatches/dispatch-store.ts";
import { badCursor, readPage } from "../../shared/read-page.ts";
import type { EmbeddedBase } from "../embedded-base.ts";

/** The rows of inputs, for the attempts at them. */
export function createDispatchRows(base: EmbeddedBase): DispatchStore {
  const { database, clock, time } = base;
  const claim = query<DispatchRow>(
    database,
    `UPDATE dispatches SET status = 'running', attempts = attempts + 1, fence = ?, next_attempt_at = NULL,
       started_at = coalesce(started_at, ?)
     WHERE dispatch_id = ? AND status = 'queued' AND coalesce(next_attempt_at, 0) <= ? RETURNING *`,
  );
  const nextAttempt = query<Pick<DispatchRow, "next_attempt_at">>(
    database,
    "SELECT next_attempt_at FROM dispatches WHERE dispatch_id = ? AND status = 'queued'",
  );
  const finish = query(
    database,
    `UPDATE dispatches SET ended_at = ?1, status = iif(cancelling, 'cancelled', ?2),
       result = iif(cancelling, NULL, ?3), error = ?4, cancelling = 0
     WHERE dispatch_id = ?5 AND status = 'running' AND fence = ?6`,
  );
  const requeue = query(
    database,
    `UPDATE dispatches SET status = 'queued', attempts = attempts - ?1, next_attempt_at = ?2, error = ?3
     WHERE dispatch_id = ?4 AND status = 'running' AND fence = ?5 AND cancelling = 0`,
  );
  return {
    claim: ({ dispatch_id }, fence) =>
      base.commit(() => claim.get(fence, clock.now(), dispatch_id, time.now()), { fence }),
    dueAt: async (dispatchId) => nextAttempt.get(dispatchId)?.next_attempt_at,
    async finish({ dispatch_id, fence }, { status, result, error }) {
      await base.commit(() => finish.run(clock.now(), status, result, error, dispatch_id, fence), { fence });
    },
    async requeue({ dispatch_id, fence }, { counts, at, error }) {
      const write = (): number => requeue.run(counts ? 0 : 1, at, error, dispatch_id, fence);
      return (await base.commit(write, { fence })) > 0;
    },
  };
}

const columns = ["agent", "instance_id", "status"] as const;
type Column = (typeof columns)[number];

/** Newest first, by their ids, which sort by time: the last one of a page is the cursor to the next. */
export function createDispatchList(base: EmbeddedBase): (filter?: DispatchFilter) => Page<DispatchRecord> {
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

/** Named, because SQLite's guess without statistics may be a walk over all that ever completed. */
function indexFor(used: readonly Column[], filter: DispatchFilter): string {
  if (filter.status !== undefined && filter.status !== "completed") return "dispatches_by_status";
  if (used.includes("instance_id")) return "dispatches_by_instance";
  return used.includes("agent") ? "dispatches_by_agent" : "dispatches_by_id";
}

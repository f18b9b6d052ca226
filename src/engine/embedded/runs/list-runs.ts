import { type Query, query } from "../../../sqlite/statements.ts";
import type { Page, RunFilter } from "../../contract.ts";
import { badCursor, readPage } from "../database/read-page.ts";
import type { EngineBase } from "../engine-base.ts";
import type { RunRow } from "./run-rows.ts";

/** Pages of runs, newest first. A cursor is the run that the page before ended with. */
export function createRunList({ database, blobs }: EngineBase): (filter: RunFilter) => Page<RunRow> {
  const queries = new Map<string, Query<RunRow>>();

  function find({ workflow, status }: RunFilter): Query<RunRow> {
    const conditions = [
      workflow === undefined ? "" : "workflow = ? AND",
      status === undefined ? "" : "status = ? AND",
      // Says to SQLite that the index serves, which leaves the completed ones out.
      status === undefined || status === "completed" ? "" : "status <> 'completed' AND",
    ];
    const sql = `SELECT * FROM runs ${indexFor({ workflow, status })}
      WHERE ${conditions.join(" ")} id < ? ORDER BY id DESC LIMIT ?`;
    let found = queries.get(sql);
    if (found === undefined) {
      found = query<RunRow>(database, sql);
      queries.set(sql, found);
    }
    return found;
  }

  return (filter) => {
    const { workflow, status, limit, cursor } = filter;
    const before = cursor === undefined ? Number.MAX_SAFE_INTEGER : placeOf(cursor);
    const values = [workflow, status].filter((value) => value !== undefined);
    return readPage({
      rows: (most) => find(filter).each(...values, before, most),
      limit,
      size: ({ payload, result }) => blobs.size(payload) + (result === null ? 0 : blobs.size(result)),
      toItem: (row) => row,
      toCursor: ({ id }) => String(id),
    });
  };
}

function indexFor({
  workflow,
  status,
}: {
  workflow: string | undefined;
  status: string | undefined;
}): string {
  if (status !== undefined && status !== "completed") return "INDEXED BY runs_by_status";
  return workflow === undefined ? "" : "INDEXED BY runs_by_workflow";
}

function placeOf(cursor: string): number {
  if (!/^\d{1,15}$/.test(cursor)) throw badCursor();
  return Number(cursor);
}

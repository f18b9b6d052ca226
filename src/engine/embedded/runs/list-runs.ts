import type { Page, RunFilter } from "../../contract.ts";
import { type Query, query } from "../database/query.ts";
import type { EngineBase } from "../engine-base.ts";
import { invalid } from "./check-name.ts";
import type { RunRow } from "./run-rows.ts";

/** Pages of runs, newest first. A cursor is the run that the page before ended with. */
export function createRunList({ database }: EngineBase): (filter: RunFilter) => Page<RunRow> {
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
    const { workflow, status, limit = 50, cursor } = filter;
    if (!Number.isInteger(limit) || limit < 1 || limit > 1_000) {
      throw invalid("A limit is a whole number from 1 to 1,000.");
    }
    const values = [workflow, status].filter((value) => value !== undefined);
    const rows = find(filter).all(
      ...values,
      cursor === undefined ? Number.MAX_SAFE_INTEGER : placeOf(cursor),
      limit + 1,
    );
    const items = rows.slice(0, limit);
    const last = items.at(-1);
    return rows.length > limit && last !== undefined ? { items, next_cursor: String(last.id) } : { items };
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
  if (!/^\d{1,15}$/.test(cursor)) throw invalid("The cursor is none that a list has given.");
  return Number(cursor);
}

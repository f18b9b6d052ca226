import { isoTime } from "../../../base/clock.ts";
import type { EventError } from "../../../protocol/event.ts";
import type { RunRecord, RunStatus, RunWait } from "../../../protocol/run.ts";
import { type Query, query } from "../../../sqlite/statements.ts";
import type { Page, RunFilter } from "../../contract.ts";
import type { Blobs } from "../../engine-base.ts";
import type { RunRow } from "../../execution/run-journal.ts";
import { badCursor, readPage } from "../../read-page.ts";
import { createRowReader } from "../database/stored-json.ts";
import type { EmbeddedBase } from "../embedded-base.ts";

export function toRunRecord(
  row: RunRow,
  blobs: Blobs,
  more: { readonly waits: readonly RunWait[]; readonly event_count: number },
): RunRecord {
  const { started_at, ended_at } = row;
  const values = createRowReader((text) => blobs.load(text));
  return {
    run_id: row.run_id,
    workflow: row.workflow,
    ...(row.parent === null ? {} : { parent_run_id: row.parent }),
    status: row.status,
    payload: values.read(row.payload),
    ...(row.result === null ? {} : { result: values.read(row.result) }),
    ...(row.error === null ? {} : { error: values.read(row.error) as EventError }),
    ...values.fault(),
    accepted_at: isoTime(row.accepted_at),
    ...(started_at === null ? {} : { started_at: isoTime(started_at) }),
    ...(ended_at === null ? {} : { ended_at: isoTime(ended_at) }),
    ...(started_at === null || ended_at === null ? {} : { duration_ms: Math.max(0, ended_at - started_at) }),
    ...(more.waits.length === 0 ? {} : { waiting_for: more.waits }),
    event_count: more.event_count,
  };
}

export function hasEnded(status: RunStatus): boolean {
  return status === "completed" || status === "failed" || status === "cancelled";
}

/**
 * A run has a line of its own, but for those under which the process has died several times: they go one
 * at a time, so that the one to blame is found out, and the others are not given up with it.
 */
export function lineOfRun({ run_id, crashes }: Pick<RunRow, "run_id" | "crashes">): string {
  return isRisky({ crashes }) ? "runs/suspects" : `run/${run_id}`;
}

export function isRisky({ crashes }: Pick<RunRow, "crashes">): boolean {
  return crashes > 2;
}

/** Pages of runs, newest first. A cursor is the run that the page before ended with. */
export function createRunList({ database, blobs }: EmbeddedBase): (filter: RunFilter) => Page<RunRow> {
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

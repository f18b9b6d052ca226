import type { RunStatus } from "../../../protocol/run.ts";
import { type Query, query } from "../../../sqlite/statements.ts";
import type { Page, RunFilter } from "../../contract.ts";
import { badCursor, readPage } from "../../shared/read-page.ts";
import type { RunRow, RunStore } from "../../shared/runs/run-store.ts";
import type { EmbeddedBase } from "../embedded-base.ts";
import type { JournalRows } from "./journal-rows.ts";

/** The rows of runs, for their execution. */
export function createRunRows(base: EmbeddedBase, journal: JournalRows): RunStore {
  const { database, clock } = base;
  // One that was claimed and could not be begun is claimed again.
  const claim = query<RunRow>(
    database,
    `UPDATE runs SET status = 'running', started_at = coalesce(started_at, ?)
     WHERE id = ? AND status IN ('queued', 'running') RETURNING *`,
  );
  const isCancelling = query(database, "SELECT 1 FROM runs WHERE id = ? AND cancelling = 1");
  const dequeue = query(database, "DELETE FROM run_queue WHERE run = ?");
  const enqueue = query(database, "INSERT INTO run_queue (run) VALUES (?)");
  const settle = query(
    database,
    `UPDATE runs SET ended_at = ?, status = iif(cancelling, 'cancelled', ?), result = iif(cancelling, NULL, ?),
       error = iif(cancelling, NULL, ?), cancelling = 0 WHERE id = ? AND status = 'running'`,
  );
  const putBack = query<Pick<RunRow, "status">>(
    database,
    `UPDATE runs SET ended_at = iif(cancelling, ?, NULL), wake_at = iif(cancelling, NULL, ?),
       status = iif(cancelling, 'cancelled', ?), cancelling = 0 WHERE id = ? AND status = 'running' RETURNING status`,
  );

  /** In a transaction. Gives the status that the run has now. */
  function requeue(run: RunRow, status: "queued" | "waiting", wakeAt: number | null): RunStatus {
    const now = putBack.get(clock.now(), wakeAt, status, run.id)?.status ?? status;
    if (now === "queued") enqueue.run(run.id);
    return now;
  }

  return {
    claim: ({ id }, fence) =>
      base.commit(
        () => {
          dequeue.run(id);
          return claim.get(clock.now(), id);
        },
        { fence },
      ),
    isCancelling: async ({ id }) => isCancelling.get(id) !== undefined,
    async settle({ id }, { status, result, error }, fence) {
      await base.commit(() => settle.run(clock.now(), status, result, error, id), { fence });
    },
    putBack: (run, how, fence) =>
      base.commit(
        () =>
          // A signal may have come while the run was being suspended.
          how.status === "queued" || journal.canGoOn(run.id)
            ? requeue(run, "queued", null)
            : requeue(run, "waiting", how.wakeAt ?? null),
        { fence },
      ),
  };
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

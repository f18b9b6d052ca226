import type { RunStatus } from "../../protocol/run.ts";
import { leaseLost } from "../shared/engine-base.ts";
import {
  crashText,
  mostCrashes,
  type PutBack,
  type RunEnd,
  type RunPlace,
  type RunRow,
  type RunStore,
} from "../shared/runs/run-store.ts";
import type { PostgresBase } from "./postgres-base.ts";
import { shardOf } from "./shards.ts";

/** Whether a run waits for a signal that is there. */
const isSignalled = `EXISTS (
  SELECT 1 FROM $s.run_journal JOIN $s.run_signals USING (run, name)
  WHERE run = $1 AND NOT taken AND kind = 'wait' AND state = 'pending')`;

/** The rows of runs, for their execution. */
export class RunRows implements RunStore {
  readonly #base: PostgresBase;

  constructor(base: PostgresBase) {
    this.#base = base;
  }

  async claim({ id, run_id }: RunPlace, fence: number): Promise<RunRow | undefined> {
    return await this.#base.database.row<RunRow>(
      `WITH own AS MATERIALIZED (SELECT fence FROM $s.shards WHERE shard = $2 AND fence = $3 FOR SHARE)
       UPDATE $s.runs AS r SET status = 'running', fence = own.fence, wake_at = NULL,
         started_at = coalesce(started_at, $4)
       FROM own WHERE r.id = $1 AND (r.status = 'queued' OR (r.status = 'running' AND r.fence = own.fence))
       RETURNING r.*`,
      [id, shardOf({ run_id }), fence, this.#base.clock.now()],
    );
  }

  async isCancelling({ id }: RunRow): Promise<boolean> {
    const row = await this.#base.database.row("SELECT 1 FROM $s.runs WHERE id = $1 AND cancelling", [id]);
    return row !== undefined;
  }

  async settle({ id }: RunRow, { status, result, error }: RunEnd, fence: number): Promise<void> {
    const row = await this.#base.database.row(
      `UPDATE $s.runs SET ended_at = $3, cancelling = false, status = CASE WHEN cancelling THEN 'cancelled' ELSE $4 END,
         result = CASE WHEN cancelling THEN NULL ELSE $5 END, error = CASE WHEN cancelling THEN NULL ELSE $6 END
       WHERE id = $1 AND fence = $2 AND status = 'running' RETURNING 1`,
      [id, fence, this.#base.clock.now(), status, result, error],
    );
    if (row === undefined) throw leaseLost();
  }

  async putBack({ id }: RunRow, how: PutBack, fence: number): Promise<RunStatus> {
    const now = this.#base.clock.now();
    const wakeAt = how.status === "waiting" ? (how.wakeAt ?? null) : null;
    return await this.#base.database.transaction(async (ask) => {
      // The row is locked first: a signal that comes now is seen here, or sees that the run waits.
      const own = await ask(
        "SELECT 1 FROM $s.runs WHERE id = $1 AND fence = $2 AND status = 'running' FOR UPDATE",
        [id, fence],
      );
      if (own.length === 0) throw leaseLost();
      const [row] = await ask<Pick<RunRow, "status">>(
        `WITH next AS (
           SELECT CASE WHEN cancelling THEN 'cancelled' WHEN $2::text = 'queued' OR ${isSignalled} THEN 'queued'
             ELSE 'waiting' END AS status FROM $s.runs WHERE id = $1
         )
         UPDATE $s.runs AS r SET status = next.status, cancelling = false,
           queued_as = CASE WHEN next.status = 'queued' THEN nextval('$s.run_queue') ELSE queued_as END,
           wake_at = CASE WHEN next.status = 'waiting' THEN $3::bigint END,
           ended_at = CASE WHEN next.status = 'cancelled' THEN $4::bigint END
         FROM next WHERE r.id = $1 RETURNING r.status`,
        [id, how.status, wakeAt, now],
      );
      return row?.status ?? how.status;
    });
  }
}

/**
 * Takes over the runs that another node has left at work: queues them, but for those whose end was asked for, and those that
 * seem to be what their process dies of. Only a run that has got no further since the last crash comes nearer to that.
 * Gives the runs that have ended by it.
 */
export async function recoverRuns(base: PostgresBase, shards: readonly number[]): Promise<readonly RunRow[]> {
  const rows = await base.database.rows<RunRow>(
    `WITH abandoned AS (
       SELECT r.id, CASE WHEN progress.entries > r.crashed_at THEN 1 ELSE r.crashes + 1 END AS crashes, progress.entries
       FROM $s.runs AS r JOIN $s.shards AS own ON own.shard = r.shard AND r.fence < own.fence,
         LATERAL (SELECT (count(*) + count(ended_as))::int AS entries FROM $s.run_journal WHERE run = r.id) AS progress
       WHERE r.shard = ANY($1) AND r.status = 'running' FOR UPDATE OF r
     )
     UPDATE $s.runs AS r SET crashes = a.crashes, crashed_at = a.entries, cancelling = false,
       queued_as = nextval('$s.run_queue'),
       status = CASE WHEN r.cancelling THEN 'cancelled' WHEN a.crashes >= ${mostCrashes} THEN 'failed' ELSE 'queued' END,
       ended_at = CASE WHEN r.cancelling OR a.crashes >= ${mostCrashes} THEN $2::bigint END,
       error = CASE WHEN NOT r.cancelling AND a.crashes >= ${mostCrashes} THEN $3 END
     FROM abandoned AS a WHERE r.id = a.id RETURNING r.*`,
    [shards, base.clock.now(), crashText],
  );
  return rows.filter(({ status }) => status !== "queued");
}

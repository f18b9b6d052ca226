import { Batcher } from "../../postgres/batcher.ts";
import type { DispatchRecord, DispatchStatus } from "../../protocol/dispatch.ts";
import type { DispatchFilter, Page } from "../contract.ts";
import type { CountedAttempts } from "../shared/counted-attempts.ts";
import {
  type DispatchEnd,
  type DispatchRow,
  type DispatchStore,
  isDispatchId,
  listedDispatches,
  type QueuedDispatch,
  toRecord,
} from "../shared/dispatches/dispatch-store.ts";
import { leaseLost } from "../shared/engine-base.ts";
import { badCursor } from "../shared/stored-rows.ts";
import { readList } from "./lists.ts";
import type { PostgresBase } from "./postgres-base.ts";
import { quick } from "./quick-commit.ts";
import { shardOf } from "./shards.ts";

/** While there are many claims or settlements, they are written a hundred times a second. */
const spacingMs = 10;

interface Claim {
  readonly dispatch: QueuedDispatch;
  readonly fence: number;
}

type Claimed = Pick<
  DispatchRow,
  | "dispatch_id"
  | "attempts"
  | "spent"
  | "progress"
  | "fence"
  | "started_at"
  | "accepted_at"
  | "idempotency_key"
  | "error"
  | "input"
  | "trace"
  | "status"
  | "cancelling"
>;

interface Settlement {
  readonly row: DispatchRow;
  readonly end: DispatchEnd;
}

/** The rows of inputs. Concurrent claims share a statement, and so do concurrent settlements. */
export class DispatchRows implements DispatchStore {
  readonly #base: PostgresBase;
  readonly #claims: Batcher<Claim, DispatchRow | undefined>;
  readonly #settlements: Batcher<Settlement, void>;

  constructor(base: PostgresBase) {
    this.#base = base;
    this.#claims = new Batcher((all) => this.#claimAll(all), { spacingMs });
    this.#settlements = new Batcher<Settlement, void>((all) => this.#finishAll(all), { spacingMs });
  }

  claim(dispatch: QueuedDispatch, fence: number): Promise<DispatchRow | undefined> {
    return this.#claims.add({ dispatch, fence });
  }

  finish(row: DispatchRow, end: DispatchEnd): Promise<void> {
    return this.#settlements.add({ row, end });
  }

  async dueAt(dispatchId: string): Promise<number | null | undefined> {
    const row = await this.#base.database.row<Pick<DispatchRow, "next_attempt_at">>(
      "SELECT next_attempt_at FROM $s.dispatches WHERE dispatch_id = $1 AND status = 'queued'",
      [dispatchId],
    );
    return row?.next_attempt_at;
  }

  async requeue(
    { dispatch_id, fence }: DispatchRow,
    { counted, at, error }: Parameters<DispatchStore["requeue"]>[1],
  ): Promise<boolean> {
    const row = await this.#base.database.row<{ back: boolean }>(
      `UPDATE $s.dispatches SET
         status = CASE WHEN cancelling THEN status ELSE 'queued' END,
         attempts = attempts - CASE WHEN cancelling THEN 0 ELSE $1::int END,
         next_attempt_at = CASE WHEN cancelling THEN NULL ELSE $2::bigint END,
         error = CASE WHEN cancelling THEN error ELSE $3 END,
         spent = coalesce($6, spent), progress = coalesce($7, progress)
       WHERE dispatch_id = $4 AND status = 'running' AND fence = $5 RETURNING NOT cancelling AS back`,
      [counted === undefined ? 1 : 0, at, error, dispatch_id, fence, counted?.spent, counted?.progress],
    );
    if (row === undefined) throw leaseLost();
    return row.back;
  }

  async recount({ dispatch_id, fence }: DispatchRow, { spent, progress }: CountedAttempts): Promise<void> {
    await this.#base.database.run(
      `UPDATE $s.dispatches SET spent = $1, progress = $2, charged = '{}'
       WHERE dispatch_id = $3 AND status = 'running' AND fence = $4`,
      [spent, progress, dispatch_id, fence],
    );
  }

  async setIdle({ dispatch_id, fence }: DispatchRow, idle: boolean): Promise<void> {
    await this.#base.database.run(
      "UPDATE $s.dispatches SET idle = $1 WHERE dispatch_id = $2 AND status = 'running' AND fence = $3",
      [idle, dispatch_id, fence],
    );
  }

  async find(dispatchId: string): Promise<DispatchRow | undefined> {
    return await this.#base.database.row<DispatchRow>("SELECT * FROM $s.dispatches WHERE dispatch_id = $1", [
      dispatchId,
    ]);
  }

  async cancel(dispatchId: string): Promise<DispatchRow | undefined> {
    return await this.#base.database.row<DispatchRow>(
      `UPDATE $s.dispatches SET cancelling = (started_at IS NOT NULL), next_attempt_at = NULL,
         ended_at = CASE WHEN started_at IS NULL THEN $1::bigint END,
         status = CASE WHEN started_at IS NULL THEN 'cancelled' ELSE status END
       WHERE dispatch_id = $2 AND status IN ('queued', 'running') RETURNING *`,
      [this.#base.clock.now(), dispatchId],
    );
  }

  async openAmong(dispatchIds: readonly string[]): Promise<readonly string[]> {
    const rows = await this.#base.database.rows<Pick<DispatchRow, "dispatch_id">>(
      "SELECT dispatch_id FROM $s.dispatches WHERE dispatch_id = ANY($1) AND ended_at IS NULL",
      [dispatchIds],
    );
    return rows.map(({ dispatch_id }) => dispatch_id);
  }

  async list(filter: DispatchFilter): Promise<Page<DispatchRecord>> {
    const { cursor, agent, instance_id, session, status } = filter;
    if (cursor !== undefined && !isDispatchId(cursor)) throw badCursor();
    return await readList<DispatchRow, DispatchRecord>(
      this.#base,
      { filter, listed: listedDispatches },
      {
        from: rowsWith(status),
        before: cursor ?? listedDispatches.last,
        columns: { agent, instance_id, session },
        size: ({ input, result }) => input.length + (result?.length ?? 0),
        toItem: (row) => toRecord(row, this.#base),
        toCursor: ({ dispatch_id }) => dispatch_id,
      },
    );
  }

  /**
   * Locks the rows of the shards, so that a claim under an old fence finds nothing. If a crash of the database loses a claim, the
   * settlement finds no running row, and the input is claimed again; its session tells what was done. A repeated claim finds the
   * row that the first one has claimed although its answer was lost: this node has at most one attempt at an input.
   */
  async #claimAll(all: readonly Claim[]): Promise<readonly (DispatchRow | undefined)[]> {
    const rows = await this.#base.database.rows<Claimed>(
      `WITH wanted AS (
         SELECT * FROM unnest($1::text[], $2::int[], $3::bigint[]) AS wanted (dispatch_id, shard, fence)
       ), ${quick}, own AS MATERIALIZED (
         SELECT shard, fence FROM $s.shards WHERE shard = ANY($2::int[]) ORDER BY shard FOR SHARE
       )
       UPDATE $s.dispatches AS d SET status = CASE WHEN cancelling THEN status ELSE 'running' END,
         attempts = attempts + CASE WHEN cancelling OR status = 'running' THEN 0 ELSE 1 END, fence = own.fence,
         next_attempt_at = NULL, idle = false, started_at = coalesce(started_at, $4)
       FROM wanted JOIN own USING (shard, fence), quick
       WHERE d.ended_at IS NULL AND d.dispatch_id = wanted.dispatch_id AND (d.status = 'queued' AND coalesce(d.next_attempt_at, 0) <= $4
         OR d.status = 'running' AND d.fence = own.fence)
       RETURNING d.dispatch_id, d.attempts, d.spent, d.progress, d.fence, d.started_at, d.accepted_at, d.idempotency_key, d.error, d.input,
         d.trace, d.status, d.cancelling`,
      [
        all.map(({ dispatch }) => dispatch.dispatch_id),
        all.map(({ dispatch }) => shardOf(dispatch)),
        all.map(({ fence }) => fence),
        this.#base.clock.now(),
      ],
    );
    const byId = new Map(rows.map((row) => [row.dispatch_id, row]));
    return all.map(({ dispatch }) => {
      const row = byId.get(dispatch.dispatch_id);
      if (row === undefined) return undefined;
      const now = { next_attempt_at: null, ended_at: null, result: null };
      return { ...dispatch, ...row, ...now };
    });
  }

  async #finishAll(all: readonly Settlement[]): Promise<readonly (Error | undefined)[]> {
    const rows = await this.#base.database.rows<Pick<DispatchRow, "dispatch_id">>(
      `UPDATE $s.dispatches AS d SET ended_at = $6, cancelling = false, attempts = attempts - ended.unbegun,
         status = CASE WHEN d.cancelling THEN 'cancelled' ELSE ended.status END,
         result = CASE WHEN d.cancelling THEN NULL ELSE ended.result END, error = ended.error
       FROM unnest($1::text[], $2::bigint[], $3::text[], $4::text[], $5::text[], $7::int[])
         AS ended (dispatch_id, fence, status, result, error, unbegun)
       WHERE d.ended_at IS NULL AND d.dispatch_id = ended.dispatch_id AND d.fence = ended.fence
         AND (d.status = 'running' OR d.cancelling)
       RETURNING d.dispatch_id`,
      [
        all.map(({ row }) => row.dispatch_id),
        all.map(({ row }) => row.fence),
        all.map(({ end }) => end.status),
        all.map(({ end }) => end.result),
        all.map(({ end }) => end.error),
        this.#base.clock.now(),
        all.map(({ end }) => Number(end.unbegun === true)),
      ],
    );
    const settled = new Set(rows.map(({ dispatch_id }) => dispatch_id));
    return all.map(({ row }) => (settled.has(row.dispatch_id) ? undefined : leaseLost()));
  }
}

const withoutResult = "(SELECT * FROM $s.dispatches WHERE ended_at IS NOT NULL AND result IS NULL)";
/** Open dispatches are few: `OFFSET 0` makes Postgres read and sort them, instead of scanning all dispatches by id. */
const open = "(SELECT * FROM $s.dispatches WHERE ended_at IS NULL OFFSET 0)";
/** The rows to search for a status; most rows are completed. */
const ofStatus: Readonly<Record<DispatchStatus, string>> = {
  queued: open,
  running: open,
  failed: withoutResult,
  cancelled: withoutResult,
  completed: "$s.dispatches",
};
/** The rows to search for some statuses; most rows are completed. */
function rowsWith(status: DispatchFilter["status"]): string {
  if (status === undefined) return "$s.dispatches";
  const sources = new Set((typeof status === "string" ? [status] : status).map((one) => ofStatus[one]));
  const [only] = sources;
  return only === undefined || sources.size > 1 ? "$s.dispatches" : only;
}

/**
 * Whether an instance has an open dispatch, or an open run may use it: a run with the instance's id, or one that was
 * accepted by a time (ms since 1970).
 */
export async function hasOpenWork(
  database: PostgresBase["database"],
  owned: { readonly agent: string; readonly instance_id: string },
  acceptedBy: number,
): Promise<boolean> {
  const row = await database.row(
    `SELECT 1 FROM $s.dispatches WHERE shard = $4 AND ended_at IS NULL AND agent = $1 AND instance_id = $2
     UNION ALL
     SELECT 1 FROM $s.runs WHERE status IN ('queued', 'running', 'waiting') AND (accepted_at <= $3 OR run_id = $2)
     LIMIT 1`,
    [owned.agent, owned.instance_id, acceptedBy, shardOf(owned)],
  );
  return row !== undefined;
}

import type { SessionKey } from "../../protocol/session-entry.ts";
import { leaseLost } from "../shared/engine-base.ts";
import { type CallRow, fieldsOf, type StoredCall, type WaitingCallStore } from "../shared/waiting-calls.ts";
import type { PostgresBase } from "./postgres-base.ts";
import { shardOf } from "./shards.ts";

/** SQL: whether the dispatch or the run of a call `c` is open. */
const workIsOpen = `(EXISTS (SELECT 1 FROM $s.dispatches AS d WHERE d.dispatch_id = c.work AND d.ended_at IS NULL AND NOT d.cancelling)
  OR EXISTS (SELECT 1 FROM $s.runs AS r WHERE r.run_id = c.work AND r.ended_at IS NULL AND NOT r.cancelling))`;

/** SQL: whether the node of a call `c` lives, and holds the lease under which it asked. */
const isHeld = `CASE WHEN c.fence IS NULL THEN c.node IN (SELECT node FROM $s.nodes)
  ELSE EXISTS (SELECT 1 FROM $s.shards AS s JOIN $s.nodes USING (node) WHERE s.shard = c.shard AND s.fence = c.fence AND s.node = c.node) END`;

/** SQL: whether a call `c` waits for a decision. */
const waitsForDecision = `(c.decision IS NULL AND CASE WHEN c.work IS NULL THEN ${isHeld} ELSE ${workIsOpen} END)`;

/** SQL: whether a call `c` has the fields $1, $2 and $3; null stands for any. */
const isWithin = `($1::text IS NULL OR c.agent = $1) AND ($2::text IS NULL OR c.instance_id = $2)
  AND ($3::text IS NULL OR c.session = $3)`;

const hasSameArgs = "(old.args_hash IS NULL OR old.args_hash = excluded.args_hash)";

/** Rows that one statement deletes at most. */
const pruned = 500;

/** The rows of waiting calls. `node` names the node that waits for a decision; it is empty once it has one. */
export function createWaitingCallRows({ database, clock, news, ownership }: PostgresBase): WaitingCallStore {
  const { node } = ownership;
  return {
    async add({ request, work, text, args_hash }) {
      const { approval_id, agent, instance_id, session, operation_id, requested_at } = request;
      const row = await database.row<{ decision: string | null }>(
        `INSERT INTO $s.waiting_calls AS old (call_id, agent, instance_id, session, operation_id, requested_at, node,
           request, written_at, work, shard, fence, args_hash)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)
         ON CONFLICT (call_id) DO UPDATE SET operation_id = excluded.operation_id, request = excluded.request, work = excluded.work,
           shard = excluded.shard, fence = excluded.fence, args_hash = excluded.args_hash,
           node = CASE WHEN old.decision IS NOT NULL AND ${hasSameArgs} THEN '' ELSE excluded.node END,
           decision = CASE WHEN ${hasSameArgs} THEN old.decision END,
           requested_at = CASE WHEN ${hasSameArgs} THEN old.requested_at ELSE excluded.requested_at END
         WHERE old.fence IS NULL OR old.fence <= excluded.fence
         RETURNING decision`,
        [
          ...[approval_id, agent, instance_id, session, operation_id, requested_at, node, text, clock.now()],
          work?.resumes ?? null,
          work === undefined ? null : shardOf(work.owned),
          work?.fence ?? null,
          args_hash,
        ],
      );
      if (row === undefined) throw leaseLost();
      return row.decision;
    },
    async settle({ request, work }, decision) {
      const row = await database.row<{ decision: string | null }>(
        `WITH settled AS (
           UPDATE $s.waiting_calls SET decision = coalesce(decision, $2), written_at = $3,
             node = CASE WHEN node = $4 THEN '' ELSE node END
           WHERE call_id = $1 AND (fence IS NULL OR fence <= $5::bigint) RETURNING decision)
         SELECT settled.decision FROM $s.waiting_calls LEFT JOIN settled ON true WHERE call_id = $1`,
        [request.approval_id, decision, clock.now(), node, work?.fence ?? null],
      );
      if (row?.decision === null) throw leaseLost();
      return row?.decision;
    },
    async withdraw({ request, work }: StoredCall) {
      await database.run(
        `DELETE FROM $s.waiting_calls
         WHERE call_id = $1 AND node = $2 AND fence IS NOT DISTINCT FROM $3::bigint AND decision IS NULL`,
        [request.approval_id, node, work?.fence ?? null],
      );
    },
    async decide(approvalId, decision, within) {
      const row = await database.row<{ node: string }>(
        `UPDATE $s.waiting_calls AS c SET decision = $5, written_at = $6
         WHERE call_id = $4 AND ${isWithin} AND ${waitsForDecision} RETURNING node`,
        [...fieldsOf(within), approvalId, decision, clock.now()],
      );
      if (row !== undefined && row.node !== node) news.publish(["approval", approvalId]);
      return row !== undefined;
    },
    async decisionOf(approvalId, within) {
      const row = await database.row<{ decision: string | null }>(
        `SELECT decision FROM $s.waiting_calls AS c WHERE call_id = $4 AND ${isWithin}`,
        [...fieldsOf(within), approvalId],
      );
      return row?.decision;
    },
    list: (within) =>
      database.rows<CallRow>(
        `SELECT request, requested_at FROM $s.waiting_calls AS c
         WHERE ${isWithin} AND ${waitsForDecision}
         ORDER BY requested_at COLLATE "C", call_id COLLATE "C"`,
        fieldsOf(within),
      ),
    sessions: (among) =>
      database.rows<SessionKey>(
        `SELECT DISTINCT agent, instance_id, session FROM $s.waiting_calls AS c
         WHERE ($1::text[] IS NULL OR (agent, instance_id, session) IN (SELECT * FROM unnest($1::text[], $2::text[], $3::text[])))
           AND ${waitsForDecision}`,
        ["agent" as const, "instance_id" as const, "session" as const].map(
          (field) => among?.map((key) => key[field]) ?? null,
        ),
      ),
    listAfter: ({ limit, after }) =>
      database.rows<CallRow>(
        `SELECT request, requested_at FROM $s.waiting_calls AS c
         WHERE (requested_at COLLATE "C", call_id COLLATE "C") > ($1, $2) AND ${waitsForDecision}
         ORDER BY requested_at COLLATE "C", call_id COLLATE "C" LIMIT $3`,
        [after?.at ?? "", after?.id ?? "", limit],
      ),
    async count() {
      const row = await database.row<{ readonly count: number }>(
        `SELECT count(*) AS count FROM $s.waiting_calls AS c WHERE ${waitsForDecision}`,
      );
      return row?.count ?? 0;
    },
    decided: () =>
      database.rows(
        "SELECT call_id, decision FROM $s.waiting_calls WHERE node = $1 AND decision IS NOT NULL",
        [node],
      ),
  };
}

/** Deletes a batch of undecided calls whose work has ended, and of decided ones older than a time; false after the last one. */
export async function pruneWaitingCalls(
  { database }: Pick<PostgresBase, "database">,
  before: number,
): Promise<boolean> {
  // The lock makes Postgres check a row again if its work asks again meanwhile.
  const rows = await database.rows(
    `DELETE FROM $s.waiting_calls WHERE call_id = ANY (ARRAY (
       SELECT call_id FROM $s.waiting_calls AS c
       WHERE (decision IS NULL OR written_at < $1) AND CASE WHEN c.work IS NULL THEN NOT ${isHeld} ELSE NOT ${workIsOpen} END
       LIMIT ${pruned} FOR UPDATE OF c SKIP LOCKED)) RETURNING 1`,
    [before],
  );
  return rows.length === pruned;
}

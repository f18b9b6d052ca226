import type { SessionKey } from "../../protocol/session-entry.ts";
import { query } from "../../sqlite/statements.ts";
import { leaseLost } from "../shared/engine-base.ts";
import {
  type CallRow,
  fieldsOf,
  WaitingCallRecords,
  type WaitingCallStore,
} from "../shared/waiting-calls.ts";
import type { EmbeddedBase, EnginePart } from "./embedded-base.ts";

/** SQL: whether the dispatch or the run of a call `c` is open. */
const workIsOpen = `(EXISTS (SELECT 1 FROM dispatches WHERE dispatch_id = c.work AND ended_at IS NULL AND cancelling = 0)
  OR EXISTS (SELECT 1 FROM runs WHERE run_id = c.work AND ended_at IS NULL AND cancelling = 0))`;

/** SQL: whether a process holds the lease under which a call `c` was asked. */
const isHeld = "EXISTS (SELECT 1 FROM lease WHERE fence = c.fence AND owner IS NOT NULL)";

/** SQL: whether a call `c` waits for a decision. */
const waitsForDecision = `(c.decision IS NULL AND iif(c.work IS NULL, ${isHeld}, ${workIsOpen}))`;

/** SQL: whether a call `c` has the fields ?1, ?2 and ?3; null stands for any. */
const isWithin = `(?1 IS NULL OR c.agent = ?1) AND (?2 IS NULL OR c.instance_id = ?2) AND (?3 IS NULL OR c.session = ?3)`;

/** Rows that one transaction deletes at most. */
const pruned = 500;

interface DecidedRow {
  readonly decision: string | null;
}

/** Waiting calls in the engine's database, which each process of the folder lists and decides. */
export function createWaitingCalls(base: EmbeddedBase): {
  readonly records: WaitingCallRecords;
  readonly part: EnginePart;
} {
  const { clock } = base;
  const sql = statements(base);
  const store: WaitingCallStore = {
    async add({ request, work, text, args_hash }) {
      const { approval_id, agent, instance_id, session, operation_id, requested_at } = request;
      // Only the process that holds the lease is known to live.
      if (work === undefined) return undefined;
      const ids = [approval_id, agent, instance_id, session, operation_id, work.resumes ?? null, work.fence];
      const row = await base.commit(() => sql.add.get(...ids, requested_at, text, args_hash, clock.now()), {
        fence: work.fence,
      });
      if (row === undefined) throw leaseLost();
      return row.decision;
    },
    async settle({ request, work }, decision) {
      const write = () => sql.settle.get(decision, clock.now(), request.approval_id);
      return (await base.commit(write, work && { fence: work.fence }))?.decision ?? undefined;
    },
    async withdraw({ request, work }) {
      await base.commit(() => sql.withdraw.run(request.approval_id, work?.fence ?? null));
    },
    decide: async (approvalId, decision, within) =>
      (await base.commit(() => sql.decide.run(...fieldsOf(within), approvalId, decision, clock.now()))) > 0,
    decisionOf: async (approvalId, within) => sql.decisionOf.get(...fieldsOf(within), approvalId)?.decision,
    list: async (within) => sql.list.all(...fieldsOf(within)),
    sessions: async (among) =>
      among === undefined ? sql.sessions.all() : sql.sessionsAmong.all(keysToJson(among)),
    listAfter: async ({ limit, after }) => sql.listAfter.all(after?.at ?? "", after?.id ?? "", limit),
    count: async () => Number(sql.count.get()?.count),
    decided: async (approvalIds) =>
      approvalIds.flatMap((call_id) => {
        // A process that was frozen can have lost the lease without knowing it: then another process waits for the call.
        const row = sql.decided.get(call_id, base.lease.fence);
        return row === undefined ? [] : [{ call_id, decision: row.decision }];
      }),
  };
  const records = new WaitingCallRecords(store);
  const part: EnginePart = {
    start: async () => undefined,
    onForeignWrite: () => void records.check().catch(() => undefined),
    close: () => undefined,
    async prune(endedBefore) {
      return (await base.commit(() => sql.prune.run(endedBefore, pruned), { fenced: true })) === pruned;
    },
  };
  return { records, part };
}

function statements({ database }: EmbeddedBase) {
  const sameArgs = "args_hash = excluded.args_hash";
  return {
    add: query<DecidedRow>(
      database,
      `INSERT INTO waiting_calls (call_id, agent, instance_id, session, operation_id, work, fence, requested_at, request,
         args_hash, written_at)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
       ON CONFLICT (call_id) DO UPDATE SET operation_id = excluded.operation_id, work = excluded.work, fence = excluded.fence,
         request = excluded.request, args_hash = excluded.args_hash, decision = iif(${sameArgs}, decision, NULL),
         requested_at = iif(${sameArgs}, requested_at, excluded.requested_at)
       WHERE fence <= excluded.fence RETURNING decision`,
    ),
    settle: query<DecidedRow>(
      database,
      "UPDATE waiting_calls SET decision = coalesce(decision, ?), written_at = ? WHERE call_id = ? RETURNING decision",
    ),
    withdraw: query(
      database,
      "DELETE FROM waiting_calls WHERE call_id = ? AND fence = ? AND decision IS NULL",
    ),
    decide: query(
      database,
      `UPDATE waiting_calls AS c SET decision = ?5, written_at = ?6
       WHERE call_id = ?4 AND ${isWithin} AND ${waitsForDecision}`,
    ),
    decisionOf: query<DecidedRow>(
      database,
      `SELECT decision FROM waiting_calls AS c WHERE call_id = ?4 AND ${isWithin}`,
    ),
    decided: query<{ readonly decision: string }>(
      database,
      "SELECT decision FROM waiting_calls WHERE call_id = ? AND fence = ? AND decision IS NOT NULL",
    ),
    list: query<CallRow>(
      database,
      `SELECT request, requested_at FROM waiting_calls AS c INDEXED BY waiting_calls_open
       WHERE ${isWithin} AND ${waitsForDecision} ORDER BY requested_at, call_id`,
    ),
    sessions: query<SessionKey>(
      database,
      `SELECT DISTINCT agent, instance_id, session FROM waiting_calls AS c INDEXED BY waiting_calls_by_session
       WHERE ${waitsForDecision}`,
    ),
    sessionsAmong: query<SessionKey>(
      database,
      // CROSS JOIN keeps this order: SQLite looks up each of the keys.
      `SELECT DISTINCT c.agent, c.instance_id, c.session
       FROM json_each(?) AS j CROSS JOIN waiting_calls AS c INDEXED BY waiting_calls_by_session
         ON c.agent = j.value ->> 0 AND c.instance_id = j.value ->> 1 AND c.session = j.value ->> 2
       WHERE ${waitsForDecision}`,
    ),
    listAfter: query<CallRow>(
      database,
      `SELECT request, requested_at FROM waiting_calls AS c INDEXED BY waiting_calls_open
       WHERE (requested_at, call_id) > (?, ?) AND ${waitsForDecision} ORDER BY requested_at, call_id LIMIT ?`,
    ),
    count: query<{ readonly count: number }>(
      database,
      `SELECT count(*) AS count FROM waiting_calls AS c INDEXED BY waiting_calls_open WHERE ${waitsForDecision}`,
    ),
    prune: query(
      database,
      `DELETE FROM waiting_calls WHERE call_id IN (SELECT call_id FROM waiting_calls AS c
         WHERE (decision IS NULL OR written_at < ?) AND iif(c.work IS NULL, NOT ${isHeld}, NOT ${workIsOpen}) LIMIT ?)`,
    ),
  };
}

function keysToJson(keys: readonly SessionKey[]): string {
  return JSON.stringify(keys.map(({ agent, instance_id, session }) => [agent, instance_id, session]));
}

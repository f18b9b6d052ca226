import type { WaitingSignal } from "../../../protocol/waiting.ts";
import { query } from "../../../sqlite/statements.ts";
import type { Page, WaitingListing } from "../../contract.ts";
import { type SignalRow, toWaitingSignal } from "../../shared/runs/waiting-signals.ts";
import type { EmbeddedBase } from "../embedded-base.ts";

/** SQL: the open waits `j` of open runs `r` for signals that have not arrived. */
const openWaits = `run_journal AS j INDEXED BY run_journal_open JOIN runs AS r ON r.id = j.run
  WHERE j.state = 'pending' AND j.kind = 'wait' AND r.ended_at IS NULL AND r.cancelling = 0
    AND NOT EXISTS (SELECT 1 FROM run_signals AS s WHERE s.run = j.run AND s.taken = 0 AND s.name = j.name)`;

/** SQL: when a wait began; waits of earlier versions do not have the time. */
const begunAt = "coalesce(j.begun_at, r.started_at, r.accepted_at)";

/** `Engine.listWaitingSignals`. */
export function createWaitingSignals(base: EmbeddedBase): (listing: WaitingListing) => Page<WaitingSignal> {
  const { database } = base;
  const page = query<SignalRow>(
    database,
    `SELECT r.run_id, r.workflow, substr(r.payload, 1, 400) AS payload, j.position, j.name, j.kind, j.deadline, j.value,
       ${begunAt} AS begun_at
     FROM ${openWaits} AND (${begunAt}, r.run_id, j.position) > (?, ?, ?)
     ORDER BY ${begunAt}, r.run_id, j.position LIMIT ?`,
  );
  const count = query<{ readonly count: number }>(database, `SELECT count(*) AS count FROM ${openWaits}`);
  return ({ limit, after }) => ({
    items: page
      .all(after === undefined ? 0 : Date.parse(after.at), after?.id ?? "", after?.position ?? 0, limit)
      .map((row) => toWaitingSignal(row, base)),
    total: Number(count.get()?.count),
  });
}

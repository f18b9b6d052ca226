import type { SessionKey } from "../../protocol/session-entry.ts";
import { query } from "../../sqlite/statements.ts";
import { agentStream } from "../contract.ts";
import { lineOf } from "./dispatches/dispatch-rows.ts";
import type { EngineBase } from "./engine-base.ts";
import type { EmbeddedEventLog } from "./events/create-event-log.ts";
import type { LeaseHolder } from "./lease/lease-holder.ts";

/** `Engine.mayForget`. */
export function createForgetting(
  { database, lines, time }: EngineBase,
  { lease, events }: { readonly lease: LeaseHolder; readonly events: Pick<EmbeddedEventLog, "isRead"> },
): (key: SessionKey, touchedMs: number) => Promise<boolean> {
  const input = query(
    database,
    `SELECT 1 FROM dispatches INDEXED BY dispatches_by_instance
     WHERE instance_id = ? AND agent = ? AND status IN ('queued', 'running') LIMIT 1`,
  );
  const run = query(
    database,
    `SELECT 1 FROM runs INDEXED BY runs_by_status
     WHERE status <> 'completed' AND status IN ('queued', 'running', 'waiting') AND (accepted_at <= ? OR run_id = ?) LIMIT 1`,
  );
  return async (key, touchedMs) => {
    const { agent, instance_id } = key;
    if (!(lease.isHeld || lease.isFree()) || !time.mayRemove()) return false;
    if (lines.waiting({ line: lineOf(key) }) > 0 || events.isRead(agentStream(agent, instance_id)))
      return false;
    return input.get(instance_id, agent) === undefined && run.get(touchedMs, instance_id) === undefined;
  };
}

import { isoTime } from "../../../base/clock.ts";
import type { EventError } from "../../../protocol/event.ts";
import type { RunRecord, RunStatus, RunWait } from "../../../protocol/run.ts";
import { createRowReader } from "../database/stored-json.ts";
import type { Blobs } from "../engine-base.ts";

/** A row of `runs`; times in ms since 1970. */
export interface RunRow {
  /** The order of admission. */
  readonly id: number;
  readonly run_id: string;
  readonly workflow: string;
  readonly status: RunStatus;
  /** 1 once somebody has asked for its end. */
  readonly cancelling: number;
  readonly crashes: number;
  readonly crashed_at: number;
  readonly idempotency_key: string | null;
  readonly accepted_at: number;
  readonly started_at: number | null;
  readonly ended_at: number | null;
  readonly wake_at: number | null;
  readonly error: string | null;
  readonly payload: string;
  readonly result: string | null;
  /** `ownerOfRun`. */
  readonly owner: string;
  /** `toStoredTrace`. */
  readonly trace: string | null;
}

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
  return isSuspect({ crashes }) ? "runs/suspects" : `run/${run_id}`;
}

export function isSuspect({ crashes }: Pick<RunRow, "crashes">): boolean {
  return crashes > 2;
}

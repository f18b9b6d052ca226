import { isoTime } from "../../../base/clock.ts";
import type { DispatchRecord, DispatchStatus } from "../../../protocol/dispatch.ts";
import type { EventError } from "../../../protocol/event.ts";
import type { SessionKey } from "../../../protocol/session-entry.ts";
import { createRowReader } from "../database/stored-json.ts";
import type { EngineBase } from "../engine-base.ts";

/** A row of `dispatches`; times in ms since 1970. */
export interface DispatchRow extends SessionKey {
  readonly seq: number;
  readonly dispatch_id: string;
  readonly status: DispatchStatus;
  readonly attempts: number;
  readonly fence: number;
  /** 1 once somebody has asked for its end. */
  readonly cancelling: number;
  readonly idempotency_key: string | null;
  readonly accepted_at: number;
  readonly next_attempt_at: number | null;
  readonly started_at: number | null;
  readonly ended_at: number | null;
  readonly error: string | null;
  readonly input: string;
  readonly result: string | null;
  /** `ownerOfInput`. */
  readonly owner: string;
  /** `toStoredTrace`. */
  readonly trace: string | null;
}

/** Where an input stands, without what it says. */
export type DispatchPlace = Pick<
  DispatchRow,
  "seq" | "dispatch_id" | "agent" | "instance_id" | "session" | "owner"
>;

export function toRecord(
  row: DispatchRow,
  { blobs, time }: Pick<EngineBase, "blobs" | "time">,
): DispatchRecord {
  const values = createRowReader((text) => blobs.load(text));
  return {
    dispatch_id: row.dispatch_id,
    accepted_at: isoTime(row.accepted_at),
    agent: row.agent,
    instance_id: row.instance_id,
    session: row.session,
    status: row.status,
    input: values.read(row.input),
    attempts: row.attempts,
    ...(row.idempotency_key === null ? {} : { idempotency_key: row.idempotency_key }),
    ...(row.next_attempt_at === null ? {} : { next_attempt_at: isoTime(time.toWall(row.next_attempt_at)) }),
    ...(row.started_at === null ? {} : { started_at: isoTime(row.started_at) }),
    ...(row.ended_at === null ? {} : { ended_at: isoTime(row.ended_at) }),
    ...(row.result === null ? {} : { result: values.read(row.result) }),
    ...(row.error === null ? {} : { error: values.read(row.error) as EventError }),
    ...values.fault(),
  };
}

/** The line of a session. */
export function lineOf(key: SessionKey): string {
  return `session/${key.agent}\u0000${key.instance_id}\u0000${key.session}`;
}

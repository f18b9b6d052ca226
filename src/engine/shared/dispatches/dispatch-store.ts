import { isoTime } from "../../../base/clock.ts";
import { KitError } from "../../../base/kit-error.ts";
import type { DispatchRecord, DispatchStatus } from "../../../protocol/dispatch.ts";
import type { EventError } from "../../../protocol/event.ts";
import type { SessionKey } from "../../../protocol/session-entry.ts";
import type { DispatchFilter, Page } from "../../contract.ts";
import type { CountedAttempts } from "../counted-attempts.ts";
import type { EngineBase } from "../engine-base.ts";
import type { ListedTable } from "../list-filter.ts";
import { causeOfStored, createRowReader } from "../stored-rows.ts";

/**
 * The rows of accepted inputs. Each write resolves once it is on disk. Writes of an attempt are
 * fenced: they reject with `lease_lost` once another process has taken over.
 */
export interface DispatchStore {
  /**
   * Begins the next attempt at an input, or takes a cancelled one, to end it; `undefined` if the input is not queued or not
   * due. A cancelled input stays queued, and this is no attempt. A repeated call succeeds: the first may have been committed
   * although its answer was lost.
   */
  claim(dispatch: QueuedDispatch, fence: number): Promise<DispatchRow | undefined>;
  /** When the next attempt at a queued input is due; null if it can begin at once, `undefined` if the input is not queued. */
  dueAt(dispatchId: string): Promise<number | null | undefined>;
  /** Ends an input that this process has claimed. If a caller has cancelled it, its status becomes `cancelled`. */
  finish(row: DispatchRow, end: DispatchEnd): Promise<void>;
  /** Puts an input back into its line. False if a caller has cancelled it meanwhile. */
  requeue(row: DispatchRow, how: Requeue): Promise<boolean>;
  /** Stores which attempts at an input count. */
  recount(row: DispatchRow, counted: CountedAttempts): Promise<void>;
  /** Stores whether a running attempt only waits: the death of the process does not count then. */
  setIdle(row: DispatchRow, idle: boolean): Promise<void>;
  find(dispatchId: string): Promise<DispatchRow | undefined>;
  /** Newest first, by their ids, which sort by time: the last id of a page is the cursor of the next. */
  list(filter: DispatchFilter): Promise<Page<DispatchRecord>>;
  /** Cancels an input: at once if it has not begun. `undefined` if it is unknown or has ended. */
  cancel(dispatchId: string): Promise<DispatchRow | undefined>;
  /** The ids of those inputs that have not ended. */
  openAmong(dispatchIds: readonly string[]): Promise<readonly string[]>;
}

export interface DispatchEnd {
  readonly status: "completed" | "failed" | "cancelled";
  /** The stored form of `Blobs.store`. */
  readonly result: string | null;
  /** JSON. */
  readonly error: string | null;
  /** Whether the attempt ends before its work began: then it is none. */
  readonly unbegun?: boolean;
}

export interface Requeue {
  /** The attempts that count; `undefined` for an attempt that is none, because of a shutdown or an outage. */
  readonly counted: CountedAttempts | undefined;
  /** When the next attempt is due. */
  readonly at: number | null;
  /** JSON. */
  readonly error: string | null;
}

/** A row of `dispatches`; times in ms since 1970. */
export interface DispatchRow extends SessionKey, CountedAttempts {
  readonly seq: number;
  readonly dispatch_id: string;
  readonly status: DispatchStatus;
  /** Whether a caller has cancelled an input that has begun and not ended: its session's worker ends it. */
  readonly cancelling: boolean | number;
  /** The attempts that began. */
  readonly attempts: number;
  readonly fence: number;
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

/** The fields of an input that the queue needs, without its payload. */
export interface QueuedDispatch
  extends Pick<DispatchRow, "seq" | "dispatch_id" | "agent" | "instance_id" | "session" | "owner"> {
  /** `joinsSql`. */
  readonly joins?: boolean | number;
}

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
    status: row.cancelling && row.status === "queued" ? "cancelled" : row.status,
    input: values.read(row.input),
    attempts: row.attempts,
    ...(row.idempotency_key === null ? {} : { idempotency_key: row.idempotency_key }),
    ...causeOfStored(row.trace),
    ...(row.next_attempt_at === null ? {} : { next_attempt_at: isoTime(time.toWall(row.next_attempt_at)) }),
    ...(row.started_at === null ? {} : { started_at: isoTime(row.started_at) }),
    ...(row.ended_at === null ? {} : { ended_at: isoTime(row.ended_at) }),
    ...(row.result === null ? {} : { result: values.read(row.result) }),
    ...(row.error === null ? {} : { error: values.read(row.error) as EventError }),
    ...values.fault(),
  };
}

/** The columns that lists of dispatches read. */
export const listedDispatches: ListedTable = {
  table: "dispatches",
  order: "dispatch_id",
  last: "~",
  texts: ["dispatch_id", "agent", "instance_id"],
  json: ["input", "error"],
};

/** Whether a text can be a cursor of a list: cursors are ids, which sort by time. */
export function isDispatchId(text: string): boolean {
  return /^dispatch_[0-9A-HJKMNP-TV-Z]{26}$/.test(text);
}

/**
 * SQL: whether the process has died several times during an input. A failed attempt has set `next_attempt_at`; without it,
 * the process has died during the attempt.
 */
export const isRiskySql = "spent > 2 AND next_attempt_at IS NULL";

/** The stored error of an input whose process died during its last attempt. */
export const diedText = JSON.stringify({
  type: "internal_error",
  message: "The process ended during the last attempt.",
});

export function sessionFull(limit: number, wait: { readonly retry_after_s: number }): KitError {
  return new KitError({
    code: "too_many_requests",
    message: `${limit} inputs are already waiting for this session.`,
    hint: "Spread the work over several sessions, or raise agent.max_waiting.",
    meta: { scope: "session", ...wait },
  });
}

export function otherInput(): KitError {
  return new KitError({
    code: "conflict",
    message: "This idempotency key was used before, with another input.",
  });
}

export function unknownDispatch(): KitError {
  return new KitError({ code: "not_found", message: "There is no such dispatch." });
}

export function notDead(): KitError {
  return new KitError({ code: "conflict", message: "Only a dispatch that has failed can be redriven." });
}

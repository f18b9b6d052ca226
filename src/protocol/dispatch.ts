import type { EventError } from "./event.ts";
import type { SessionKey } from "./session-entry.ts";

/** `failed` is the dead letter: its attempts are used up, and it waits to be looked at. */
export const dispatchStatuses = ["queued", "running", "completed", "failed", "cancelled"] as const;
export type DispatchStatus = (typeof dispatchStatuses)[number];

/** What a sender is given once its input cannot be lost any more. */
export interface DispatchReceipt {
  readonly dispatch_id: string;
  /** ISO 8601. */
  readonly accepted_at: string;
}

/** An input for a session, from its admission to its end. Times are ISO 8601. */
export interface DispatchRecord extends DispatchReceipt, SessionKey {
  readonly status: DispatchStatus;
  /** What was sent, JSON. */
  readonly input: unknown;
  /** Attempts that were begun. */
  readonly attempts: number;
  readonly idempotency_key?: string;
  /** Set while it waits to be tried again. */
  readonly next_attempt_at?: string;
  readonly started_at?: string;
  readonly ended_at?: string;
  readonly result?: unknown;
  /** Of the last attempt that failed. */
  readonly error?: EventError;
}

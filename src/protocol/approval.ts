import type { SessionKey } from "./session-entry.ts";

/** A tool call that waits for somebody's word, as events and routes carry it. Times are ISO 8601. */
export interface ApprovalRequest extends SessionKey {
  /** `approval_` and a ULID; the same when the call is asked about again after a crash. */
  readonly approval_id: string;
  readonly operation_id: string;
  readonly tool_call_id: string;
  readonly tool: string;
  /** What the model wants the tool to do. */
  readonly args: unknown;
  readonly requested_at: string;
  /** When it counts as denied; absent where it waits as long as it takes. */
  readonly expires_at?: string;
  readonly run_id?: string;
  readonly task_id?: string;
}

/** The word that was given. */
export interface ApprovalDecision {
  readonly approved: boolean;
  /** For the model, which reads it as the result of a denied call. */
  readonly reason?: string;
  /** Who gave it: a principal, as the caller names one. */
  readonly by?: string;
}

import type { ApprovalDecision } from "../../protocol/approval.ts";
import type { ToolResultPart } from "../../protocol/message.ts";
import type { PastOperation } from "../session/past-operation.ts";

/** Names of the notes that a session's log has of single calls, each with the call's `key`. */
export const callNotes = {
  request: "approval_request",
  decision: "approval",
  result: "tool_result",
} as const;

/** What the log has of a call beside its message. */
export interface CallRecord {
  /** Somebody was asked about it; without a decision, it has not begun. */
  readonly request?: { readonly approval_id: string; readonly expires_at?: string };
  readonly decision?: ApprovalDecision;
  /** It ended while others of its turn were put off. */
  readonly result?: ToolResultPart;
}

/** Reads the notes of a call; of several of one name, the newest counts. */
export function recordOf(past: PastOperation | undefined, key: string): CallRecord {
  const record: { -readonly [Field in keyof CallRecord]: CallRecord[Field] } = {};
  for (const { name, value } of past?.notes ?? []) {
    // The gate wrote these, in the shapes that it reads here.
    const note = value as { readonly key?: string };
    if (note?.key !== key) continue;
    if (name === callNotes.request) record.request = value as NonNullable<CallRecord["request"]>;
    else if (name === callNotes.decision) record.decision = value as ApprovalDecision;
    else if (name === callNotes.result) record.result = (value as { result: ToolResultPart }).result;
  }
  return record;
}

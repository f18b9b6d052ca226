import type { ApprovalDecision } from "../../protocol/approval.ts";
import type { ToolResultPart } from "../../protocol/message.ts";
import type { PastOperation } from "../log/past-operation.ts";

/** Names of the notes about single calls in a session's log, each with the call's `key`. */
export const callNotes = {
  request: "approval_request",
  decision: "approval",
  result: "tool_result",
  start: "tool_call_start",
} as const;

/** The logged notes of a call. */
export interface CallRecord {
  /** The approval request; without a decision, the call has not started. */
  readonly request?: {
    readonly approval_id: string;
    readonly expires_at?: string;
    /** The arguments that approval was requested for, if a hook had changed the model's; masked. */
    readonly args?: unknown;
  };
  readonly decision?: ApprovalDecision;
  /** The result of a call that ended while others of its turn were postponed. */
  readonly result?: ToolResultPart;
  /** Whether an outage kept the call from starting. */
  readonly isUnstarted?: boolean;
}

const askMark = ":ask:";

/** The key of a question of a call. */
export function questionKey(key: string, question: string): string {
  return `${key}${askMark}${question}`;
}

/** Whether a call waited for the answer to a question when its process ended: then it has not acted on it. */
export function wasAsking(past: PastOperation | undefined, key: string): boolean {
  const newest = past?.notes.findLast(({ name, value }) => {
    const of = (value as { readonly key?: string })?.key;
    return (
      of?.startsWith(key + askMark) === true && (name === callNotes.request || name === callNotes.decision)
    );
  });
  return newest?.name === callNotes.request;
}

/** The keys of the questions of a call that were not decided when its process ended, or its operation left memory. */
export function openQuestions(past: PastOperation | undefined, key: string): readonly string[] {
  const keys = new Set<string>();
  for (const { name, value } of past?.notes ?? []) {
    const of = (value as { readonly key?: string })?.key;
    if (of?.startsWith(key + askMark) === true && name === callNotes.request) keys.add(of);
  }
  return [...keys].filter((of) => {
    const { request, decision } = recordOf(past, of);
    return request !== undefined && decision === undefined;
  });
}

/** Reads the notes of a call; of several of one name, the newest counts. */
export function recordOf(past: PastOperation | undefined, key: string): CallRecord {
  const record: { -readonly [Field in keyof CallRecord]: CallRecord[Field] } = {};
  for (const { name, value } of past?.notes ?? []) {
    // The gate wrote these, in the shapes that it reads here.
    const note = value as { readonly key?: string };
    if (note?.key !== key) continue;
    if (name === callNotes.request) {
      if ((value as { is_withdrawn?: boolean }).is_withdrawn === true) delete record.request;
      else record.request = value as NonNullable<CallRecord["request"]>;
    } else if (name === callNotes.decision) record.decision = value as ApprovalDecision;
    else if (name === callNotes.result) record.result = (value as { result: ToolResultPart }).result;
    else if (name === callNotes.start)
      record.isUnstarted = (value as { is_started: boolean }).is_started === false;
  }
  return record;
}

import type { ApprovalDecision } from "../../protocol/approval.ts";
import type { ToolCallPart, ToolResultPart } from "../../protocol/message.ts";
import type { ToolContext, ToolDefinition } from "../define/tool.ts";
import type { PastOperation } from "../log/past-operation.ts";
import { failed, type Outcome, unknownOutcome } from "./tool-result.ts";

/** A call before it is run. */
export interface GatedCall {
  readonly call: ToolCallPart;
  readonly turnId: string;
  /** The arguments, validated. */
  readonly input: unknown;
  readonly context: ToolContext;
}

/** What stands before the tools of an operation: somebody's word, where a call needs it. */
export interface ToolGate {
  /** Whether the call needs somebody's word. */
  asks(tool: ToolDefinition, call: GatedCall): boolean | Promise<boolean>;
  /** So many calls of a turn are to be run; each that has its result is told with `ended`. */
  begin(calls: number): void;
  ended(): void;
  /** What the log has of a call that was interrupted, by its idempotency key. */
  record(key: string): CallRecord;
  /**
   * Waits for somebody's word. Rejects with `PutOff` when the operation is to go on another time, and
   * with the reason of its signal when it was aborted.
   */
  word(call: GatedCall, record?: CallRecord): Promise<ApprovalDecision>;
  /** Keeps the results of a turn whose other calls are put off, by their idempotency keys. */
  keep(results: ReadonlyMap<string, ToolResultPart>): Promise<void>;
}

/**
 * Starts a call when it may be: after somebody's word where it needs one, and after an interruption
 * only when it is certain that it had not begun, or may run twice.
 */
export function passGate(
  gate: ToolGate,
  asked: { readonly tool: ToolDefinition; readonly gated: GatedCall; readonly interrupted: boolean },
  start: (isApproved: boolean) => Outcome | Promise<Outcome>,
): Outcome | Promise<Outcome> {
  const { tool, gated } = asked;
  const follow = (decision: ApprovalDecision): Outcome | Promise<Outcome> =>
    decision.approved ? start(true) : denied(decision);
  if (asked.interrupted) {
    const record = gate.record(gated.context.idempotency_key);
    const { request, decision } = record;
    if (decision?.approved === false) return denied(decision);
    // The request is noted before anybody is asked, and the word before anything starts.
    if (request !== undefined && decision === undefined) return gate.word(gated, record).then(follow);
    if (tool.idempotent !== true) return unknownOutcome;
    if (decision !== undefined) return start(true);
  }
  const asks = gate.asks(tool, gated);
  if (asks === false) return start(false);
  return Promise.resolve(asks).then((needed) => (needed ? gate.word(gated).then(follow) : start(false)));
}

function denied({ reason, by }: ApprovalDecision): Outcome {
  const who = by === undefined ? "" : ` by ${by}`;
  const why = reason === undefined || reason.trim() === "" ? "" : `\nReason: ${reason.trim()}`;
  return failed(`The call was denied${who}, and was not run. Do not repeat it unless you are told to.${why}`);
}

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

import type { ApprovalDecision } from "../../protocol/approval.ts";
import type { ToolCallPart, ToolResultPart } from "../../protocol/message.ts";
import type { CallRecord } from "../approvals/call-record.ts";
import type { ToolContext, ToolDefinition } from "../tool.ts";
import { failed, type Outcome, unknownOutcome } from "./outcome.ts";

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

import type { ApprovalDecision } from "../../protocol/approval.ts";
import type { ToolCallPart, ToolResultPart } from "../../protocol/message.ts";
import type { ToolContext, ToolDefinition } from "../define/tool.ts";
import type { PastOperation } from "../log/resume.ts";
import { failed, type Outcome, unknownOutcome } from "./running-call.ts";

/** A call before it is run. */
export interface GatedCall {
  readonly call: ToolCallPart;
  /** Absent for a call that is not a tool's, such as a question of a backend. */
  readonly tool?: ToolDefinition | undefined;
  readonly turnId: string;
  /** The arguments, validated. */
  readonly input: unknown;
  readonly context: ToolContext;
  /** The arguments that the model gave; `call.args` differs where a hook changed them. */
  readonly modelArgs: unknown;
}

/** Decides about the tool calls of an operation before they run. */
export interface ToolGate {
  /** Whether the call needs approval. */
  needsApproval(tool: ToolDefinition, call: GatedCall): boolean | Promise<boolean>;
  /** Announces the calls of a turn; `ended` reports each call that has its result. */
  begin(calls: number): void;
  ended(): void;
  /** The logged notes of an interrupted call, by its idempotency key. */
  record(key: string): CallRecord;
  /**
   * Waits for an approval decision. Rejects with `Postponed` if the operation will be resumed later, and with the
   * reason of its signal if it was aborted.
   */
  waitForDecision(call: GatedCall, record?: CallRecord): Promise<ApprovalDecision>;
  /** Whether the logged approval request was made for the arguments that the call has now. */
  covers(call: GatedCall, record: CallRecord): boolean;
  /** Withdraws the logged approval request of a call that no longer has its arguments. */
  withdraw(call: GatedCall, record: CallRecord): Promise<void>;
  /** Logs the results of a turn whose other calls are postponed, by their idempotency keys. */
  keepResults(results: ReadonlyMap<string, ToolResultPart>): Promise<void>;
}

/**
 * Starts a call if it may run: after its approval if it needs one, and after an interruption only if it certainly
 * had not started, or may run twice. Hooks run again after an interruption: an approval holds only for the arguments
 * that it was requested for.
 */
export function passGate(
  gate: ToolGate,
  asked: { readonly tool: ToolDefinition; readonly gated: GatedCall; readonly interrupted: boolean },
  start: (approval?: ApprovalDecision) => Outcome | Promise<Outcome>,
): Outcome | Promise<Outcome> {
  const { tool, gated } = asked;
  const follow = (decision: ApprovalDecision): Outcome | Promise<Outcome> =>
    decision.approved ? start(decision) : denied(decision);
  if (asked.interrupted) {
    const record = gate.record(gated.context.idempotency_key);
    const { request, decision } = record;
    if (decision?.approved === false) return denied(decision);
    // The request is logged before approval is requested, and the decision before the call starts.
    if (request !== undefined && decision === undefined) {
      if (!gate.covers(gated, record)) return gate.withdraw(gated, record).then(() => otherArguments);
      return gate.waitForDecision(gated, record).then(follow);
    }
    if (tool.idempotent !== true) return unknownOutcome;
    if (decision !== undefined) return gate.covers(gated, record) ? start(decision) : otherArguments;
  }
  const needed = gate.needsApproval(tool, gated);
  if (needed === false) return start();
  return Promise.resolve(needed).then((waits) =>
    waits ? gate.waitForDecision(gated).then(follow) : start(),
  );
}

const otherArguments = failed(
  "The call was not run: approval was requested for other arguments than a hook has now left. Call the tool again to request it for these.",
);

function denied({ reason, by }: ApprovalDecision): Outcome {
  const approver = by === undefined ? "" : ` by ${by}`;
  const why = reason === undefined || reason.trim() === "" ? "" : `\nReason: ${reason.trim()}`;
  return failed(
    `The call was denied${approver}, and was not run. Do not repeat it unless you are told to.${why}`,
  );
}

/** Names of the notes about single calls in a session's log, each with the call's `key`. */
export const callNotes = {
  request: "approval_request",
  decision: "approval",
  result: "tool_result",
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

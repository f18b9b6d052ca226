import type { ApprovalDecision } from "../../protocol/approval.ts";
import type { ToolDefinition } from "../define/tool.ts";
import { failed, type Outcome, unknownOutcome } from "../turn/running-call.ts";
import type { GatedCall, ToolGate } from "./call-gate.ts";
import { kindOf, toDenial } from "./call-kinds.ts";

/** A call that a gate decides about. */
export interface GateRequest {
  readonly tool: ToolDefinition;
  readonly gated: GatedCall;
  readonly interrupted: boolean;
}

/** Runs a call that may run. It gets the request again: a function that knows it would be made for each call. */
type Start<Request> = (request: Request, approval?: ApprovalDecision) => Outcome | Promise<Outcome>;

/**
 * Starts a call if it may run: after its approval if it needs one, and after an interruption only if it certainly
 * had not started, or may run twice. Hooks run again after an interruption: an approval holds only for the arguments
 * that it was requested for.
 */
export function passGate<Request extends GateRequest>(
  gate: ToolGate,
  asked: Request,
  start: Start<Request>,
): Outcome | Promise<Outcome> {
  if (asked.interrupted) return passAgain(gate, asked, start);
  const needed = gate.needsApproval(asked.tool, asked.gated);
  return needed === false ? start(asked) : passWhenApproved(gate, { asked, needed }, start);
}

/** Starts a call after an interruption. */
function passAgain<Request extends GateRequest>(
  gate: ToolGate,
  asked: Request,
  start: Start<Request>,
): Outcome | Promise<Outcome> {
  const { tool, gated } = asked;
  const record = gate.record(gated.context.idempotencyKey);
  const { request, decision } = record;
  if (decision?.approved === false) return toDenial(decision, kindOf(tool));
  // The request is logged before approval is requested, and the decision before the call starts.
  if (request !== undefined && decision === undefined) {
    if (!gate.covers(gated, record)) return gate.withdraw(gated, record).then(() => otherArguments);
    return gate.waitForDecision(gated, record).then((made) => follow(made, asked, start));
  }
  const go = (): Outcome | Promise<Outcome> => {
    if (decision === undefined) return passGate(gate, { ...asked, interrupted: false }, start);
    return gate.covers(gated, record) ? start(asked, decision) : otherArguments;
  };
  if (record.isUnstarted === true) return gate.starts(gated.context.idempotencyKey).then(go);
  // The process ended between the model's answer and the first note of the call.
  const isUnnoted = request === undefined && record.isUnstarted === undefined;
  if (isUnnoted && gate.isNotedFirst(tool, gated)) return go();
  return tool.idempotent === true || gate.wasAsking(gated.context.idempotencyKey) ? go() : unknownOutcome;
}

async function passWhenApproved<Request extends GateRequest>(
  gate: ToolGate,
  { asked, needed }: { readonly asked: Request; readonly needed: boolean | Promise<boolean> },
  start: Start<Request>,
): Promise<Outcome> {
  return (await needed) ? follow(await gate.waitForDecision(asked.gated), asked, start) : start(asked);
}

function follow<Request extends GateRequest>(
  decision: ApprovalDecision,
  asked: Request,
  start: Start<Request>,
): Outcome | Promise<Outcome> {
  return decision.approved ? start(asked, decision) : toDenial(decision, kindOf(asked.tool));
}

const otherArguments = failed(
  "The call was not run: approval was requested for other arguments than a hook has now left. Call the tool again to request it for these.",
);

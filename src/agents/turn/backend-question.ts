import type { BackendQuestion } from "../../backends/contract.ts";
import { createId } from "../../base/id.ts";
import type { ApprovalDecision } from "../../protocol/approval.ts";
import type { ToolCallPart } from "../../protocol/message.ts";
import { isRest } from "../session/rested.ts";
import { PutOff } from "./put-off.ts";
import type { GatedCall } from "./tool-gate.ts";
import type { TurnLoop } from "./turn-loop.ts";

/**
 * Waits for somebody's word on a question of a backend: readers see it as a call that needs approval, and so does the
 * gate, which keeps the request and the word in the log.
 */
export async function askSomebody(
  { operationId, toolRun, emit }: TurnLoop,
  { id, name, args }: BackendQuestion,
): Promise<ApprovalDecision> {
  const { gate, signal } = toolRun;
  const key = `${operationId}:ask:${id}`;
  const record = gate.record(key);
  if (record.decision !== undefined) return record.decision;
  const call: ToolCallPart = { type: "tool_call", tool_call_id: id, tool: name, args };
  const turnId = createId("turn");
  const context = { tool_call_id: id, operation_id: operationId, idempotency_key: key, signal };
  const gated: GatedCall = { call, turnId, input: args, context };
  const started = performance.now();
  emit({ type: "tool_start", tool_call_id: id, tool: name, args }, turnId);
  gate.begin(1);
  try {
    const decision = await gate.word(gated, record);
    gate.ended();
    const { approved, reason } = decision;
    const result = `${approved ? "Approved" : "Denied"}${reason === undefined ? "." : `: ${reason}`}`;
    const duration_ms = Math.round(performance.now() - started);
    emit({ type: "tool_end", tool_call_id: id, tool: name, result, is_error: false, duration_ms }, turnId);
    return decision;
  } catch (error) {
    if (isRest(signal)) signal.reason.add(id, started);
    if (!(error instanceof PutOff)) throw error;
    throw signal.aborted ? signal.reason : (error.cause ?? error);
  }
}

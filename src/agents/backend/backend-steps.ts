import type { AgentBackend, BackendQuestion } from "../../backends/contract.ts";
import { isoTime } from "../../base/clock.ts";
import { createId } from "../../base/id.ts";
import { KitError } from "../../base/kit-error.ts";
import type { ApprovalDecision } from "../../protocol/approval.ts";
import type { AssistantMessage, Message, ToolCallPart } from "../../protocol/message.ts";
import { noUsage, textOf } from "../../protocol/read-records.ts";
import type { GatedCall } from "../approvals/call-gate.ts";
import type { ToolContext } from "../define/tool.ts";
import { createToolContext } from "../define/tool-context.ts";
import { taskIdOf, taskOfPart } from "../events.ts";
import { Postponed, Suspension } from "../log/suspension.ts";
import { type TurnLoop, toolRunOf } from "../turn/loop-parts.ts";

/**
 * Waits for the decision on a question of a backend. Readers and the gate treat it as a call that needs approval; the
 * gate logs request and decision.
 */
export async function requestDecision(
  loop: TurnLoop,
  { id, name, args }: BackendQuestion,
): Promise<ApprovalDecision> {
  const { id: operationId, emit } = loop.operation;
  const { gate, signal } = toolRunOf(loop);
  const key = `${operationId}:ask:${id}`;
  const record = gate.record(key);
  if (record.decision !== undefined) return record.decision;
  const call: ToolCallPart = { type: "tool_call", tool_call_id: id, tool: name, args };
  const turnId = createId("turn");
  const context = createToolContext({ toolCallId: id, operationId, idempotencyKey: key, signal });
  const gated: GatedCall = { call, turnId, input: args, context, modelArgs: args };
  const started = performance.now();
  emit({ type: "tool_start", tool_call_id: id, tool: name, args }, turnId);
  gate.begin(1);
  try {
    const decision = await gate.waitForDecision(gated, record);
    gate.ended();
    const { approved, reason } = decision;
    const result = `${approved ? "Approved" : "Denied"}${reason === undefined ? "." : `: ${reason}`}`;
    const duration_ms = Math.round(performance.now() - started);
    emit({ type: "tool_end", tool_call_id: id, tool: name, result, is_error: false, duration_ms }, turnId);
    return decision;
  } catch (error) {
    if (signal.reason instanceof Suspension) signal.reason.add(id, started);
    if (!(error instanceof Postponed)) throw error;
    throw signal.aborted ? signal.reason : (error.cause ?? error);
  }
}

/** Reports that an agent of the backend takes over, as the start of a task. */
export async function beginPart(
  loop: TurnLoop,
  part: { readonly task_agent: string; readonly prompt: string },
  call: ToolContext,
): Promise<void> {
  const task_id = await taskIdOf(call.idempotencyKey);
  const { toolCallId: tool_call_id, turnId = "" } = call;
  const before = taskOfPart(loop.operation.part, turnId);
  endPart(loop, false);
  loop.operation.part = { task_id, turnId, before, startedAt: loop.clock.now() };
  loop.operation.emit({ type: "task_start", task_id, tool_call_id, ...part }, turnId);
}

/** Runs a backend and its repairs, then ends the task of the agent that has taken over, if there is one. */
export async function withParts<Answer>(loop: TurnLoop, run: () => Promise<Answer>): Promise<Answer> {
  let failed = true;
  try {
    const answer = await run();
    failed = false;
    return answer;
  } finally {
    endPart(loop, failed);
  }
}

function endPart({ operation, clock }: TurnLoop, is_error: boolean): void {
  const { part } = operation;
  if (part === undefined) return;
  operation.part = undefined;
  const duration_ms = clock.now() - part.startedAt;
  operation.emit({ type: "task_end", task_id: part.task_id, is_error, duration_ms }, part.turnId);
}

/** A message that the backend wrote, not the model. */
export function ownMessage(
  { clock, resolved }: Pick<TurnLoop, "clock" | "resolved">,
  content: AssistantMessage["content"],
): AssistantMessage {
  return {
    role: "assistant",
    content,
    timestamp: isoTime(clock.now()),
    model: resolved.name,
    usage: noUsage,
    finish_reason: content.some(({ type }) => type === "tool_call") ? "tool-calls" : "stop",
    source: "backend",
  };
}

/**
 * The answer of an operation whose backend has ended: the model's newest answer if it is the last message, else a new
 * message with the backend's own text, or with the model's text if other messages follow it.
 */
export function concludingAnswer(
  loop: TurnLoop,
  final: { readonly words: string | undefined; readonly newest: AssistantMessage | undefined },
): { readonly message: AssistantMessage | undefined; readonly isNew: boolean } {
  const { messages } = loop.operation.state;
  const last = messages.at(-1);
  const newest = final.newest ?? newestAnswer(messages);
  const { words = newest === undefined ? undefined : textOf(newest) } = final;
  if (words === undefined) return { message: undefined, isNew: false };
  if (last?.role === "assistant" && (final.words === undefined || textOf(last) === words))
    return { message: last, isNew: false };
  return { message: ownMessage(loop, [{ type: "text", text: words }]), isNew: true };
}

/** The answer that the log already has, for an operation that is resumed at its end. */
function newestAnswer(messages: readonly Message[]): AssistantMessage | undefined {
  for (let index = messages.length - 1; index >= 0; index -= 1) {
    const message = messages[index];
    if (message?.role === "assistant") return message;
    if (message?.role === "user" && message.source !== "guidelines" && message.source !== "resume")
      return undefined;
  }
  return undefined;
}

export function noAnswer({ name }: AgentBackend): KitError {
  return new KitError({
    code: "internal_error",
    message: `The backend "${name}" ended without an answer.`,
    hint: "The backend must call the model with `turn`, or set its own text with `answer`.",
  });
}

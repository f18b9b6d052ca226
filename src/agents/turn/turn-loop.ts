import type {
  LanguageModelV4,
  LanguageModelV4CallOptions,
  LanguageModelV4FunctionTool,
} from "@ai-sdk/provider";
import { type Clock, isoTime } from "../../base/clock.ts";
import { createId } from "../../base/id.ts";
import type { KitError } from "../../base/kit-error.ts";
import type { EventBody, TurnPurpose } from "../../protocol/event.ts";
import type { AssistantMessage, Message, ToolCallPart, ToolMessage } from "../../protocol/message.ts";
import type { SessionEntry } from "../../protocol/session-entry.ts";
import { addUsage, noUsage, type Usage } from "../../protocol/usage.ts";
import type { MaybePromise } from "../../stores/contract.ts";
import type { SessionState } from "../session/session-state.ts";
import { type Budget, checkBudget } from "./budget.ts";
import { callModel, InterruptedReply, type ModelReply } from "./call-model.ts";
import { type RetryPolicy, retryDelayMs, toModelFailure, waitToRetry } from "./retry.ts";
import { failure, runToolCalls, type ToolRunOptions } from "./tool-calls.ts";
import type { UsageReader } from "./usage-reader.ts";

/** All that the turns of one operation share. */
export interface TurnLoop {
  readonly state: SessionState;
  readonly commit: (entries: readonly SessionEntry[]) => MaybePromise<void>;
  readonly model: LanguageModelV4;
  /** As configured: `anthropic/claude-sonnet-4-6`. */
  readonly modelName: string;
  readonly system: string;
  readonly tools: readonly LanguageModelV4FunctionTool[];
  readonly toolRun: Omit<ToolRunOptions, "emit" | "signal" | "operationId">;
  readonly settings: Pick<
    LanguageModelV4CallOptions,
    "reasoning" | "responseFormat" | "maxOutputTokens" | "headers" | "providerOptions"
  >;
  readonly operationId: string;
  readonly purpose: TurnPurpose;
  readonly budget: Budget;
  readonly retry: RetryPolicy;
  readonly idleTimeoutMs: number;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly emit: (body: EventBody, turnId?: string) => void;
  readonly usageOf: UsageReader;
  /** Called before each model call: makes room where the history has grown too long. */
  readonly beforeTurn?: (reason: "threshold" | "overflow") => Promise<void>;
  /** Entries to store with the results of the tools, such as guidelines for the files they touched. */
  readonly afterTools?: (calls: readonly ToolCallPart[]) => MaybePromise<readonly SessionEntry[]>;
}

export interface TurnLoopResult {
  readonly message: AssistantMessage;
  readonly usage: Usage;
  readonly turns: number;
}

/**
 * Runs turns until the model asks for no more tools: call the model, store its answer, run its tool
 * calls, store their results, go on.
 *
 * Each turn writes only what is new. However it ends, by an answer, an error or an abort, every tool
 * call in the history has a result, so that the next operation can go on from it.
 */
export async function runTurns(loop: TurnLoop): Promise<TurnLoopResult> {
  let usage = noUsage;
  for (let turns = 0; ; turns += 1) {
    checkBudget(loop.budget, turns, usage);
    await loop.beforeTurn?.("threshold");
    const turnId = createId("turn");
    const message = await runModelTurn(loop, turnId);
    usage = addUsage(usage, message.usage);
    const calls = message.content.filter((part) => part.type === "tool_call");
    if (calls.length === 0) {
      loop.emit({ type: "turn_end", tool_calls: 0 }, turnId);
      return { message, usage, turns: turns + 1 };
    }
    await runTools(loop, calls, turnId);
    loop.emit({ type: "turn_end", tool_calls: calls.length }, turnId);
    if (loop.signal.aborted) throw loop.signal.reason;
  }
}

async function runTools(loop: TurnLoop, calls: readonly ToolCallPart[], turnId: string): Promise<void> {
  const results = await runToolCalls(calls, {
    ...loop.toolRun,
    operationId: loop.operationId,
    signal: loop.signal,
    emit: (body) => loop.emit(body, turnId),
  });
  const message: ToolMessage = { role: "tool", content: results, timestamp: isoTime(loop.clock.now()) };
  const extra = loop.signal.aborted ? [] : ((await loop.afterTools?.(calls)) ?? []);
  const written = loop.commit([toEntry(loop, message), ...extra]);
  if (written !== undefined) await written;
}

/** One answer of the model, stored; retried while nothing of it was stored. */
async function runModelTurn(loop: TurnLoop, turnId: string): Promise<AssistantMessage> {
  let overflowed = false;
  for (let attempt = 1; ; attempt += 1) {
    const started = loop.clock.now();
    loop.emit({ type: "turn_request", model: loop.modelName, purpose: loop.purpose, attempt }, turnId);
    try {
      const reply = await callModel({
        model: loop.model,
        options: callOptions(loop),
        signal: loop.signal,
        idleTimeoutMs: loop.idleTimeoutMs,
        onDelta: (type, text) => loop.emit({ type, text }, turnId),
      });
      return await storeReply(loop, reply, { turnId, started });
    } catch (error) {
      if (!(error instanceof InterruptedReply)) throw error;
      if (loop.signal.aborted) {
        await storePartial(loop, error.partial, { turnId, started });
        throw loop.signal.reason;
      }
      const found = toModelFailure(error.cause, loop.clock.now());
      const makesRoom = found.overflow && !overflowed && loop.beforeTurn !== undefined;
      const retries =
        makesRoom ||
        (found.retryable && attempt < loop.retry.attempts && withinPatience(found.retryAfterMs, loop.retry));
      const delayMs = makesRoom || !retries ? 0 : retryDelayMs(found, attempt, loop.retry);
      loop.emit(
        {
          type: "error",
          error: { type: errorType(found.error), message: found.error.message },
          will_retry: retries,
          retry_in_ms: delayMs,
        },
        turnId,
      );
      if (!retries) {
        await storePartial(loop, error.partial, { turnId, started });
        throw found.error;
      }
      if (makesRoom) {
        overflowed = true;
        await loop.beforeTurn?.("overflow");
      } else await waitToRetry(delayMs, loop);
    }
  }
}

function callOptions(loop: TurnLoop): LanguageModelV4CallOptions {
  const { state } = loop;
  // The model is given the session's own array: copying it would cost more with every turn.
  state.prompt[0] = { role: "system", content: loop.system };
  return {
    ...loop.settings,
    prompt: state.prompt,
    ...(loop.tools.length === 0 ? undefined : { tools: loop.tools as LanguageModelV4FunctionTool[] }),
  };
}

interface Timing {
  readonly turnId: string;
  readonly started: number;
}

async function storeReply(loop: TurnLoop, reply: ModelReply, timing: Timing): Promise<AssistantMessage> {
  const now = loop.clock.now();
  const message: AssistantMessage = {
    role: "assistant",
    content: reply.content,
    timestamp: isoTime(now),
    model: loop.modelName,
    usage: loop.usageOf(reply.usage, loop.state),
    finish_reason: reply.finishReason,
  };
  const written = loop.commit([toEntry(loop, message)]);
  if (written !== undefined) await written;
  loop.emit(
    {
      type: "turn",
      model: loop.modelName,
      usage: message.usage,
      finish_reason: message.finish_reason,
      purpose: loop.purpose,
      duration_ms: now - timing.started,
    },
    timing.turnId,
  );
  return message;
}

/** Keeps what the reader of the stream has already seen; its tool calls were never run. */
async function storePartial(loop: TurnLoop, partial: ModelReply, timing: Timing): Promise<void> {
  if (partial.content.length === 0) return;
  const message = await storeReply(loop, { ...partial, finishReason: partial.finishReason }, timing);
  const calls = message.content.filter((part) => part.type === "tool_call");
  if (calls.length === 0) return;
  const content = calls.map((call) =>
    failure(call, "The call was never run: the answer that asked for it broke off."),
  );
  await loop.commit([toEntry(loop, { role: "tool", content, timestamp: isoTime(loop.clock.now()) })]);
}

function toEntry(loop: TurnLoop, message: Message): SessionEntry {
  return { version: 1, type: "message", message, operation_id: loop.operationId };
}

// A provider that asks for more than a few minutes is asking a person, not a loop.
function withinPatience(retryAfterMs: number | undefined, policy: RetryPolicy): boolean {
  return retryAfterMs === undefined || retryAfterMs <= policy.maxDelayMs * 4;
}

function errorType(error: KitError): "model_error" | "model_timeout" | "context_overflow" {
  return error.code === "model_timeout" || error.code === "context_overflow" ? error.code : "model_error";
}

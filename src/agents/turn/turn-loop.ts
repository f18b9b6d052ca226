import type {
  LanguageModelV4CallOptions,
  LanguageModelV4FunctionTool,
  LanguageModelV4Prompt,
} from "@ai-sdk/provider";
import { isoTime } from "../../base/clock.ts";
import { createId } from "../../base/id.ts";
import type { EventBody } from "../../protocol/event.ts";
import type { AssistantMessage, ToolCallPart } from "../../protocol/message.ts";
import type { SessionEntry } from "../../protocol/session-entry.ts";
import type { MaybePromise } from "../../stores/contract.ts";
import type { Operation } from "../agent-runtime.ts";
import { callerKind } from "../approvals/call-kinds.ts";
import { createDeltas, type DeltaSource } from "../events.ts";
import { notRun } from "../log/operation-log.ts";
import { promptOf } from "../log/session-state.ts";
import { willResume } from "../log/suspension.ts";
import { composedEntry } from "../log/to-prompt.ts";
import { maskAnswer } from "../masked-parts.ts";
import { isRefusal } from "../output/typed-output.ts";
import { readablePrompt, takesFile } from "../prompt/input-files.ts";
import { keepHead, type RecordedPrompt } from "../prompt/turn-records.ts";
import { maskValue } from "../secrets.ts";
import { toUsage } from "./budget.ts";
import { CallWatch, callModel, InterruptedReply, type ModelReply } from "./call-model.ts";
import type { TurnHooks } from "./hook-calls.ts";
import { type TurnLoop, toEntry, toolRunOf } from "./loop-parts.ts";
import { type ModelFailure, planRetry } from "./retry.ts";
import { runTools } from "./run-tools.ts";
import { type CallSettings, callSettingsOf, noSettings, reportedSettings } from "./turn-settings.ts";

/**
 * Kit's own loop: calls the model, runs the tools that it requests, and repeats this until it requests none. Returns that answer.
 * However it ends, every tool call in the history has a result, so that the next operation can continue from it.
 */
export async function runTurns(loop: TurnLoop): Promise<AssistantMessage> {
  const watch = new CallWatch(loop.operation.signal, loop.idleTimeoutMs);
  // One `try` for all turns: `using`, which the build would translate, costs more.
  let turnId: string | undefined;
  let toolCalls = 0;
  try {
    for (;;) {
      loop.operation.spending.check();
      const { session } = loop;
      const joining = loop.joins ? session.join() : undefined;
      if (joining !== undefined) await joining;
      if (loop.sent === undefined && session.needsRoom("threshold")) await session.makeRoom("threshold");
      toolCalls = 0;
      turnId = createId("turn");
      const message = await runModelTurn(loop, turnId, watch);
      const calls = callsOf(message);
      toolCalls = calls.length;
      if (toolCalls > 0) await runTools(loop, calls, { turnId });
      if (!loop.operation.events.skip())
        loop.operation.emit({ type: "turn_end", tool_calls: toolCalls }, turnId);
      turnId = undefined;
      if (toolCalls === 0) {
        loop.work.runs += 1;
        return message;
      }
      loop.operation.signal.throwIfAborted();
    }
  } catch (error) {
    if (turnId !== undefined) emitTurnFailed(loop.operation, turnId, toolCalls);
    throw error;
  } finally {
    watch[Symbol.dispose]();
  }
}

/** Emits the end of a failed or aborted turn; a postponed turn ends later. */
export function emitTurnFailed(
  { emit, signal }: Pick<Operation, "emit" | "signal">,
  turnId: string,
  toolCalls: number,
): void {
  if (willResume(signal)) return;
  const aborted = signal.aborted ? ({ is_aborted: true } as const) : {};
  emit({ type: "turn_end", tool_calls: toolCalls, is_error: true, ...aborted }, turnId);
}

/** Gets one answer of the model and appends it; retries while nothing of it was appended. */
export async function runModelTurn(
  given: TurnLoop,
  turnId: string,
  watch: CallWatch,
): Promise<AssistantMessage> {
  const configured = given.forcedTools === undefined ? given : withForced(given, given.forcedTools);
  let attempt: Attempt = { loop: withModel(configured), number: 1, overflowed: false };
  for (;;) {
    const { loop } = attempt;
    const { operation } = loop;
    const { reported, logged } = loop.prompt.records.record(loop, turnId);
    const settings = callSettingsOf(loop, operation.spending.turns);
    if (!operation.events.skip()) emitRequest(attempt, turnId, { reported, settings });
    const { limiter } = loop.resolved;
    const admission =
      limiter === undefined ? undefined : await limiter.admit(operation.state.tokens, operation.signal);
    const timing: Timing = { turnId, started: loop.clock.now(), logged };
    const answering = createDeltas(new AnsweringTurn(loop, turnId));
    try {
      const loopOptions = callOptions(loop, settings);
      const options =
        loop.hooks === undefined ? loopOptions : await loop.hooks.before(loopOptions, loop.resolved.name);
      if (
        loop.sent !== undefined ||
        loopOptions.prompt !== options.prompt ||
        operation.state.files.length > 0
      )
        timing.composed = composedBy(loop, turnId, [loopOptions.prompt, options.prompt]);
      const answer = await callModel({
        model: loop.resolved.model,
        options: operation.tracing === undefined ? options : traceTurn(options, loop, turnId),
        watch,
        reader: answering,
      });
      answering.end();
      const reply = loop.hooks === undefined ? answer : await askAfterModel(loop, loop.hooks, answer);
      const storing = storeReply(loop, reply, timing);
      const message = storing instanceof Promise ? await storing : storing;
      admission?.settle(message.usage.total_tokens);
      return message;
    } catch (error) {
      if (!(error instanceof InterruptedReply)) throw error;
      answering.end();
      attempt = await nextAttempt(attempt, timing, { configured, interrupted: error });
    }
  }
}

/** One model call of a turn. */
interface Attempt {
  readonly loop: TurnLoop;
  /** 1 for the first call of a model. */
  readonly number: number;
  /** Whether the history was compacted because it was too long for the model. */
  readonly overflowed: boolean;
}

function emitRequest(
  { loop, number: attempt }: Attempt,
  turnId: string,
  { reported, settings }: Pick<RecordedPrompt, "reported"> & { readonly settings: CallSettings },
): void {
  const { operation, prompt, purpose, resolved, tools } = loop;
  const { mask, state } = operation;
  operation.emit(
    {
      type: "turn_request",
      model: resolved.name,
      provider: resolved.model.provider,
      purpose,
      attempt,
      ...reported,
      head: keepHead(loop.store, { system: prompt.current.text, tools, settings, mask }),
      log_position: state.position,
      settings: settings === noSettings ? undefined : reportedSettings(settings),
      compacted: state.compactedAt > 0 ? true : undefined,
    },
    turnId,
  );
}

/**
 * Decides about an interrupted call, and waits until the next one may start. Throws if there is none.
 *
 * A function of its own: V8 compiles `runModelTurn` early, and this is most of its code.
 */
async function nextAttempt(
  attempt: Attempt,
  timing: Timing,
  { configured, interrupted }: { readonly configured: TurnLoop; readonly interrupted: InterruptedReply },
): Promise<Attempt> {
  const { loop, number, overflowed } = attempt;
  const { clock, operation, retry, session } = loop;
  const { signal } = operation;
  const { turnId } = timing;
  if (signal.aborted) {
    // A postponed operation repeats this turn from its beginning.
    if (!willResume(signal)) await storePartial(loop, interrupted.partial, timing);
    throw signal.reason;
  }
  const plan = planRetry(interrupted.cause, number, { clock, retry, failures: operation.failures });
  const compacts =
    plan.failure.overflow && !overflowed && loop.sent === undefined && session.needsRoom("overflow");
  const next = plan.retries || compacts ? undefined : await nextModel(loop, plan.failure);
  const mayDropSchema = loop.mayDropSchema === true && isRefusal(plan.failure.error);
  const event = next === undefined ? plan.event : { ...plan.event, next_model: next };
  if (plan.retries || compacts || next !== undefined || mayDropSchema)
    operation.emit({ ...event, will_retry: true }, turnId);
  else await operation.failures.report(plan.failure.error, turnId);
  if (compacts) {
    await session.makeRoom("overflow");
    return { loop, number: number + 1, overflowed: true };
  }
  if (plan.retries) {
    await operation.log.stored();
    await clock.sleep(plan.delayMs, signal);
    return { loop, number: number + 1, overflowed };
  }
  if (next !== undefined) return { loop: withModel(configured), number: 1, overflowed: false };
  await storePartial(loop, interrupted.partial, timing);
  throw plan.failure.error;
}

/** The answer of a turn, while it arrives. A class: functions would live as long as the answer takes. */
class AnsweringTurn implements DeltaSource {
  readonly #loop: TurnLoop;
  readonly #turnId: string;
  readonly mask: DeltaSource["mask"];
  readonly partial: DeltaSource["partial"];

  constructor(loop: TurnLoop, turnId: string) {
    this.#loop = loop;
    this.#turnId = turnId;
    this.mask = loop.operation.mask;
    this.partial = loop.partialResult?.();
  }

  emit(body: EventBody): void {
    const { hidesDeltas, operation } = this.#loop;
    if (hidesDeltas !== true && !operation.events.skip()) operation.emit(body, this.#turnId);
  }

  kindOf(tool: string): ReturnType<typeof callerKind> {
    return callerKind(toolRunOf(this.#loop).tools.get(tool));
  }
}

/** Asks the hooks after a model call. An answer that they refuse is not stored, but it is paid for. */
async function askAfterModel(loop: TurnLoop, hooks: TurnHooks, answer: ModelReply): Promise<ModelReply> {
  try {
    return await hooks.after(answer, loop.resolved.name);
  } catch (error) {
    loop.operation.spending.addUnlogged(toUsage(answer.usage, loop.resolved.price));
    throw error;
  }
}

/** Offers the forced tools alone in the first turn. A turn that a backend offers without them is not forced. */
function withForced(loop: TurnLoop, forced: readonly string[]): TurnLoop {
  if (loop.operation.spending.turns > 0) return loop;
  const tools = loop.tools.filter(({ name }) => forced.includes(name));
  if (tools.length > 0) return { ...loop, tools };
  return { ...loop, modelSettings: { ...loop.modelSettings, toolChoice: undefined } };
}

/** Returns the loop with the model that is in use now. */
function withModel(loop: TurnLoop): TurnLoop {
  const other = loop.fallback?.current(loop);
  return other === undefined ? loop : { ...loop, ...other };
}

/** Switches to the next model. A refused response format is dropped first: see `firstAnswer`. */
async function nextModel(loop: TurnLoop, failure: ModelFailure): Promise<string | undefined> {
  if (loop.settings.responseFormat !== undefined && isRefusal(failure.error)) return undefined;
  return loop.fallback?.next(failure);
}

/** Adds trace headers to a call, and records its prompt on the turn's span. */
function traceTurn(
  options: LanguageModelV4CallOptions,
  { operation: { tracing, state, mask, live }, prompt, resolved: { server }, tools }: TurnLoop,
  turn_id: string,
): LanguageModelV4CallOptions {
  const content = () => ({ system: prompt.current.text, messages: state.messages });
  const request = { server, tools, description: live.profile.description ?? "" };
  tracing?.notify({ turn_id }, { content, request }, mask);
  const trace = tracing?.headers({ turn_id });
  return trace === undefined ? options : { ...options, headers: { ...options.headers, ...trace } };
}

/** The note about the prompt of a turn, if a backend or a hook composed it. */
function composedBy(
  loop: TurnLoop,
  id: string,
  [loopPrompt, sent]: readonly [LanguageModelV4Prompt, LanguageModelV4Prompt],
): SessionEntry | undefined {
  const { state, mask, id: operationId } = loop.operation;
  const isOwn = loop.sent === undefined && loopPrompt === sent;
  if (isOwn && state.files.every((file) => takesFile(loop.resolved.files, file))) return undefined;
  const own = promptOf(state, loop.prompt.current.text);
  return composedEntry({ id, operationId, now: loop.clock.now(), mask }, own, sent);
}

function callOptions(loop: TurnLoop, settings: CallSettings): LanguageModelV4CallOptions {
  const { state } = loop.operation;
  // The session's own array: a copy would cost more with every turn.
  const prompt = loop.sent ?? promptOf(state, loop.prompt.current.text);
  const options: LanguageModelV4CallOptions = {
    ...settings,
    prompt: state.files.length === 0 ? prompt : readablePrompt(prompt, state.files, loop.resolved.files),
  };
  if (loop.tools.length > 0) options.tools = loop.tools as LanguageModelV4FunctionTool[];
  return loop.resolved.promptCache?.(options, state.key) ?? options;
}

/** The facts about a model call that the entry and the event of its answer have. */
export interface Timing {
  readonly turnId: string;
  readonly started: number;
  readonly logged: RecordedPrompt["logged"];
  composed?: SessionEntry | undefined;
}

/** Appends an answer to the log. Synchronous if the store is. */
export function storeReply(
  loop: TurnLoop,
  reply: ModelReply,
  timing: Timing,
): MaybePromise<AssistantMessage> {
  const { operation, resolved } = loop;
  const { mask, log, spending } = operation;
  const now = loop.clock.now();
  const message: AssistantMessage = {
    role: "assistant",
    content: mask === undefined ? reply.content : maskAnswer(reply.content, mask),
    timestamp: isoTime(now),
    model: resolved.name,
    usage: toUsage(reply.usage, resolved.price),
    finish_reason: reply.finishReason,
  };
  spending.turns += 1;
  spending.add(message.usage);
  const turn = mask === undefined ? timing.logged : maskValue(timing.logged, mask);
  const { id: operation_id } = operation;
  // Every field stands here: one that is added to an object lies in a second one, which the store keeps, too.
  const logged: SessionEntry =
    turn === undefined
      ? { version: 1, type: "message", message, operation_id }
      : { version: 1, type: "message", message, operation_id, turn };
  const messageEntries = loop.toEntries?.(logged, message) ?? [logged];
  const entries = timing.composed === undefined ? messageEntries : [...messageEntries, timing.composed];
  // A final answer is paid for, so it is kept in memory if the store is unavailable. An answer with calls is requested again.
  const written = log.commit(entries, callsOf(message).length === 0);
  if (written === undefined && operation.events.skip()) return message;
  const duration_ms = now - timing.started;
  const stored = { message, metadata: reply.metadata, entries: entries.length, duration_ms };
  return written === undefined
    ? emitReply(loop, timing, stored)
    : emitWhenWritten(written, [loop, timing, stored]);
}

interface StoredReply extends Pick<ModelReply, "metadata"> {
  readonly message: AssistantMessage;
  /** The number of its entries. */
  readonly entries: number;
  readonly duration_ms: number;
}

/** A function of its own: a closure would have `storeReply` keep its variables in the heap, also where the store is synchronous. */
function emitWhenWritten(
  written: Promise<void>,
  [loop, timing, stored]: Parameters<typeof emitReply>,
): Promise<AssistantMessage> {
  return written.then(() =>
    loop.operation.events.skip() ? stored.message : emitReply(loop, timing, stored),
  );
}

function emitReply(
  { operation, purpose }: TurnLoop,
  { turnId }: Timing,
  { message, metadata, entries, duration_ms }: StoredReply,
): AssistantMessage {
  operation.tracing?.notifyCalls({ turn_id: turnId }, callsOf(message));
  operation.emit(
    {
      type: "turn",
      model: message.model,
      usage: message.usage,
      finish_reason: message.finish_reason,
      purpose,
      log_position: operation.state.position - entries + 1,
      ...metadata,
      duration_ms,
    },
    turnId,
  );
  return message;
}

/** Appends the part of an answer that readers have already seen; its tool calls never ran. */
export async function storePartial(loop: TurnLoop, partial: ModelReply, timing: Timing): Promise<void> {
  if (partial.content.length === 0) return;
  const message = await storeReply(loop, partial, timing);
  const calls = callsOf(message);
  if (calls.length === 0) return;
  const content = calls.map((call) =>
    notRun(call, "The call was never run: the answer that asked for it broke off."),
  );
  await loop.operation.log.commit([
    toEntry(loop, { role: "tool", content, timestamp: isoTime(loop.clock.now()) }),
  ]);
}

export function callsOf({ content }: AssistantMessage): readonly ToolCallPart[] {
  if (!content.some(isCall)) return noCalls;
  return content.every(isCall) ? content : content.filter(isCall);
}

const noCalls: readonly ToolCallPart[] = [];

function isCall(part: AssistantMessage["content"][number]): part is ToolCallPart {
  return part.type === "tool_call";
}

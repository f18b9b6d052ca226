import type {
  LanguageModelV4,
  LanguageModelV4CallOptions,
  LanguageModelV4FunctionTool,
  LanguageModelV4Prompt,
} from "@ai-sdk/provider";
import { type Clock, isoTime } from "../../base/clock.ts";
import { createId } from "../../base/id.ts";
import type { CallLimiter, PromptCache, ResolvedModel } from "../../models/contract.ts";
import type { EventBody, TurnPurpose } from "../../protocol/event.ts";
import type {
  AssistantMessage,
  Message,
  ToolCallPart,
  ToolMessage,
  ToolResultPart,
} from "../../protocol/message.ts";
import type { SessionEntry } from "../../protocol/session-entry.ts";
import type { MaybePromise } from "../../stores/contract.ts";
import type { BackendWork } from "../agent-runtime.ts";
import { type CallSettings, callSettingsOf, type ModelSettings } from "../define/profile-settings.ts";
import { createDeltas, type OperationTracing } from "../events.ts";
import { notRun, type OperationLog } from "../log/operation-log.ts";
import { promptOf, type SessionState } from "../log/session-state.ts";
import { isSuspension, type Suspension, willResume } from "../log/suspension.ts";
import { composedEntry } from "../log/to-prompt.ts";
import { isRefusal } from "../output/typed-output.ts";
import { readablePrompt, takesFile } from "../prompt/input-files.ts";
import type { LoopPrompt, RecordedPrompt } from "../prompt/turn-records.ts";
import { maskValue, type SecretMask } from "../secrets.ts";
import { type Spending, spentEntries, toUsage } from "./budget.ts";
import { CallWatch, callModel, InterruptedReply, type ModelReply } from "./call-model.ts";
import type { TurnHooks } from "./hook-calls.ts";
import { type ModelFailure, type ModelRetryPolicy, planRetry, waitToRetry } from "./retry.ts";
import { keyOf, runToolCalls, type ToolRunOptions } from "./tool-calls.ts";

/** The parts of a resolved model that turns use. */
export interface ModelParts {
  readonly model: LanguageModelV4;
  /** As configured: `anthropic/claude-sonnet-4-6`. */
  readonly modelName: string;
  readonly promptCache: PromptCache | undefined;
  /** Undefined if the price is unknown. */
  readonly price: ResolvedModel["price"];
  /** The files that the model reads; the history may have others, of another model. */
  readonly files: ResolvedModel["files"] | undefined;
  /** Enforces the configured limit of requests to the provider per minute. */
  readonly limiter: CallLimiter | undefined;
}

/** The values that all turns of one operation share. */
export interface TurnLoop extends ModelParts {
  /** The backend that decides the turns. */
  readonly work: BackendWork;
  readonly state: SessionState;
  readonly log: OperationLog;
  /** The models that take over if this one fails permanently. */
  readonly fallback?: {
    /** The parts of the fallback model, once it has taken over. */
    readonly current: (loop: TurnLoop) => (ModelParts & Pick<TurnLoop, "settings">) | undefined;
    /** Switches to the next model and returns its name; undefined if none is left. */
    readonly next: (failure: ModelFailure) => Promise<string | undefined>;
  };
  readonly prompt: LoopPrompt;
  /** Stores the parts of a turn's request besides its messages, and returns their name; missing if nothing stores them. */
  readonly keepHead?: ((loop: TurnLoop, settings: CallSettings) => string | undefined) | undefined;
  readonly tools: readonly LanguageModelV4FunctionTool[];
  /** Returns the options of tool calls, created for the first call. */
  readonly toolRun: () => ToolRunOptions;
  /** Removes secrets from texts; undefined if there are none. */
  readonly mask: SecretMask | undefined;
  readonly settings: Pick<
    LanguageModelV4CallOptions,
    | "reasoning"
    | "responseFormat"
    | "toolChoice"
    | "maxOutputTokens"
    | "headers"
    | "providerOptions"
    | "stopSequences"
  >;
  /** The settings of the profile and the call; those that the turn itself needs win. */
  readonly modelSettings?: ModelSettings | undefined;
  readonly hooks?: TurnHooks | undefined;
  /** Creates the reader of a typed answer, whose deltas carry the result so far; absent for a plain text. */
  readonly partialResult?: (() => { push(text: string): unknown }) | undefined;
  readonly operationId: string;
  readonly purpose: TurnPurpose;
  readonly spending: Spending;
  readonly retry: ModelRetryPolicy;
  readonly idleTimeoutMs: number;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly emit: (body: EventBody, turnId?: string) => void;
  /** The operation's spans; undefined if tracing is off. */
  readonly tracing: OperationTracing | undefined;
  /** Whether the history must be compacted before the next model call. */
  readonly needsRoom: (reason: "threshold" | "overflow") => boolean;
  readonly makeRoom: (reason: "threshold" | "overflow") => Promise<void>;
  /** Entries to append with tool results, such as guidelines for the touched files. */
  readonly afterTools?: (calls: readonly ToolCallPart[]) => MaybePromise<readonly SessionEntry[]>;
  /** The prompt that replaces the history if a backend sends its own messages. */
  readonly sent?: LanguageModelV4Prompt;
  /** The log entries of an answer; default: the message itself. */
  readonly toEntries?: (entry: SessionEntry, message: AssistantMessage) => readonly SessionEntry[];
}

/**
 * Kit's own loop: calls the model, runs the tools that it requests, and repeats this until it requests none. Returns that answer.
 * However it ends, every tool call in the history has a result, so that the next operation can continue from it.
 */
export async function runTurns(loop: TurnLoop): Promise<AssistantMessage> {
  using watch = new CallWatch(loop);
  for (;;) {
    loop.spending.check();
    if (loop.needsRoom("threshold")) await loop.makeRoom("threshold");
    const turnId = createId("turn");
    let toolCalls = 0;
    try {
      const message = await runModelTurn(loop, turnId, watch);
      const calls = callsOf(message);
      toolCalls = calls.length;
      if (toolCalls > 0) await runTools(loop, calls, { turnId });
      loop.emit({ type: "turn_end", tool_calls: toolCalls }, turnId);
      if (toolCalls === 0) {
        loop.work.runs += 1;
        return message;
      }
    } catch (error) {
      emitTurnFailed(loop, turnId, toolCalls);
      throw error;
    }
    loop.signal.throwIfAborted();
  }
}

/** Emits the end of a failed or aborted turn; a postponed turn ends later. */
export function emitTurnFailed(
  { emit, signal }: Pick<TurnLoop, "emit" | "signal">,
  turnId: string,
  toolCalls: number,
): void {
  if (willResume(signal)) return;
  const aborted = signal.aborted ? ({ is_aborted: true } as const) : {};
  emit({ type: "turn_end", tool_calls: toolCalls, is_error: true, ...aborted }, turnId);
}

export function callsOf({ content }: AssistantMessage): readonly ToolCallPart[] {
  const calls: ToolCallPart[] = [];
  for (const part of content) if (part.type === "tool_call") calls.push(part);
  return calls;
}

/**
 * Runs the calls of the newest message and appends their results. With `interrupted`, the process ended while they
 * ran: only calls that may run twice run again.
 */
export async function runTools(
  loop: TurnLoop,
  calls: readonly ToolCallPart[],
  how: {
    readonly turnId: string;
    readonly interrupted?: boolean;
    readonly suspension?: Suspension | undefined;
  },
): Promise<readonly ToolResultPart[]> {
  // The log position is the same in every attempt at these calls; call ids are not unique.
  const callKey = `${loop.operationId}:${loop.state.positions.at(-1) ?? 0}`;
  let postponed: unknown;
  const onPostponed = (cause: unknown): void => {
    postponed ??= cause;
  };
  const { turnId: id, interrupted = false, suspension } = how;
  const turn = { id, callKey, interrupted, suspension, onPostponed };
  const toolRun = loop.toolRun();
  const outcomes = await runToolCalls(calls, turn, toolRun);
  // `slice` allocates the exact length, which matters for arrays that stay in the history.
  const results = outcomes.filter((result) => result !== undefined).slice();
  if (results.length < calls.length) {
    // The turn continues when the operation resumes, with the results so far.
    const done = outcomes.flatMap((result, at) =>
      result === undefined ? [] : [[keyOf(turn, at), result] as const],
    );
    await toolRun.gate.keepResults(new Map(done));
    if (isSuspension(loop.signal)) loop.signal.reason.turnId = id;
    throw loop.signal.aborted ? loop.signal.reason : postponed;
  }
  const message: ToolMessage = { role: "tool", content: results, timestamp: isoTime(loop.clock.now()) };
  const entries: SessionEntry[] = [toEntry(loop, message)];
  try {
    if (loop.afterTools !== undefined && !loop.signal.aborted) {
      const pending = loop.afterTools(calls);
      const added = pending instanceof Promise ? await pending : pending;
      entries.push(...(loop.mask === undefined ? added : maskValue(added, loop.mask)));
    }
  } finally {
    // Results of tools are kept even if a later step fails.
    entries.push(...spentEntries(loop.spending, { operationId: loop.operationId, clock: loop.clock }));
    const written = loop.log.commitAhead(entries);
    if (written !== undefined) await written;
  }
  return results;
}

/** Gets one answer of the model and appends it; retries while nothing of it was appended. */
export async function runModelTurn(
  configured: TurnLoop,
  turnId: string,
  watch: CallWatch,
): Promise<AssistantMessage> {
  let overflowed = false;
  let loop = withModel(configured);
  for (let attempt = 1; ; attempt += 1) {
    const { reported, logged } = loop.prompt.records.record(loop, turnId);
    const { modelName: model, purpose } = loop;
    const { provider } = loop.model;
    const settings = callSettingsOf(loop);
    const stored = { head: loop.keepHead?.(loop, settings), log_position: loop.state.position };
    loop.emit({ type: "turn_request", model, provider, purpose, attempt, ...reported, ...stored }, turnId);
    const admission =
      loop.limiter === undefined ? undefined : await loop.limiter.admit(loop.state.tokens, loop.signal);
    const started = loop.clock.now();
    const timing: Timing = { turnId, started, logged };
    const deltas = createDeltas({
      emit: (body) => loop.emit(body, turnId),
      mask: loop.mask,
      partial: loop.partialResult?.(),
    });
    try {
      const loopOptions = callOptions(loop, settings);
      const options = loop.hooks === undefined ? loopOptions : await loop.hooks.before(loopOptions, model);
      timing.composed = composedBy(loop, turnId, [loopOptions.prompt, options.prompt]);
      const answer = await callModel({
        model: loop.model,
        options: traceTurn(options, loop, turnId),
        watch,
        onDelta: deltas.push,
      });
      deltas.end();
      const reply = loop.hooks === undefined ? answer : await askAfterModel(loop, loop.hooks, answer);
      const message = await storeReply(loop, reply, timing);
      admission?.settle(message.usage.total_tokens);
      return message;
    } catch (error) {
      if (!(error instanceof InterruptedReply)) throw error;
      deltas.end();
      if (loop.signal.aborted) {
        // A postponed operation repeats this turn from its beginning.
        if (!willResume(loop.signal)) await storePartial(loop, error.partial, timing);
        throw loop.signal.reason;
      }
      const plan = planRetry(error.cause, attempt, loop);
      const compacts = plan.failure.overflow && !overflowed && loop.needsRoom("overflow");
      const next = plan.retries || compacts ? undefined : await nextModel(loop, plan.failure);
      const event = next === undefined ? plan.event : { ...plan.event, next_model: next };
      loop.emit({ ...event, will_retry: plan.retries || compacts || next !== undefined }, turnId);
      if (compacts) {
        overflowed = true;
        await loop.makeRoom("overflow");
      } else if (plan.retries) {
        await loop.log.stored();
        await waitToRetry(plan.delayMs, loop);
      } else if (next !== undefined) {
        loop = withModel(configured);
        attempt = 0;
        overflowed = false;
      } else {
        await storePartial(loop, error.partial, timing);
        throw plan.failure.error;
      }
    }
  }
}

/** Asks the hooks after a model call. An answer that they refuse is not stored, but it is paid for. */
async function askAfterModel(loop: TurnLoop, hooks: TurnHooks, answer: ModelReply): Promise<ModelReply> {
  try {
    return await hooks.after(answer, loop.modelName);
  } catch (error) {
    loop.spending.addUnlogged(toUsage(answer.usage, loop.price));
    throw error;
  }
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
  { tracing, prompt, state, mask }: TurnLoop,
  turn_id: string,
): LanguageModelV4CallOptions {
  if (tracing === undefined) return options;
  const content = () => ({ system: prompt.current.text, messages: state.messages });
  tracing.notify({ turn_id }, content, mask);
  const trace = tracing.headers({ turn_id });
  return trace === undefined ? options : { ...options, headers: { ...options.headers, ...trace } };
}

/** The note about the prompt of a turn, if a backend or a hook composed it. */
function composedBy(
  loop: TurnLoop,
  id: string,
  [loopPrompt, sent]: readonly [LanguageModelV4Prompt, LanguageModelV4Prompt],
): SessionEntry | undefined {
  const { state, mask, operationId, clock } = loop;
  const isOwn =
    loop.sent === undefined &&
    loopPrompt === sent &&
    state.files.every((file) => takesFile(loop.files, file));
  if (isOwn || loop.keepHead === undefined) return undefined;
  const turn = { id, operationId, now: clock.now(), mask };
  return composedEntry(turn, promptOf(state, loop.prompt.current.text), sent);
}

function callOptions(loop: TurnLoop, settings: CallSettings): LanguageModelV4CallOptions {
  const { files } = loop.state;
  // The session's own array: a copy would cost more with every turn.
  const prompt = loop.sent ?? promptOf(loop.state, loop.prompt.current.text);
  const options: LanguageModelV4CallOptions = {
    ...settings,
    prompt: files.length === 0 ? prompt : readablePrompt(prompt, files, loop.files),
    ...(loop.tools.length === 0 ? undefined : { tools: loop.tools as LanguageModelV4FunctionTool[] }),
  };
  return loop.promptCache?.(options, loop.state.key) ?? options;
}

interface Timing {
  readonly turnId: string;
  readonly started: number;
  readonly logged: RecordedPrompt["logged"];
  composed?: SessionEntry | undefined;
}

async function storeReply(loop: TurnLoop, reply: ModelReply, timing: Timing): Promise<AssistantMessage> {
  const now = loop.clock.now();
  const { mask } = loop;
  const message: AssistantMessage = {
    role: "assistant",
    content: mask === undefined ? reply.content : maskValue(reply.content, mask),
    timestamp: isoTime(now),
    model: loop.modelName,
    usage: toUsage(reply.usage, loop.price),
    finish_reason: reply.finishReason,
  };
  loop.spending.turns += 1;
  loop.spending.add(message.usage);
  const entry = toEntry(loop, message);
  const turn = mask === undefined ? timing.logged : maskValue(timing.logged, mask);
  const logged = turn === undefined ? entry : { ...entry, turn };
  const messageEntries = loop.toEntries?.(logged, message) ?? [logged];
  const entries = timing.composed === undefined ? messageEntries : [...messageEntries, timing.composed];
  // A final answer is paid for, so it is kept in memory if the store is unavailable. An answer with calls is requested again.
  const store = (): MaybePromise<void> => loop.log.commit(entries);
  const written = callsOf(message).length === 0 ? loop.log.orKeep(entries, store) : store();
  if (written !== undefined) await written;
  loop.emit(
    {
      type: "turn",
      model: loop.modelName,
      usage: message.usage,
      finish_reason: message.finish_reason,
      purpose: loop.purpose,
      log_position: loop.state.position - entries.length + 1,
      ...reply.metadata,
      duration_ms: now - timing.started,
    },
    timing.turnId,
  );
  return message;
}

/** Appends the part of an answer that readers have already seen; its tool calls never ran. */
async function storePartial(loop: TurnLoop, partial: ModelReply, timing: Timing): Promise<void> {
  if (partial.content.length === 0) return;
  const message = await storeReply(loop, partial, timing);
  const calls = callsOf(message);
  if (calls.length === 0) return;
  const content = calls.map((call) =>
    notRun(call, "The call was never run: the answer that asked for it broke off."),
  );
  await loop.log.commit([toEntry(loop, { role: "tool", content, timestamp: isoTime(loop.clock.now()) })]);
}

export function toEntry(
  loop: Pick<TurnLoop, "operationId">,
  message: Message,
): Extract<SessionEntry, { type: "message" }> {
  return { version: 1, type: "message", message, operation_id: loop.operationId };
}

import type {
  LanguageModelV4,
  LanguageModelV4CallOptions,
  LanguageModelV4FunctionTool,
  LanguageModelV4Prompt,
} from "@ai-sdk/provider";
import { type Clock, isoTime } from "../../base/clock.ts";
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
import type { Operation } from "../agent-runtime.ts";
import type { OperationTracing } from "../events.ts";
import { notRun } from "../log/append.ts";
import { promptOf, type SessionState } from "../log/session-state.ts";
import { isPutOff, isRest, type Rested } from "../log/suspension.ts";
import { isRefusal } from "../output/native-output.ts";
import { takesFile } from "../prompt/input-files.ts";
import type { LoopPrompt, TurnSaid } from "../prompt/turn-records.ts";
import { maskValue } from "../secrets.ts";
import type { BackendWork } from "./backend-work.ts";
import { type Spending, spentEntries, type UsageReader } from "./budget.ts";
import { callModel, InterruptedReply, type ModelCall, type ModelReply } from "./call-model.ts";
import type { CallWatch } from "./call-watch.ts";
import { type ModelFailure, planRetry, type RetryPolicy, waitToRetry } from "./retry.ts";
import { keyOf, runToolCalls, type ToolRunOptions } from "./tool-calls.ts";

/** What turns need of a model. */
export interface ModelParts {
  readonly model: LanguageModelV4;
  /** As configured: `anthropic/claude-sonnet-4-6`. */
  readonly modelName: string;
  readonly promptCache: PromptCache | undefined;
  readonly usageOf: UsageReader;
  /** The files that the model reads; the history may have others, of another model. */
  readonly files: ResolvedModel["files"] | undefined;
  /** Where the configuration limits what the provider is asked in a minute. */
  readonly limiter: CallLimiter | undefined;
}

/** All that the turns of one operation share. */
export interface TurnLoop extends ModelParts {
  /** What decides about them. */
  readonly work: BackendWork;
  readonly state: SessionState;
  readonly commit: (entries: readonly SessionEntry[]) => MaybePromise<void>;
  /** Stores while the model is asked already. */
  readonly commitAhead: (entries: readonly SessionEntry[]) => MaybePromise<void>;
  readonly stored: () => MaybePromise<void>;
  /** Keeps in memory what the store, being away, could not take; see `Operation`. */
  readonly keeping: Operation["keeping"];
  /** The models that answer where this one fails for good. */
  readonly fallback?: {
    /** What is another model's own, once one has taken over. */
    readonly current: (loop: TurnLoop) => (ModelParts & Pick<TurnLoop, "settings">) | undefined;
    /** Hands over to the next model, and names it; undefined where none is left. */
    readonly next: (failure: ModelFailure) => Promise<string | undefined>;
  };
  readonly prompt: LoopPrompt;
  readonly tools: readonly LanguageModelV4FunctionTool[];
  readonly toolRun: ToolRunOptions;
  readonly settings: Pick<
    LanguageModelV4CallOptions,
    "reasoning" | "responseFormat" | "toolChoice" | "maxOutputTokens" | "headers" | "providerOptions"
  >;
  readonly operationId: string;
  readonly purpose: TurnPurpose;
  readonly spending: Spending;
  readonly retry: RetryPolicy;
  readonly idleTimeoutMs: number;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly emit: (body: EventBody, turnId?: string) => void;
  /** The spans that calls of the model hand on; undefined where nothing is traced. */
  readonly tracing: OperationTracing | undefined;
  /** Whether the history has to be shortened before the model is called. */
  readonly makesRoom: (reason: "threshold" | "overflow") => boolean;
  readonly makeRoom: (reason: "threshold" | "overflow") => Promise<void>;
  /** Entries to store with the results of the tools, such as guidelines for the files they touched. */
  readonly afterTools?: (calls: readonly ToolCallPart[]) => MaybePromise<readonly SessionEntry[]>;
  /** The prompt that replaces the history, where a backend asks the model beside the conversation. */
  readonly sent?: LanguageModelV4Prompt;
  /** How an answer goes into the log; default: as the next message. */
  readonly toEntries?: (entry: SessionEntry, message: AssistantMessage) => readonly SessionEntry[];
}

/** Ends a turn that has failed or was stopped; one that goes on later ends then. */
export function sayTurnFailed(
  { emit, signal }: Pick<TurnLoop, "emit" | "signal">,
  turnId: string,
  toolCalls: number,
): void {
  if (isPutOff(signal)) return;
  const aborted = signal.aborted ? ({ is_aborted: true } as const) : {};
  emit({ type: "turn_end", tool_calls: toolCalls, is_error: true, ...aborted }, turnId);
}

export function callsOf({ content }: AssistantMessage): readonly ToolCallPart[] {
  const calls: ToolCallPart[] = [];
  for (const part of content) if (part.type === "tool_call") calls.push(part);
  return calls;
}

/**
 * Runs the calls of the newest message, and stores their results. With `interrupted`, the process ended
 * while they ran: only what may run twice is run again.
 */
export async function runTools(
  loop: TurnLoop,
  calls: readonly ToolCallPart[],
  how: { readonly turnId: string; readonly interrupted?: boolean; readonly rested?: Rested | undefined },
): Promise<readonly ToolResultPart[]> {
  // The place in the log is the same whenever these calls are made again; ids of calls are not unique.
  const callKey = `${loop.operationId}:${loop.state.positions.at(-1) ?? 0}`;
  let putOff: unknown;
  const onPutOff = (cause: unknown): void => {
    putOff ??= cause;
  };
  const { turnId: id, interrupted = false, rested } = how;
  const turn = { id, callKey, interrupted, rested, onPutOff };
  const outcomes = await runToolCalls(calls, turn, loop.toolRun);
  // What stays in the history is a slice: it has no room for elements that never come.
  const results = outcomes.filter((result) => result !== undefined).slice();
  if (results.length < calls.length) {
    // The turn is not over: it goes on when the operation does, with the results that it has.
    const done = outcomes.flatMap((result, at) =>
      result === undefined ? [] : [[keyOf(turn, at), result] as const],
    );
    await loop.toolRun.gate.keep(new Map(done));
    if (isRest(loop.signal)) loop.signal.reason.turnId = id;
    throw loop.signal.aborted ? loop.signal.reason : putOff;
  }
  const message: ToolMessage = { role: "tool", content: results, timestamp: isoTime(loop.clock.now()) };
  const entries: SessionEntry[] = [toEntry(loop, message)];
  try {
    if (loop.afterTools !== undefined && !loop.signal.aborted) {
      const telling = loop.afterTools(calls);
      const told = telling instanceof Promise ? await telling : telling;
      entries.push(...(loop.toolRun.mask === undefined ? told : maskValue(told, loop.toolRun.mask)));
    }
  } finally {
    // What the tools have done is done: it is kept, whatever else fails.
    entries.push(...spentEntries(loop.spending, { operationId: loop.operationId, clock: loop.clock }));
    const written = loop.commitAhead(entries);
    if (written !== undefined) await written;
  }
  return results;
}

/** One answer of the model, stored; retried while nothing of it was stored. */
export async function runModelTurn(
  given: TurnLoop,
  turnId: string,
  watch: CallWatch,
): Promise<AssistantMessage> {
  let overflowed = false;
  let loop = withModel(given);
  for (let attempt = 1; ; attempt += 1) {
    const { said, logged } = loop.prompt.records.of(loop, turnId);
    const { modelName: model, purpose } = loop;
    const { provider } = loop.model;
    loop.emit({ type: "turn_request", model, provider, purpose, attempt, ...said }, turnId);
    const admission =
      loop.limiter === undefined ? undefined : await loop.limiter.admit(loop.state.tokens, loop.signal);
    const started = loop.clock.now();
    const timing = { turnId, started, logged };
    const deltas = createDeltas(loop, turnId);
    try {
      const reply = await callModel({
        model: loop.model,
        options: traceTurn(callOptions(loop), loop, turnId),
        watch,
        onDelta: deltas.push,
      });
      deltas.end();
      const message = await storeReply(loop, reply, timing);
      admission?.settle(message.usage.total_tokens);
      return message;
    } catch (error) {
      if (!(error instanceof InterruptedReply)) throw error;
      deltas.end();
      if (loop.signal.aborted) {
        // An operation that is put off has this turn again, from its beginning.
        if (!isPutOff(loop.signal)) await storePartial(loop, error.partial, timing);
        throw loop.signal.reason;
      }
      const plan = planRetry(error.cause, attempt, loop);
      const makesRoom = plan.failure.overflow && !overflowed && loop.makesRoom("overflow");
      const next = plan.retries || makesRoom ? undefined : await nextModel(loop, plan.failure);
      const event = next === undefined ? plan.event : { ...plan.event, next_model: next };
      loop.emit({ ...event, will_retry: plan.retries || makesRoom || next !== undefined }, turnId);
      if (makesRoom) {
        overflowed = true;
        await loop.makeRoom("overflow");
      } else if (plan.retries) {
        await loop.stored();
        await waitToRetry(plan.delayMs, loop);
      } else if (next !== undefined) {
        loop = withModel(given);
        attempt = 0;
        overflowed = false;
      } else {
        await storePartial(loop, error.partial, timing);
        throw plan.failure.error;
      }
    }
  }
}

/** The loop with the model that is at work by now. */
function withModel(loop: TurnLoop): TurnLoop {
  const other = loop.fallback?.current(loop);
  return other === undefined ? loop : { ...loop, ...other };
}

/** Hands over to the next model. A format that a provider refuses is left out first: see `firstAnswer`. */
async function nextModel(loop: TurnLoop, failure: ModelFailure): Promise<string | undefined> {
  if (loop.settings.responseFormat !== undefined && isRefusal(failure.error)) return undefined;
  return loop.fallback?.next(failure);
}

interface Deltas {
  readonly push: ModelCall["onDelta"];
  end(): void;
}

/** Says what a model says while it says it; a secret is masked although it comes in parts. */
function createDeltas({ emit, toolRun: { mask } }: TurnLoop, turnId: string): Deltas {
  if (mask === undefined) return { push: (type, text) => emit({ type, text }, turnId), end: () => undefined };
  let last: Parameters<Deltas["push"]>[0] = "text_delta";
  const stream = mask.stream();
  const say = (text: string): void => {
    if (text !== "") emit({ type: last, text }, turnId);
  };
  return {
    push(type, text) {
      if (type !== last) say(stream.end());
      last = type;
      say(stream.push(text));
    },
    end: () => say(stream.end()),
  };
}

/** The prompt with a note in the place of files that the model does not read: another one was given them. */
function readablePrompt(prompt: LanguageModelV4Prompt, { state, files }: TurnLoop): LanguageModelV4Prompt {
  if (state.files.every((file) => takesFile(files, file))) return prompt;
  return prompt.map((message) =>
    message.role === "user"
      ? { ...message, content: message.content.map((part) => noted(part, files)) }
      : message,
  );
}

type UserPart = Extract<LanguageModelV4Prompt[number], { role: "user" }>["content"][number];

function noted(part: UserPart, files: TurnLoop["files"]): UserPart {
  if (part.type !== "file" || part.mediaType.startsWith("image/")) return part;
  const { mediaType: media_type, filename = "a file", data } = part;
  if (takesFile(files, { type: "file", media_type, data: data.type === "url" ? "https:" : "" })) return part;
  return { type: "text", text: `[${filename} (${media_type}): this model cannot read it]` };
}

/** The call as part of the turn's span, which is told what the model is asked. */
function traceTurn(
  options: LanguageModelV4CallOptions,
  { tracing, prompt, state, toolRun }: TurnLoop,
  turn_id: string,
): LanguageModelV4CallOptions {
  if (tracing === undefined) return options;
  const content = () => ({ system: prompt.current.text, messages: state.messages });
  tracing.tell({ turn_id }, content, toolRun.mask);
  const trace = tracing.headers({ turn_id });
  return trace === undefined ? options : { ...options, headers: { ...options.headers, ...trace } };
}

function callOptions(loop: TurnLoop): LanguageModelV4CallOptions {
  const options: LanguageModelV4CallOptions = {
    ...loop.settings,
    // The session's own array: copying it would cost more with every turn.
    prompt: readablePrompt(loop.sent ?? promptOf(loop.state, loop.prompt.current.text), loop),
    ...(loop.tools.length === 0 ? undefined : { tools: loop.tools as LanguageModelV4FunctionTool[] }),
  };
  return loop.promptCache?.(options, loop.state.key) ?? options;
}

interface Timing {
  readonly turnId: string;
  readonly started: number;
  readonly logged: TurnSaid["logged"];
}

async function storeReply(loop: TurnLoop, reply: ModelReply, timing: Timing): Promise<AssistantMessage> {
  const now = loop.clock.now();
  const { mask } = loop.toolRun;
  const message: AssistantMessage = {
    role: "assistant",
    content: mask === undefined ? reply.content : maskValue(reply.content, mask),
    timestamp: isoTime(now),
    model: loop.modelName,
    usage: loop.usageOf(reply.usage),
    finish_reason: reply.finishReason,
  };
  loop.spending.turns += 1;
  loop.spending.add(message.usage);
  const entry = toEntry(loop, message);
  const turn = mask === undefined ? timing.logged : maskValue(timing.logged, mask);
  const logged = turn === undefined ? entry : { ...entry, turn };
  const entries = loop.toEntries?.(logged, message) ?? [logged];
  // An answer is paid for. One that asks for calls is asked for again: what became of calls is told by who had begun them.
  const written = callsOf(message).length === 0 ? loop.keeping(entries, loop.commit) : loop.commit(entries);
  if (written !== undefined) await written;
  loop.emit(
    {
      type: "turn",
      model: loop.modelName,
      usage: message.usage,
      finish_reason: message.finish_reason,
      purpose: loop.purpose,
      ...reply.said,
      duration_ms: now - timing.started,
    },
    timing.turnId,
  );
  return message;
}

/** Keeps what the reader of the stream has already seen; its tool calls were never run. */
async function storePartial(loop: TurnLoop, partial: ModelReply, timing: Timing): Promise<void> {
  if (partial.content.length === 0) return;
  const message = await storeReply(loop, partial, timing);
  const calls = callsOf(message);
  if (calls.length === 0) return;
  const content = calls.map((call) =>
    notRun(call, "The call was never run: the answer that asked for it broke off."),
  );
  await loop.commit([toEntry(loop, { role: "tool", content, timestamp: isoTime(loop.clock.now()) })]);
}

export function toEntry(
  loop: Pick<TurnLoop, "operationId">,
  message: Message,
): Extract<SessionEntry, { type: "message" }> {
  return { version: 1, type: "message", message, operation_id: loop.operationId };
}

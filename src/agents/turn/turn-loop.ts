import type {
  LanguageModelV4CallOptions,
  LanguageModelV4FunctionTool,
  LanguageModelV4Prompt,
} from "@ai-sdk/provider";
import { isoTime } from "../../base/clock.ts";
import { createId } from "../../base/id.ts";
import type { EventBody } from "../../protocol/event.ts";
import type { AssistantMessage, ToolCallPart, ToolMessage, ToolResultPart } from "../../protocol/message.ts";
import type { SessionEntry } from "../../protocol/session-entry.ts";
import type { Operation } from "../agent-runtime.ts";
import type { ToolGate } from "../approvals/call-gate.ts";
import { callerKind } from "../approvals/call-kinds.ts";
import { type CallSettings, callSettingsOf, reportedSettings } from "../define/profile-settings.ts";
import {
  createDeltas,
  type DeltaSource,
  type DeltaStream,
  type DeltaType,
  type OperationTracing,
} from "../events.ts";
import { promptOf, wasCompacted } from "../log/session-state.ts";
import { isSuspension, type Suspension, willResume } from "../log/suspension.ts";
import { composedEntry } from "../log/to-prompt.ts";
import { isRefusal } from "../output/typed-output.ts";
import { readablePrompt, takesFile } from "../prompt/input-files.ts";
import type { RecordedPrompt } from "../prompt/turn-records.ts";
import { maskValue } from "../secrets.ts";
import type { Attachment } from "./attachments.ts";
import { spentEntry, toUsage } from "./budget.ts";
import { type AnswerReader, callModel, InterruptedReply, type ModelReply } from "./call-model.ts";
import { CallWatch } from "./call-watch.ts";
import type { TurnHooks } from "./hook-calls.ts";
import { needsRoom, type TurnLoop, toolRunOf } from "./loop-parts.ts";
import { type ModelFailure, planRetry } from "./retry.ts";
import { callsOf, storePartial, storeReply, type Timing, toEntry } from "./store-reply.ts";
import type { StreamedCall } from "./to-tool-call.ts";
import { keyOf, runToolCalls, type ToolTurn } from "./tool-calls.ts";

/**
 * Kit's own loop: calls the model, runs the tools that it requests, and repeats this until it requests none. Returns that answer.
 * However it ends, every tool call in the history has a result, so that the next operation can continue from it.
 */
export async function runTurns(loop: TurnLoop): Promise<AssistantMessage> {
  const watch = watchOf(loop);
  // One `try` for all turns: `using`, which the build would translate, costs more.
  let turnId: string | undefined;
  let toolCalls = 0;
  try {
    for (;;) {
      loop.operation.spending.check();
      const { session } = loop;
      const joining = loop.joins ? session.join() : undefined;
      if (joining !== undefined) await joining;
      if (needsRoom(loop, "threshold")) await session.makeRoom("threshold");
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

/** Watches the model calls of a loop. */
export function watchOf({ operation: { signal }, idleTimeoutMs }: TurnLoop): CallWatch {
  return new CallWatch({ signal, idleTimeoutMs });
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
  const callKey = `${loop.operation.id}:${loop.operation.state.positions.at(-1) ?? 0}`;
  const { turnId: id, interrupted = false, suspension } = how;
  const turn: ToolTurn = { id, callKey, interrupted, suspension, postponed: undefined };
  const toolRun = toolRunOf(loop);
  const outcomes = await runToolCalls(calls, turn, toolRun);
  if (!isComplete(outcomes)) {
    await keepResults(loop.operation.signal, turn, { gate: toolRun.gate, outcomes });
    throw loop.operation.signal.aborted ? loop.operation.signal.reason : turn.postponed;
  }
  const message: ToolMessage = { role: "tool", content: outcomes, timestamp: isoTime(loop.clock.now()) };
  const entries: SessionEntry[] = [toEntry(loop, message)];
  try {
    if (!loop.operation.signal.aborted) {
      const pending = loop.session.afterTools(calls);
      const added = pending instanceof Promise ? await pending : pending;
      if (added.length > 0)
        entries.push(...(loop.operation.mask === undefined ? added : maskValue(added, loop.operation.mask)));
    }
  } finally {
    // Results of tools are kept even if a later step fails.
    const spent = spentEntry(loop.operation, loop.clock);
    if (spent !== undefined) entries.push(spent);
    const written = loop.operation.log.commitAhead(entries);
    if (written !== undefined) await written;
  }
  return outcomes;
}

/** The turn continues when the operation resumes, with the results so far. */
async function keepResults(
  signal: AbortSignal,
  turn: ToolTurn,
  { gate, outcomes }: { readonly gate: ToolGate; readonly outcomes: readonly (ToolResultPart | undefined)[] },
): Promise<void> {
  const done = outcomes.flatMap((result, at) =>
    result === undefined ? [] : [[keyOf(turn, at), result] as const],
  );
  await gate.keepResults(new Map(done));
  if (isSuspension(signal)) signal.reason.turnId = turn.id;
}

function isComplete(
  outcomes: readonly (ToolResultPart | undefined)[],
): outcomes is readonly ToolResultPart[] {
  return !outcomes.includes(undefined);
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
    const answering = new TurnDeltas(loop, turnId);
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
        options: traceTurn(options, loop, turnId),
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
  const { operation, purpose, resolved } = loop;
  const { name: model } = resolved;
  const { provider } = resolved.model;
  const stored = { head: loop.session.keepHead(loop, settings), log_position: operation.state.position };
  const facts = { settings: reportedSettings(settings), compacted: wasCompacted(operation.state) };
  operation.emit(
    { type: "turn_request", model, provider, purpose, attempt, ...reported, ...stored, ...facts },
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
  const compacts = plan.failure.overflow && !overflowed && needsRoom(loop, "overflow");
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

/** Emits the answer of a turn while it arrives. A class: functions would live as long as the answer takes. */
class TurnDeltas implements DeltaSource, AnswerReader {
  readonly #loop: TurnLoop;
  readonly #turnId: string;
  readonly #deltas: DeltaStream;
  readonly partial: DeltaSource["partial"];

  constructor(loop: TurnLoop, turnId: string) {
    this.#loop = loop;
    this.#turnId = turnId;
    this.partial = loop.partialResult?.();
    this.#deltas = createDeltas(this);
  }

  get mask(): DeltaSource["mask"] {
    return this.#loop.operation.mask;
  }

  emit(body: EventBody): void {
    const { hidesDeltas, operation } = this.#loop;
    if (hidesDeltas !== true && !operation.events.skip()) operation.emit(body, this.#turnId);
  }

  kindOf(tool: string): ReturnType<typeof callerKind> {
    return callerKind(toolRunOf(this.#loop).tools.get(tool));
  }

  onDelta(type: DeltaType, text: string, call?: StreamedCall): void {
    this.#deltas.push(type, text, call);
  }

  onAttachment(attachment: Attachment): void {
    this.emit(attachment);
  }

  end(): void {
    this.#deltas.end();
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
  loop: TurnLoop,
  turn_id: string,
): LanguageModelV4CallOptions {
  const { tracing } = loop.operation;
  return tracing === undefined ? options : traceWith(tracing, { options, loop }, turn_id);
}

function traceWith(
  tracing: OperationTracing,
  call: { readonly options: LanguageModelV4CallOptions; readonly loop: TurnLoop },
  turn_id: string,
): LanguageModelV4CallOptions {
  const { options, loop } = call;
  const { operation, prompt, resolved, tools } = loop;
  const { state, mask, live } = operation;
  const { server } = resolved;
  const content = () => ({ system: prompt.current.text, messages: state.messages });
  const request = { server, tools, description: live.profile.description ?? "" };
  tracing.notify({ turn_id }, { content, request }, mask);
  const trace = tracing.headers({ turn_id });
  return trace === undefined ? options : { ...options, headers: { ...options.headers, ...trace } };
}

/** The note about the prompt of a turn, if a backend or a hook composed it. */
function composedBy(
  loop: TurnLoop,
  id: string,
  [loopPrompt, sent]: readonly [LanguageModelV4Prompt, LanguageModelV4Prompt],
): SessionEntry | undefined {
  const { state, mask, id: operationId } = loop.operation;
  const isOwn =
    loop.sent === undefined &&
    loopPrompt === sent &&
    state.files.every((file) => takesFile(loop.resolved.files, file));
  if (isOwn) return undefined;
  const turn = { id, operationId, now: loop.clock.now(), mask };
  return composedEntry(turn, promptOf(state, loop.prompt.current.text), sent);
}

function callOptions(loop: TurnLoop, settings: CallSettings): LanguageModelV4CallOptions {
  const { files } = loop.operation.state;
  // The session's own array: a copy would cost more with every turn.
  const prompt = loop.sent ?? promptOf(loop.operation.state, loop.prompt.current.text);
  const options: LanguageModelV4CallOptions = {
    ...settings,
    prompt: files.length === 0 ? prompt : readablePrompt(prompt, files, loop.resolved.files),
  };
  if (loop.tools.length > 0) options.tools = loop.tools as LanguageModelV4FunctionTool[];
  return loop.resolved.promptCache?.(options, loop.operation.state.key) ?? options;
}

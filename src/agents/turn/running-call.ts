import { toJsonText } from "../../base/json-text.ts";
import { KitError } from "../../base/kit-error.ts";
import { thrownText } from "../../base/thrown.ts";
import { receiptKinds } from "../../protocol/enums.ts";
import type { EventBody } from "../../protocol/event.ts";
import type { ImagePart, TextPart, ToolCallPart, ToolResultPart } from "../../protocol/message.ts";
import type { ReceiptItem } from "../../protocol/receipt.ts";
import type { RunHandle, StartRun, StartRunOptions } from "../../protocol/run-calls.ts";
import type { TraceContext } from "../../protocol/tracing.ts";
import type { Answer, Question } from "../define/question.ts";
import type { ToolContext, ToolLookup, ToolOutput, ToolPlace, ToolReturn } from "../define/tool.ts";
import type { OperationTracing } from "../events.ts";
import { outcomeUnknownText } from "../log/operation-log.ts";
import { checkedImagePart } from "../prompt/input-files.ts";
import { maskValue, type SecretMask } from "../secrets.ts";
import { cutParts, defaultMaxResultChars } from "./cut-parts.ts";

/** The session and application around a tool call. */
export type CallContext = Omit<ToolPlace, "progress">;

/** The parts of an operation that its tool calls use. */
export interface CallSurroundings {
  readonly operationId: string;
  readonly emit: (body: EventBody, turnId: string) => void;
  readonly mask?: SecretMask | undefined;
  readonly tracing?: OperationTracing | undefined;
  /** The session and application of the call; undefined for an agent without an application. */
  readonly place?: CallContext | undefined;
}

/** The parts of a call that its context uses. */
export interface CallParts {
  readonly turnId: string;
  readonly options: CallSurroundings;
  /** Asks a person; undefined for a call without an application. */
  readonly ask?: ((question: Question, context: RunningCall) => Promise<Answer>) | undefined;
}

/** The context of a running call. The signal is created on first use: most tools end before they need one. */
export class RunningCall implements ToolContext {
  readonly #call: ToolCallPart;
  readonly #options: CallSurroundings;
  readonly #askPerson: CallParts["ask"];
  #keysMade = 0;
  readonly toolCallId: string;
  readonly turnId: string;
  readonly operationId: string;
  readonly idempotencyKey: string;
  approved = false;
  #controller: AbortController | undefined;
  #stopped: { readonly reason: unknown } | undefined;

  constructor(call: ToolCallPart, key: string, of: CallParts) {
    this.#call = call;
    this.#options = of.options;
    this.toolCallId = call.tool_call_id;
    this.turnId = of.turnId;
    this.operationId = of.options.operationId;
    this.idempotencyKey = key;
    this.#askPerson = of.ask;
  }

  // Getters, so that a tool can take them out of its context: `({ text }, { progress }) => …`. V8 creates a
  // function that is assigned to a field where it is written in the old space: it would keep the call until a full collection.
  get dispatch(): ToolPlace["dispatch"] {
    return (agent, input) =>
      this.#place().dispatch(agent, { ...input, idempotencyKey: input.idempotencyKey ?? this.#nextKey() });
  }

  get startRun(): StartRun {
    return (async (
      workflow: string,
      payload: Record<string, unknown>,
      { idempotencyKey = this.#nextKey() }: StartRunOptions = {},
    ) => this.#whileCalled(await this.#place().startRun(workflow, payload, { idempotencyKey }))) as StartRun;
  }

  get getRun(): ToolPlace["getRun"] {
    return (runId) => this.#whileCalled(this.#place().getRun(runId));
  }

  get progress(): ToolPlace["progress"] {
    return (value) => this.#progress(value);
  }

  get ask(): ToolContext["ask"] {
    return <Value>(question: Question<Value>) => {
      const answer = (this.#asked ?? Promise.resolve()).then(() => this.#ask(question));
      this.#asked = answer.catch(() => undefined);
      // The outcome waits from now on, also for a question that waits for another one.
      this.#setAsking(1);
      const ended = answer.finally(() => this.#setAsking(-1)) as Promise<Answer<Value>>;
      // A tool may leave its question alone.
      ended.catch(() => undefined);
      return ended;
    };
  }

  /** The work of the tool, which pauses while the call waits for a person. */
  work: { asking(isAsking: boolean): void } | undefined;
  #asking = 0;
  #asked: Promise<unknown> | undefined;

  get isAsking(): boolean {
    return this.#asking > 0;
  }

  #setAsking(by: 1 | -1): void {
    const was = this.isAsking;
    this.#asking += by;
    if (was !== this.isAsking) this.work?.asking(this.isAsking);
  }

  async #ask(question: Question): Promise<Answer> {
    const ask = this.#askPerson;
    if (this.#stopped !== undefined) throw this.#stopped.reason;
    if (ask === undefined)
      throw new KitError({ code: "unavailable", message: "This call has no person whom it could ask." });
    return await ask(question, this);
  }

  get agent(): string {
    return this.#place().agent;
  }

  get instance(): string {
    return this.#place().instance;
  }

  get session(): string {
    return this.#place().session;
  }

  get principal(): string | undefined {
    return this.#place().principal;
  }

  get rulesLeftOut(): ReadonlySet<string> | undefined {
    return this.#place().rulesLeftOut;
  }

  get runId(): string | undefined {
    return this.#place().runId;
  }

  get env(): ToolPlace["env"] {
    return this.#place().env;
  }

  #place(): CallContext {
    const { place } = this.#options;
    if (place !== undefined) return place;
    throw new KitError({ code: "unavailable", message: "This call has no application around it." });
  }

  /** A stopped call no longer waits for the run. */
  #whileCalled(run: RunHandle): RunHandle {
    return {
      ...run,
      result: ({ signal } = {}) =>
        run.result({ signal: signal === undefined ? this.signal : AbortSignal.any([this.signal, signal]) }),
    };
  }

  #nextKey(): string {
    this.#keysMade += 1;
    return `${this.idempotencyKey}:${this.#keysMade}`;
  }

  #progress(value: unknown): void {
    const { emit, mask } = this.#options;
    // A call that has ended emits no progress: readers already have its `tool_end`.
    if (this.#stopped !== undefined) return;
    const progress = progressOf(value, mask);
    const { tool_call_id, tool } = this.#call;
    emit({ type: "tool_progress", tool_call_id, tool, progress }, this.turnId);
  }

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.#stopped !== undefined) this.#controller.abort(this.#stopped.reason);
    }
    return this.#controller.signal;
  }

  get trace(): TraceContext | undefined {
    return this.#options.tracing?.headers({ turn_id: this.turnId, tool_call_id: this.toolCallId });
  }

  get isStopped(): boolean {
    return this.#stopped !== undefined;
  }

  /** Withdraws the questions of a call that has ended without their answers. */
  leaveQuestions(): void {
    if (this.isAsking && this.#stopped === undefined) this.stop(new Error("The call has ended."));
  }

  stop(reason: unknown): void {
    this.#stopped = { reason };
    this.#controller?.abort(reason);
  }
}

const maxProgressChars = 10_000;

/** The progress of a tool as JSON, cut to the size limit of events. */
function progressOf(value: unknown, mask: SecretMask | undefined): unknown {
  // Masked before it is cut: half a secret is not recognized.
  const clean = <Value>(given: Value): Value => (mask === undefined ? given : maskValue(given, mask));
  try {
    const text = JSON.stringify(clean(JSON.parse(JSON.stringify(value) ?? "null")));
    return text.length <= maxProgressChars
      ? JSON.parse(text)
      : `${text.slice(0, maxProgressChars).toWellFormed()}…`;
  } catch {
    return clean(String(value)).slice(0, maxProgressChars).toWellFormed();
  }
}

export function isGenerator(value: unknown): value is AsyncGenerator<unknown, ToolReturn> {
  if (typeof value !== "object" || value === null || !("next" in value)) return false;
  return Symbol.asyncIterator in value || Symbol.iterator in value;
}

/** Reads a generator to its end, or closes it when its call is stopped. */
export async function readProgress(
  values: AsyncGenerator<unknown, ToolReturn>,
  context: RunningCall,
): Promise<ToolReturn> {
  let last: unknown;
  for (;;) {
    const { done, value } = await values.next();
    if (done === true) return value === undefined ? (last as ToolReturn) : value;
    last = value;
    context.progress(value);
    if (!context.isStopped) continue;
    await values.return(undefined);
    return undefined;
  }
}

/** The result of a call for the history: masked, and cut to the tool's limit. */
export function toResult(
  call: ToolCallPart,
  outcome: Outcome,
  options: { readonly tools: ToolLookup; readonly mask?: SecretMask | undefined },
): ToolResultPart {
  const limit = options.tools.get(call.tool)?.maxResultChars ?? defaultMaxResultChars;
  const parts: readonly (TextPart | ImagePart)[] =
    typeof outcome.content === "string" ? [{ type: "text", text: outcome.content }] : outcome.content;
  // Mask before cutting: a mask would not find half of a secret.
  const masked = options.mask === undefined ? parts : maskParts(parts, options.mask);
  const content = cutParts(masked, limit);
  const receiptItems = receiptItemsOf(content, outcome.shows ?? []);
  const shows = options.mask === undefined ? receiptItems : maskValue(receiptItems, options.mask);
  const result: ToolResultPart = {
    type: "tool_result",
    tool_call_id: call.tool_call_id,
    tool: call.tool,
    content,
    is_error: outcome.isError === true,
  };
  if (outcome.outcome === undefined && shows.length === 0) return result;
  return {
    ...result,
    ...(outcome.outcome === undefined ? undefined : { outcome: outcome.outcome }),
    ...(shows.length === 0 ? undefined : { shows }),
  };
}

/** The texts of a result, for its event. */
export function resultText(result: ToolResultPart): string {
  let text = "";
  for (const part of result.content) text += part.type === "text" ? part.text : `[image ${part.media_type}]`;
  return text;
}

/** The receipt items of a result, without those that were cut off. */
function receiptItemsOf(
  content: readonly (TextPart | ImagePart)[],
  shows: readonly ReceiptItem[],
): readonly ReceiptItem[] {
  // A single item is the subject of the result.
  if (shows.length <= 1) return shows;
  const text = content.map((part) => (part.type === "text" ? part.text : "")).join("\n");
  return shows.filter(({ id, file = id }) => text.includes(id) || text.includes(file));
}

function maskParts(
  parts: readonly (TextPart | ImagePart)[],
  mask: (text: string) => string,
): readonly (TextPart | ImagePart)[] {
  return parts.map((part) => (part.type === "text" ? { ...part, text: mask(part.text) } : part));
}

/** The outcome of a call, before it is cut and masked for the model. */
export type Outcome = Exclude<ToolOutput, string> & {
  /** The error that the tool threw. */
  readonly thrown?: unknown;
  /** Set if kit aborted the call: the content is not from the tool. */
  readonly aborted?: true;
};

export function failed(text: string): Outcome {
  return { content: text, isError: true };
}

/** The outcome of a call that a process was about to run, or was running, when it ended. */
export const unknownOutcome: Outcome & { readonly content: string } = {
  content: outcomeUnknownText,
  isError: true,
  outcome: "unknown",
};

/**
 * Converts the output of a tool to parts that later prompts can contain. A tool in plain JavaScript may return other
 * values, which become JSON. Throws `invalid_request` for an invalid image.
 */
export function toOutcome(output: ToolReturn): Outcome {
  if (typeof output === "string") return { content: output };
  const content: unknown =
    typeof output === "object" && output !== null ? Reflect.get(output, "content") : undefined;
  if (typeof content === "string") return withReceipts(output as Outcome);
  if (Array.isArray(content) && content.every(isPart)) {
    return withReceipts({
      ...(output as Outcome),
      content: content.map((part) => (part.type === "image" ? checkedImagePart(part) : part)),
    });
  }
  return { content: jsonResult(output) };
}

function jsonResult(output: ToolReturn): string {
  try {
    return toJsonText(output);
  } catch (error) {
    const why = thrownText(error);
    // biome-ignore lint/style/useErrorCause: the model reads causes, and this one is in the message.
    throw new TypeError(`The tool returned a value that is not JSON: ${why}.`);
  }
}

/** Receipt items of one result; further ones are dropped. */
const maxItems = 200;

/** Keeps the valid receipt items: a tool in plain JavaScript may return anything. */
function withReceipts(outcome: Outcome): Outcome {
  const { shows, ...rest } = outcome;
  if (shows === undefined) return outcome;
  const listed: readonly unknown[] = Array.isArray(shows) ? shows : [];
  const items = listed.flatMap((item) => toItem(item) ?? []).slice(0, maxItems);
  return items.length === 0 ? rest : { ...rest, shows: items };
}

function toItem(value: unknown): ReceiptItem | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  const { kind, id, file, line, why, tokens } = value as Readonly<Record<keyof ReceiptItem, unknown>>;
  const receiptKind = receiptKinds.find((each) => each === kind);
  if (receiptKind === undefined || typeof id !== "string" || typeof why !== "string") return undefined;
  return {
    kind: receiptKind,
    id,
    ...(typeof file === "string" ? { file } : {}),
    ...(typeof line === "number" && Number.isSafeInteger(line) && line > 0 ? { line } : {}),
    why,
    tokens: typeof tokens === "number" && tokens >= 0 ? Math.min(Math.ceil(tokens), 1e9) : 0,
  };
}

export function isPart(part: unknown): part is TextPart | ImagePart {
  if (typeof part !== "object" || part === null || !("type" in part)) return false;
  return part.type === "image" || (part.type === "text" && "text" in part && typeof part.text === "string");
}

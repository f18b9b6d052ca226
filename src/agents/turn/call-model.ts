import type {
  LanguageModelV4,
  LanguageModelV4CallOptions,
  LanguageModelV4StreamPart,
  LanguageModelV4Usage,
} from "@ai-sdk/provider";
import { createId } from "../../base/id.ts";
import { KitError } from "../../base/kit-error.ts";
import type { EventBody } from "../../protocol/event.ts";
import type {
  FinishReason,
  ProviderData,
  ReasoningPart,
  TextPart,
  ToolCallPart,
} from "../../protocol/message.ts";
import type { CallWatch } from "./call-watch.ts";

/** What one call of a model gave. */
export interface ModelReply {
  readonly content: readonly (TextPart | ReasoningPart | ToolCallPart)[];
  readonly finishReason: FinishReason;
  readonly usage: LanguageModelV4Usage | undefined;
  /** What the provider says of the answer, and how long its first piece took. */
  readonly said: Pick<
    Extract<EventBody, { type: "turn" }>,
    "response_id" | "response_model" | "first_chunk_ms"
  >;
}

export interface ModelCall {
  readonly model: LanguageModelV4;
  /** Made for this call: it is given the signal that stops it. */
  readonly options: LanguageModelV4CallOptions;
  readonly watch: CallWatch;
  readonly onDelta: (type: "text_delta" | "reasoning_delta", text: string) => void;
}

/** Thrown when a call ends before its answer is whole; `partial` is what had arrived. */
export class InterruptedReply extends Error {
  override readonly name = "InterruptedReply";
  readonly partial: ModelReply;

  constructor(partial: ModelReply, cause: unknown) {
    super("The model's answer was interrupted.", { cause });
    this.partial = partial;
  }
}

/** A text that grows; `id` is the provider's, of no use once it has ended. */
interface OpenPart {
  readonly id: string;
  readonly type: "text" | "reasoning";
  /** As they came: a text that is put together piece by piece is as many objects, alive to the end of the answer. */
  readonly deltas: string[];
  provider: ProviderData | undefined;
  ended: boolean;
}

/** A million tokens and more: no model says that much in one answer, but a broken provider may never stop. */
const maxReplyChars = 4_000_000;

interface Draft {
  readonly parts: (OpenPart | ToolCallPart)[];
  usage: LanguageModelV4Usage | undefined;
  finishReason: FinishReason | undefined;
  /** Characters of texts, and of arguments that are on their way. */
  size: number;
  readonly startedMs: number;
  said: ModelReply["said"];
}

/**
 * Calls a model once and reads its stream to the end.
 *
 * Throws `InterruptedReply` when the call fails, the stream breaks or falls silent (`cause` is
 * `model_timeout`), or the signal fires. What is not read to its end is cancelled. An answer without end
 * is given up with `budget_exceeded`, and nothing of it is kept.
 */
export async function callModel(call: ModelCall): Promise<ModelReply> {
  const draft: Draft = {
    parts: [],
    usage: undefined,
    finishReason: undefined,
    size: 0,
    startedMs: performance.now(),
    said: {},
  };
  const { watch } = call;
  try {
    call.options.abortSignal = watch.begin();
    const reader = await watch.first(call.model.doStream(call.options));
    for (;;) {
      const { done, value } = await reader.read();
      if (watch.stopped !== undefined) throw watch.stopped.reason;
      if (done) break;
      watch.touch();
      readPart(draft, value, call.onDelta);
    }
    if (draft.finishReason === undefined) throw cutOff();
    return toReply(draft, draft.finishReason);
  } catch (error) {
    const cause = watch.stopped === undefined ? error : watch.stopped.reason;
    // Of an answer that is given up, nothing more is to arrive.
    watch.stop(cause);
    // biome-ignore lint/style/useErrorCause: the cause is its second argument.
    throw new InterruptedReply(toReply(draft, watch.aborted ? "aborted" : "error"), cause);
  } finally {
    watch.end();
  }
}

function readPart(draft: Draft, part: LanguageModelV4StreamPart, onDelta: ModelCall["onDelta"]): void {
  switch (part.type) {
    case "text-delta":
    case "reasoning-delta": {
      const type = part.type === "text-delta" ? "text" : "reasoning";
      const open = openOf(draft, part.id) ?? openPart(draft, part.id, type);
      grow(draft, part.delta);
      if (part.providerMetadata !== undefined) open.provider = part.providerMetadata as ProviderData;
      if (part.delta === "") return;
      open.deltas.push(part.delta);
      onDelta(type === "text" ? "text_delta" : "reasoning_delta", part.delta);
      return;
    }
    case "text-start":
    case "reasoning-start": {
      const open = openPart(draft, part.id, part.type === "text-start" ? "text" : "reasoning");
      open.provider = part.providerMetadata as ProviderData | undefined;
      return;
    }
    case "text-end":
    case "reasoning-end": {
      const open = openOf(draft, part.id);
      if (open !== undefined && part.providerMetadata !== undefined)
        open.provider = part.providerMetadata as ProviderData;
      if (open !== undefined) open.ended = true;
      return;
    }
    case "tool-input-delta":
      grow(draft, part.delta);
      return;
    case "tool-call":
      noteFirst(draft);
      // What a provider runs on its own side is finished when the answer is: there is nothing to run.
      if (part.providerExecuted !== true) draft.parts.push(toToolCall(part, callId(draft, part.toolCallId)));
      return;
    case "response-metadata":
      draft.said = {
        ...draft.said,
        ...(part.id === undefined ? {} : { response_id: shortOf(part.id) }),
        ...(part.modelId === undefined ? {} : { response_model: shortOf(part.modelId) }),
      };
      return;
    case "finish":
      // The AI SDK closes a stream that broke off with a reason of its own making: no provider said it.
      if (part.finishReason.unified === "interrupted") return;
      if (part.finishReason.raw === undefined && part.finishReason.unified === "other") return;
      draft.usage = part.usage;
      draft.finishReason = toFinishReason(part.finishReason.unified);
      return;
    case "error":
      throw part.error;
    default:
      // Sources and files carry nothing we keep, nor do the ends of a tool call that comes whole.
      return;
  }
}

function grow(draft: Draft, delta: string): void {
  if (draft.size === 0) noteFirst(draft);
  draft.size += delta.length;
  if (draft.size <= maxReplyChars) return;
  draft.parts.length = 0;
  throw new KitError({
    code: "budget_exceeded",
    message: `The model's answer has more than ${maxReplyChars} characters and was given up.`,
  });
}

/** An event stays small, whatever a provider calls its answer. */
function shortOf(name: string): string {
  return name.slice(0, 256).toWellFormed();
}

function noteFirst(draft: Draft): void {
  if (draft.said.first_chunk_ms !== undefined) return;
  draft.said = { ...draft.said, first_chunk_ms: Math.round(performance.now() - draft.startedMs) };
}

/** As a rule, the one that was begun last. */
function openOf({ parts }: Draft, id: string): OpenPart | undefined {
  for (let index = parts.length - 1; index >= 0; index -= 1) {
    const part = parts[index];
    if (part?.type !== "tool_call" && part?.id === id && !part.ended) return part;
  }
  return undefined;
}

function openPart(draft: Draft, id: string, type: "text" | "reasoning"): OpenPart {
  const open: OpenPart = { id, type, deltas: [], provider: undefined, ended: false };
  draft.parts.push(open);
  return open;
}

/** What every provider takes for the id of a call: the history may go on with another one. */
const idPattern = /^[a-zA-Z0-9_-]{1,64}$/;

/** The id of a call, or one of kit's own where some provider would refuse it: an empty one, the same one twice. */
function callId({ parts }: Draft, given: string): string {
  const isTaken = parts.some((part) => part.type === "tool_call" && part.tool_call_id === given);
  return isTaken || !idPattern.test(given) ? createId("call") : given;
}

function toToolCall(
  part: Extract<LanguageModelV4StreamPart, { type: "tool-call" }>,
  tool_call_id: string,
): ToolCallPart {
  const call = {
    type: "tool_call",
    tool_call_id,
    tool: part.toolName,
    ...(part.providerMetadata === undefined ? {} : { provider: part.providerMetadata as ProviderData }),
  } as const;
  try {
    return { ...call, args: part.input.trim() === "" ? {} : parseArguments(part.input) };
  } catch {
    return { ...call, args: part.input.toWellFormed(), invalid: true };
  }
}

const halfCharacter = /\\u[dD][89a-fA-F]/;

/** As of any text: half of a character is what providers refuse to read again. */
function parseArguments(input: string): unknown {
  if (input.isWellFormed() && !halfCharacter.test(input)) return JSON.parse(input);
  return JSON.parse(input, (_key, value: unknown) =>
    typeof value === "string" ? value.toWellFormed() : value,
  );
}

function toReply(draft: Draft, finishReason: FinishReason): ModelReply {
  const parts = draft.parts.every(hasContent) ? draft.parts : draft.parts.filter(hasContent);
  // What stays in the history is made by `map`: it has no room for elements that never come.
  const content = parts.map(toContent);
  return { content, finishReason, usage: draft.usage, said: draft.said };
}

function hasContent(part: OpenPart | ToolCallPart): boolean {
  return part.type === "tool_call" || part.deltas.length > 0 || part.provider !== undefined;
}

function toContent(part: OpenPart | ToolCallPart): TextPart | ReasoningPart | ToolCallPart {
  if (part.type === "tool_call") return part;
  const { type, provider } = part;
  // An answer may break off between the halves of a character: providers refuse to read one of them.
  const text = part.deltas.join("").toWellFormed();
  return provider === undefined ? { type, text } : { type, text, provider };
}

function toFinishReason(reason: string): FinishReason {
  switch (reason) {
    case "stop":
    case "length":
    case "content-filter":
    case "tool-calls":
    case "error":
      return reason;
    default:
      return "other";
  }
}

function cutOff(): KitError {
  return new KitError({ code: "model_error", message: "The model's answer broke off before its end." });
}

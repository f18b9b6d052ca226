import type {
  LanguageModelV4,
  LanguageModelV4CallOptions,
  LanguageModelV4StreamPart,
  LanguageModelV4Usage,
} from "@ai-sdk/provider";
import { createId } from "../../base/id.ts";
import { KitError } from "../../base/kit-error.ts";
import { mapPacked } from "../../base/map-packed.ts";
import type { EventBody } from "../../protocol/event.ts";
import type {
  FinishReason,
  ProviderData,
  ReasoningPart,
  TextPart,
  ToolCallPart,
} from "../../protocol/message.ts";
import { type Attachment, toAttachment } from "./attachments.ts";
import type { CallWatch, Reader } from "./call-watch.ts";
import { type StreamedCall, toToolCall } from "./to-tool-call.ts";

type Answer = Awaited<ReturnType<LanguageModelV4["doStream"]>>;

/** A model's reply to one call. */
export interface ModelReply {
  readonly content: readonly (TextPart | ReasoningPart | ToolCallPart)[];
  readonly finishReason: FinishReason;
  readonly usage: LanguageModelV4Usage | undefined;
  /** Metadata of the provider, and the milliseconds until the first chunk. */
  readonly metadata: Pick<
    Extract<EventBody, { type: "turn" }>,
    "response_id" | "response_model" | "first_chunk_ms"
  >;
}

export interface ModelCall {
  readonly model: LanguageModelV4;
  /** Options for this call only: the call sets their abort signal. */
  readonly options: LanguageModelV4CallOptions;
  readonly watch: CallWatch;
  readonly reader: AnswerReader;
}

/** Gets an answer while it arrives. */
export interface AnswerReader {
  /** `call` is the call whose arguments are written, for `tool_args_delta`. */
  onDelta(
    type: "text_delta" | "reasoning_delta" | "tool_args_delta",
    text: string,
    call?: StreamedCall,
  ): void;
  /** Called for each source and each file of the answer. */
  onAttachment?(attachment: Attachment): void;
}

/** Thrown when a call ends before its answer is complete; `partial` is the part that had arrived. */
export class InterruptedReply extends Error {
  override readonly name = "InterruptedReply";
  readonly partial: ModelReply;

  constructor(partial: ModelReply, cause: unknown) {
    super("The model's answer was interrupted.", { cause });
    this.partial = partial;
  }
}

/** A growing text; `id` is the provider's and meaningless after its end. */
interface OpenPart {
  readonly id: string;
  readonly type: "text" | "reasoning";
  /** The deltas as received: joining them once at the end is cheaper than growing a string. */
  readonly deltas: string[];
  provider: ProviderData | undefined;
  ended: boolean;
}

/** A call whose arguments arrive; `id` is the provider's. Its `ToolCallPart` takes its place. */
interface OpenCall {
  readonly type: "open_call";
  readonly id: string;
  readonly call: StreamedCall;
}

/** About a million tokens: guards against a provider that never stops. */
const maxReplyChars = 4_000_000;

interface Draft {
  readonly parts: (OpenPart | OpenCall | ToolCallPart)[];
  usage: LanguageModelV4Usage | undefined;
  finishReason: FinishReason | undefined;
  /** Characters of texts and streamed arguments. */
  size: number;
  readonly startedMs: number;
  readonly metadata: { -readonly [Field in keyof ModelReply["metadata"]]: ModelReply["metadata"][Field] };
}

/**
 * Calls a model once and reads its stream to the end.
 *
 * Throws `InterruptedReply` when the call fails, the stream breaks or falls silent (`cause` is
 * `model_timeout`), or the signal fires. The rest of an unread stream is cancelled. An endless answer fails
 * with `budget_exceeded`, and nothing of it is kept.
 */
export function callModel(call: ModelCall): Promise<ModelReply> {
  const { model, options, watch } = call;
  const draft: Draft = {
    parts: [],
    usage: undefined,
    finishReason: undefined,
    size: 0,
    startedMs: performance.now(),
    metadata: {},
  };
  // Callbacks, because an `await` for every part would cost more than reading it.
  return new Promise((resolve, reject) => {
    let reader: Reader | undefined;
    let hasFailed = false;
    const fail = (error: unknown): void => {
      if (hasFailed) return;
      hasFailed = true;
      const cause = watch.stopped === undefined ? error : watch.stopped.reason;
      // Cancel the rest of an abandoned answer.
      watch.stop(cause);
      watch.end();
      reject(new InterruptedReply(toReply(draft, watch.aborted ? "aborted" : "error"), cause));
    };
    const take = ({ done, value }: Awaited<ReturnType<Reader["read"]>>): void => {
      try {
        if (watch.stopped !== undefined) throw watch.stopped.reason;
        if (!done) {
          watch.touch();
          readPart(draft, value, call);
          reader?.read().then(take, fail);
          return;
        }
        if (draft.finishReason === undefined) throw brokenOffError();
        const reply = toReply(draft, draft.finishReason);
        watch.end();
        resolve(reply);
      } catch (error) {
        fail(error);
      }
    };
    try {
      const signal = watch.begin(fail);
      options.abortSignal = signal;
      const start = ({ stream }: Answer): void => {
        try {
          // An answer that starts after the call was stopped is cancelled.
          if (signal.aborted) stream.cancel(signal.reason).catch(() => undefined);
          else {
            reader = stream.getReader();
            watch.reads(reader);
            reader.read().then(take, fail);
          }
        } catch (error) {
          fail(error);
        }
      };
      model.doStream(options).then(start, fail);
      if (watch.stopped !== undefined) fail(watch.stopped.reason);
    } catch (error) {
      fail(error);
    }
  });
}

function readPart(draft: Draft, part: LanguageModelV4StreamPart, call: ModelCall): void {
  switch (part.type) {
    case "text-delta":
    case "reasoning-delta": {
      const type = part.type === "text-delta" ? "text" : "reasoning";
      const open = openOf(draft, part.id) ?? openPart(draft, part.id, type);
      grow(draft, part.delta);
      if (part.providerMetadata !== undefined) open.provider = part.providerMetadata as ProviderData;
      if (part.delta === "") return;
      open.deltas.push(part.delta);
      call.reader.onDelta(type === "text" ? "text_delta" : "reasoning_delta", part.delta);
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
    case "tool-input-start": {
      // The provider runs its own tools.
      if (part.providerExecuted === true || part.inputEncoding === "text") return;
      const streamed = { tool_call_id: callId(draft, part.id), tool: part.toolName };
      draft.parts.push({ type: "open_call", id: part.id, call: streamed });
      return;
    }
    case "tool-input-delta": {
      grow(draft, part.delta);
      const open = draft.parts[placeOfCall(draft, part.id)];
      if (open?.type === "open_call" && part.delta !== "")
        call.reader.onDelta("tool_args_delta", part.delta, open.call);
      return;
    }
    case "tool-call": {
      noteFirst(draft);
      // The provider has already run its own tools.
      if (part.providerExecuted === true) return;
      const at = placeOfCall(draft, part.toolCallId);
      const open = draft.parts[at];
      if (open?.type === "open_call") draft.parts[at] = toToolCall(part, open.call.tool_call_id);
      else draft.parts.push(toToolCall(part, callId(draft, part.toolCallId)));
      return;
    }
    case "response-metadata":
      if (part.id !== undefined) draft.metadata.response_id = shortOf(part.id);
      if (part.modelId !== undefined) draft.metadata.response_model = shortOf(part.modelId);
      return;
    case "finish":
      // The AI SDK closes a broken stream with its own finish reason instead of the provider's.
      if (part.finishReason.unified === "interrupted") return;
      if (part.finishReason.raw === undefined && part.finishReason.unified === "other") return;
      draft.usage = part.usage;
      draft.finishReason = toFinishReason(part.finishReason.unified);
      return;
    case "error":
      throw part.error;
    case "source":
    case "file": {
      const attachment = toAttachment(part);
      if (attachment === undefined) return;
      grow(draft, attachment.type === "file" ? attachment.data : (attachment.url ?? attachment.source_id));
      call.reader.onAttachment?.(attachment);
      return;
    }
    default:
      // Only the provider understands the others.
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

/** Limits a provider's id, so that the event stays small. */
function shortOf(name: string): string {
  return name.slice(0, 256).toWellFormed();
}

function noteFirst(draft: Draft): void {
  if (draft.metadata.first_chunk_ms !== undefined) return;
  draft.metadata.first_chunk_ms = Math.round(performance.now() - draft.startedMs);
}

/** Finds the newest open part with an id. */
function openOf({ parts }: Draft, id: string): OpenPart | undefined {
  for (let index = parts.length - 1; index >= 0; index -= 1) {
    const part = parts[index];
    if ((part?.type === "text" || part?.type === "reasoning") && part.id === id && !part.ended) return part;
  }
  return undefined;
}

function openPart(draft: Draft, id: string, type: "text" | "reasoning"): OpenPart {
  const open: OpenPart = { id, type, deltas: [], provider: undefined, ended: false };
  draft.parts.push(open);
  return open;
}

/** The place of a call whose arguments arrive; -1 if there is none. */
function placeOfCall({ parts }: Draft, id: string): number {
  for (let at = parts.length - 1; at >= 0; at -= 1) {
    const part = parts[at];
    if (part?.type === "open_call" && part.id === id) return at;
  }
  return -1;
}

function idOf(part: Draft["parts"][number]): string | undefined {
  if (part.type === "open_call") return part.call.tool_call_id;
  return part.type === "tool_call" ? part.tool_call_id : undefined;
}

/** Call ids that every provider accepts: the history may continue with another provider. */
const idPattern = /^[a-zA-Z0-9_-]{1,64}$/;

/** The provider's call id, or a new one if it is empty, repeated or refused by some provider. */
function callId({ parts }: Draft, providerId: string): string {
  const isTaken = parts.some((part) => idOf(part) === providerId);
  return isTaken || !idPattern.test(providerId) ? createId("call") : providerId;
}

function toReply(draft: Draft, finishReason: FinishReason): ModelReply {
  const parts = draft.parts.filter(hasContent);
  // An array of the exact length, which matters for arrays that stay in the history.
  const content = mapPacked(parts, toContent);
  return { content, finishReason, usage: draft.usage, metadata: draft.metadata };
}

function hasContent(part: Draft["parts"][number]): part is OpenPart | ToolCallPart {
  if (part.type === "open_call") return false;
  return part.type === "tool_call" || part.deltas.length > 0 || part.provider !== undefined;
}

function toContent(part: OpenPart | ToolCallPart): TextPart | ReasoningPart | ToolCallPart {
  if (part.type === "tool_call") return part;
  const { type, provider } = part;
  // An answer may break off inside a surrogate pair, and providers refuse half of one.
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

function brokenOffError(): KitError {
  return new KitError({ code: "model_error", message: "The model's answer broke off before its end." });
}

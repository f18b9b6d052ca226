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
import { type Attachment, toAttachment } from "./attachments.ts";
import { type StreamedCall, toToolCall } from "./to-tool-call.ts";

type Answer = Awaited<ReturnType<LanguageModelV4["doStream"]>>;
type Reader = ReadableStreamDefaultReader<LanguageModelV4StreamPart>;

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
  const { promise, resolve, reject } = Promise.withResolvers<ModelReply>();
  let reader: Reader | undefined;
  let hasFailed = false;
  const fail = (error: unknown): void => {
    if (hasFailed) return;
    hasFailed = true;
    // Cancel the rest of an abandoned answer.
    watch.stop(error);
    reject(new InterruptedReply(toReply(draft, watch.signal.aborted ? "aborted" : "error"), error));
  };
  const take = ({ done, value }: Awaited<ReturnType<Reader["read"]>>): void => {
    if (hasFailed) return;
    try {
      if (!done) {
        watch.silentTicks = 0;
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
  const start = ({ stream }: Answer): void => {
    try {
      // An answer that starts after the call was stopped is cancelled.
      if (hasFailed) stream.cancel(options.abortSignal?.reason).catch(() => undefined);
      else {
        reader = stream.getReader();
        watch.reader = reader;
        reader.read().then(take, fail);
      }
    } catch (error) {
      fail(error);
    }
  };
  try {
    options.abortSignal = watch.begin(fail);
    if (!hasFailed) model.doStream(options).then(start, fail);
  } catch (error) {
    fail(error);
  }
  return promise;
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
      grow(draft, "");
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
      draft.finishReason = finishReasons.has(part.finishReason.unified) ? part.finishReason.unified : "other";
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
  draft.metadata.first_chunk_ms ??= Math.round(performance.now() - draft.startedMs);
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
  const content: ModelReply["content"][number][] = [];
  for (const part of draft.parts) {
    if (part.type === "tool_call") content.push(part);
    else if (part.type !== "open_call" && (part.deltas.length > 0 || part.provider !== undefined))
      content.push(toContent(part));
  }
  // A copy has the exact length, which matters for arrays that stay in the history.
  return { content: content.slice(), finishReason, usage: draft.usage, metadata: draft.metadata };
}

function toContent({ type, deltas, provider }: OpenPart): TextPart | ReasoningPart {
  // An answer may break off inside a surrogate pair, and providers refuse half of one.
  const text = deltas.join("").toWellFormed();
  return provider === undefined ? { type, text } : { type, text, provider };
}

/** The reasons that a provider can give. */
const finishReasons: ReadonlySet<string> = new Set<FinishReason>([
  "stop",
  "length",
  "content-filter",
  "tool-calls",
  "error",
]);

function brokenOffError(): KitError {
  return new KitError({ code: "model_error", message: "The model's answer broke off before its end." });
}

/** Ticks per idle timeout: silence is noticed at most one tick late. */
const ticks = 10;

/**
 * Watches successive model calls: the caller's abort or silence stops a call, even if the provider ignores the signal.
 * One watch serves all turns of an operation, because its timer and signal cost more than the rest of a short turn.
 * Dispose of it after the last call.
 */
export class CallWatch implements Disposable {
  /** Stops the call that runs, and every later one. */
  readonly signal: AbortSignal;
  /** Milliseconds without any part of an answer before the call is given up. */
  readonly #idleTimeoutMs: number;
  readonly #onAbort = (): void => this.stop(this.signal.reason);
  #controller = new AbortController();
  #timer: NodeJS.Timeout | undefined;
  /** Ticks without a part. Resetting a timer for every part would cost more than reading it. */
  silentTicks = 0;
  /** Called if the call that runs is stopped; undefined while none runs. */
  #refuse: ((reason: unknown) => void) | undefined;
  /** Reads the answer, once it has started. */
  reader: Reader | undefined;

  constructor(signal: AbortSignal, idleTimeoutMs: number) {
    this.signal = signal;
    this.#idleTimeoutMs = idleTimeoutMs;
    signal.addEventListener("abort", this.#onAbort, { once: true });
  }

  /** Starts a call; the provider gets the returned signal. `refuse` is called if the call is stopped before its end. */
  begin(refuse: (reason: unknown) => void): AbortSignal {
    if (this.#controller.signal.aborted) this.#controller = new AbortController();
    this.#refuse = refuse;
    this.silentTicks = 0;
    this.#timer ??= setInterval(() => this.#tick(), this.#idleTimeoutMs / ticks);
    if (this.signal.aborted) this.#onAbort();
    return this.#controller.signal;
  }

  stop(reason: unknown): void {
    const [refuse, reader] = [this.#refuse, this.reader];
    if (refuse === undefined) return;
    this.end();
    this.#controller.abort(reason);
    // Ends a pending read, also of a stream that ignores the signal.
    reader?.cancel(reason).catch(() => undefined);
    refuse(reason);
  }

  end(): void {
    this.#refuse = undefined;
    this.reader = undefined;
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
    this.signal.removeEventListener("abort", this.#onAbort);
  }

  // The timer keeps running between calls, which is cheaper than setting it again. It stops when no call runs: a tool
  // that waits for a person may take days.
  #tick(): void {
    if (this.#refuse === undefined) {
      clearInterval(this.#timer);
      this.#timer = undefined;
      return;
    }
    this.silentTicks += 1;
    // The first tick can come less than a full tick after `begin`.
    if (this.silentTicks <= ticks) return;
    this.stop(
      new KitError({
        code: "model_timeout",
        message: `The model sent nothing for ${Math.round(this.#idleTimeoutMs / 1000)} seconds.`,
      }),
    );
  }
}

import type {
  LanguageModelV4,
  LanguageModelV4CallOptions,
  LanguageModelV4StreamPart,
  LanguageModelV4Usage,
} from "@ai-sdk/provider";
import { KitError } from "../../base/kit-error.ts";
import type {
  FinishReason,
  ProviderData,
  ReasoningPart,
  TextPart,
  ToolCallPart,
} from "../../protocol/message.ts";

/** What one call of a model gave. */
export interface ModelReply {
  readonly content: readonly (TextPart | ReasoningPart | ToolCallPart)[];
  readonly finishReason: FinishReason;
  readonly usage: LanguageModelV4Usage | undefined;
}

export interface ModelCall {
  readonly model: LanguageModelV4;
  readonly options: LanguageModelV4CallOptions;
  readonly signal: AbortSignal;
  /** Milliseconds without any part of the answer before the call is given up. */
  readonly idleTimeoutMs: number;
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
  text: string;
  provider: ProviderData | undefined;
}

interface Draft {
  readonly parts: (OpenPart | ToolCallPart)[];
  // Seldom more than one at a time.
  open: OpenPart[];
  usage: LanguageModelV4Usage | undefined;
  finishReason: FinishReason | undefined;
}

/**
 * Calls a model once and reads its stream to the end.
 *
 * Throws `InterruptedReply` when the call fails, the stream breaks or falls silent (`cause` is
 * `model_timeout`), or the signal fires. What is not read to its end is cancelled.
 */
export async function callModel(call: ModelCall): Promise<ModelReply> {
  const draft: Draft = { parts: [], open: [], usage: undefined, finishReason: undefined };
  const watch = new Watch(call);
  try {
    const answer = call.model.doStream({ ...call.options, abortSignal: watch.signal });
    const { stream } = await watch.first(answer);
    const reader = stream.getReader();
    watch.reader = reader;
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
    throw new InterruptedReply(toReply(draft, call.signal.aborted ? "aborted" : "error"), cause);
  } finally {
    watch.end();
  }
}

function readPart(draft: Draft, part: LanguageModelV4StreamPart, onDelta: ModelCall["onDelta"]): void {
  switch (part.type) {
    case "text-delta":
    case "reasoning-delta": {
      const type = part.type === "text-delta" ? "text" : "reasoning";
      const open = draft.open.find(({ id }) => id === part.id) ?? openPart(draft, part.id, type);
      open.text += part.delta;
      if (part.providerMetadata !== undefined) open.provider = part.providerMetadata as ProviderData;
      if (part.delta !== "") onDelta(type === "text" ? "text_delta" : "reasoning_delta", part.delta);
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
      const open = draft.open.find(({ id }) => id === part.id);
      if (open !== undefined && part.providerMetadata !== undefined)
        open.provider = part.providerMetadata as ProviderData;
      draft.open = draft.open.filter((each) => each !== open);
      return;
    }
    case "tool-call":
      // What a provider runs on its own side is finished when the answer is: there is nothing to run.
      if (part.providerExecuted !== true) draft.parts.push(toToolCall(part));
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
      // Sources, files and the pieces of a tool call that comes whole later carry nothing we keep.
      return;
  }
}

function openPart(draft: Draft, id: string, type: "text" | "reasoning"): OpenPart {
  const open: OpenPart = { id, type, text: "", provider: undefined };
  draft.open.push(open);
  draft.parts.push(open);
  return open;
}

function toToolCall(part: Extract<LanguageModelV4StreamPart, { type: "tool-call" }>): ToolCallPart {
  const call = {
    type: "tool_call",
    tool_call_id: part.toolCallId,
    tool: part.toolName,
    ...(part.providerMetadata === undefined ? {} : { provider: part.providerMetadata as ProviderData }),
  } as const;
  try {
    return { ...call, args: part.input.trim() === "" ? {} : JSON.parse(part.input) };
  } catch {
    return { ...call, args: part.input, invalid: true };
  }
}

function toReply(draft: Draft, finishReason: FinishReason): ModelReply {
  const content: (TextPart | ReasoningPart | ToolCallPart)[] = [];
  for (const part of draft.parts) {
    if (part.type === "tool_call") content.push(part);
    else if (part.text !== "" || part.provider !== undefined) {
      content.push({
        type: part.type,
        text: part.text,
        ...(part.provider === undefined ? {} : { provider: part.provider }),
      });
    }
  }
  return { content, finishReason, usage: draft.usage };
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

type Reader = ReadableStreamDefaultReader<LanguageModelV4StreamPart>;
type Answer = Awaited<ReturnType<LanguageModelV4["doStream"]>>;

/** Watches over one call: the caller's abort and silence stop it, whether the provider listens or not. */
class Watch {
  readonly #call: ModelCall;
  readonly #controller = new AbortController();
  readonly #onAbort: () => void;
  readonly #timer: NodeJS.Timeout;
  #refuse: ((reason: unknown) => void) | undefined;
  reader: Reader | undefined;
  /** Why the call was stopped. */
  stopped: { readonly reason: unknown } | undefined;

  constructor(call: ModelCall) {
    this.#call = call;
    this.#onAbort = () => this.stop(call.signal.reason);
    this.#timer = setTimeout(() => this.stop(silent(call.idleTimeoutMs)), call.idleTimeoutMs);
    if (call.signal.aborted) this.#onAbort();
    else call.signal.addEventListener("abort", this.#onAbort, { once: true });
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Waits for the answer to begin. One that begins after the call was stopped is cancelled. */
  first(answer: PromiseLike<Answer>): Promise<Answer> {
    return new Promise((resolve, reject) => {
      this.#refuse = reject;
      if (this.stopped !== undefined) reject(this.stopped.reason);
      answer.then((begun) => {
        if (this.stopped === undefined) resolve(begun);
        else begun.stream.cancel(this.stopped.reason).catch(() => undefined);
      }, reject);
    });
  }

  touch(): void {
    this.#timer.refresh();
  }

  stop(reason: unknown): void {
    if (this.stopped !== undefined) return;
    this.stopped = { reason };
    this.#controller.abort(reason);
    this.#refuse?.(reason);
    // Ends a read that waits, also of a stream that does not know the signal.
    this.reader?.cancel(reason).catch(() => undefined);
  }

  end(): void {
    clearTimeout(this.#timer);
    this.#call.signal.removeEventListener("abort", this.#onAbort);
  }
}

function silent(idleTimeoutMs: number): KitError {
  return new KitError({
    code: "model_timeout",
    message: `The model sent nothing for ${Math.round(idleTimeoutMs / 1000)} seconds.`,
  });
}

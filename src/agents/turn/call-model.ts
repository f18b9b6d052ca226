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

interface OpenPart {
  readonly type: "text" | "reasoning";
  text: string;
  provider: ProviderData | undefined;
}

interface Draft {
  readonly parts: (OpenPart | ToolCallPart)[];
  readonly open: Map<string, OpenPart>;
  usage: LanguageModelV4Usage | undefined;
  finishReason: FinishReason | undefined;
}

/**
 * Calls a model once and reads its stream to the end.
 *
 * Throws `InterruptedReply` when the stream breaks, falls silent (`cause` is `model_timeout`) or the
 * signal fires; an error of the provider as it came when nothing had been read yet.
 */
export async function callModel(call: ModelCall): Promise<ModelReply> {
  const draft: Draft = { parts: [], open: new Map(), usage: undefined, finishReason: undefined };
  const watch = watchOver(call);
  try {
    const { stream } = await watch.race(call.model.doStream({ ...call.options, abortSignal: watch.signal }));
    const reader = stream.getReader();
    watch.onStop(() => void reader.cancel(watch.signal.reason).catch(() => undefined));
    for (;;) {
      const { done, value } = await reader.read();
      if (watch.signal.aborted) throw watch.signal.reason;
      if (done) break;
      watch.touch();
      readPart(draft, value, call.onDelta);
    }
    if (draft.finishReason === undefined) throw cutOff();
    return toReply(draft, draft.finishReason);
  } catch (error) {
    const cause = watch.signal.aborted ? watch.signal.reason : error;
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
      const open = draft.open.get(part.id) ?? openPart(draft, part.id, type);
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
      const open = draft.open.get(part.id);
      if (open !== undefined && part.providerMetadata !== undefined)
        open.provider = part.providerMetadata as ProviderData;
      draft.open.delete(part.id);
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
  const open: OpenPart = { type, text: "", provider: undefined };
  draft.open.set(id, open);
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

interface Watch {
  readonly signal: AbortSignal;
  race<Value>(work: PromiseLike<Value>): Promise<Value>;
  touch(): void;
  onStop(stop: () => void): void;
  end(): void;
}

/** One signal for the caller's abort and for silence; `race` also ends work that ignores it. */
function watchOver(call: ModelCall): Watch {
  const controller = new AbortController();
  const stops: (() => void)[] = [];
  const abort = (reason: unknown): void => {
    controller.abort(reason);
    for (const stop of stops) stop();
  };
  const onAbort = (): void => abort(call.signal.reason);
  const timer = setTimeout(() => abort(silent(call.idleTimeoutMs)), call.idleTimeoutMs);
  if (call.signal.aborted) onAbort();
  else call.signal.addEventListener("abort", onAbort, { once: true });
  return {
    signal: controller.signal,
    race: (work) =>
      new Promise((resolve, reject) => {
        if (controller.signal.aborted) reject(controller.signal.reason);
        stops.push(() => reject(controller.signal.reason));
        work.then(resolve, reject);
      }),
    touch: () => timer.refresh(),
    onStop: (stop) => {
      stops.push(stop);
      if (controller.signal.aborted) stop();
    },
    end: () => {
      clearTimeout(timer);
      call.signal.removeEventListener("abort", onAbort);
    },
  };
}

function silent(idleTimeoutMs: number): KitError {
  return new KitError({
    code: "model_timeout",
    message: `The model sent nothing for ${Math.round(idleTimeoutMs / 1000)} seconds.`,
  });
}

import type {
  LanguageModelV4,
  LanguageModelV4CallOptions,
  LanguageModelV4GenerateResult,
  LanguageModelV4StreamPart,
  LanguageModelV4StreamResult,
  LanguageModelV4Usage,
} from "@ai-sdk/provider";
import { KitError } from "../base/kit-error.ts";

/** The scripted model's answer in one call. */
export interface ScriptedTurn {
  readonly text?: string;
  /** Deltas to stream instead of one piece of text. */
  readonly deltas?: readonly string[];
  readonly reasoning?: string;
  /** Sources and files of the answer, after its first delta. */
  readonly attachments?: readonly Extract<LanguageModelV4StreamPart, { type: "source" | "file" }>[];
  readonly toolCalls?: readonly {
    readonly id?: string;
    readonly name: string;
    readonly input?: unknown;
    readonly rawInput?: string;
    /** The arguments are streamed in pieces of this many characters before the call. */
    readonly pieces?: number;
  }[];
  /** Milliseconds before the first part, and between parts. */
  readonly delayMs?: number;
  /** Thrown instead of an answer, or after `failAfter` of its parts. */
  readonly error?: unknown;
  readonly failAfter?: number;
  readonly usage?: {
    readonly input?: number;
    readonly output?: number;
    readonly cacheRead?: number;
    readonly cacheWrite?: number;
    readonly reasoning?: number;
  };
  /** Facts that the provider reports about its answer. */
  readonly response?: { readonly id?: string; readonly modelId?: string };
  readonly finishReason?: "stop" | "length" | "content-filter" | "tool-calls" | "error" | "other";
}

/** A turn, or a function that returns one from the call (its prompt and tools) and its number, from 0. */
export type Script =
  | readonly ScriptedTurn[]
  | ((call: LanguageModelV4CallOptions, index: number) => ScriptedTurn | Promise<ScriptedTurn>);

export interface ScriptedModel extends LanguageModelV4 {
  /** The options of every call so far. Prompts are the live arrays of their sessions. */
  readonly calls: readonly LanguageModelV4CallOptions[];
}

/**
 * A model that answers what a script tells it to, through the interface of real models, without a network and without
 * randomness.
 *
 * A list answers turn by turn. Past its end the model fails, so that a test notices an extra call.
 *
 * @example
 * ```ts
 * import { createScriptedModel, createTestAgent } from "kit/testing";
 *
 * const model = createScriptedModel([{ toolCalls: [{ name: "read", input: { path: "a.txt" } }] }, { text: "Read." }]);
 * const { text } = await createTestAgent(model).session().prompt("Read it.");
 * console.log(text, model.calls.length); // Read. 2
 * ```
 */
export function createScriptedModel(
  script: Script,
  options: { readonly modelId?: string; readonly recordCalls?: boolean } = {},
): ScriptedModel {
  const calls: LanguageModelV4CallOptions[] = [];
  let index = 0;
  const turnFor = async (call: LanguageModelV4CallOptions): Promise<ScriptedTurn> => {
    const turn = index;
    index += 1;
    if (options.recordCalls !== false) calls.push(call);
    const answer = typeof script === "function" ? script(call, turn) : script[turn];
    // kit does not retry after this error: it means a fault of the test, not of a provider.
    if (answer === undefined) {
      throw new KitError({
        code: "invalid_request",
        message: `The script has ${script.length} turns, and the test asked for turn ${turn + 1}.`,
      });
    }
    return answer;
  };
  return {
    specificationVersion: "v4",
    provider: "scripted",
    modelId: options.modelId ?? "scripted",
    supportedUrls: {},
    calls,
    doStream: async (call) => streamOf(await turnFor(call), call.abortSignal),
    doGenerate: async (call) => toGenerateResult(await turnFor(call)),
  };
}

function streamOf(turn: ScriptedTurn, signal: AbortSignal | undefined): LanguageModelV4StreamResult {
  if (turn.error !== undefined && turn.failAfter === undefined) throw turn.error;
  const parts = partsOf(turn);
  let next = 0;
  const stream = new ReadableStream<LanguageModelV4StreamPart>(
    {
      async pull(controller) {
        if (turn.delayMs !== undefined) await delay(turn.delayMs, signal);
        if (turn.failAfter !== undefined && next >= turn.failAfter)
          throw turn.error ?? new Error("The connection was lost.");
        const part = parts[next];
        next += 1;
        if (part === undefined) controller.close();
        else controller.enqueue(part);
      },
    },
    { highWaterMark: 0 },
  );
  return { stream };
}

function partsOf(turn: ScriptedTurn): LanguageModelV4StreamPart[] {
  const parts: LanguageModelV4StreamPart[] = [];
  if (turn.response !== undefined) parts.push({ type: "response-metadata", ...turn.response });
  if (turn.reasoning !== undefined) {
    parts.push(
      { type: "reasoning-start", id: "r" },
      { type: "reasoning-delta", id: "r", delta: turn.reasoning },
      { type: "reasoning-end", id: "r" },
    );
  }
  const deltas = turn.deltas ?? (turn.text === undefined ? [] : [turn.text]);
  if (deltas.length > 0) {
    parts.push({ type: "text-start", id: "t" });
    for (const [at, delta] of deltas.entries()) {
      parts.push({ type: "text-delta", id: "t", delta });
      if (at === 0) parts.push(...(turn.attachments ?? []));
    }
    parts.push({ type: "text-end", id: "t" });
  } else parts.push(...(turn.attachments ?? []));
  const calls = turn.toolCalls ?? [];
  calls.forEach((call, position) => {
    const toolCallId = call.id ?? `call_${position + 1}`;
    const input = call.rawInput ?? JSON.stringify(call.input ?? {});
    if (call.pieces !== undefined) {
      parts.push({ type: "tool-input-start", id: toolCallId, toolName: call.name });
      for (let at = 0; at < input.length; at += call.pieces)
        parts.push({ type: "tool-input-delta", id: toolCallId, delta: input.slice(at, at + call.pieces) });
      parts.push({ type: "tool-input-end", id: toolCallId });
    }
    parts.push({ type: "tool-call", toolCallId, toolName: call.name, input });
  });
  const unified = turn.finishReason ?? (calls.length > 0 ? "tool-calls" : "stop");
  parts.push({ type: "finish", finishReason: { unified, raw: unified }, usage: toUsage(turn) });
  return parts;
}

function toUsage(turn: ScriptedTurn): LanguageModelV4Usage {
  const { input = 0, output = 0, cacheRead, cacheWrite, reasoning } = turn.usage ?? {};
  return {
    inputTokens: { total: input, noCache: undefined, cacheRead, cacheWrite },
    outputTokens: { total: output, text: undefined, reasoning },
  };
}

function toGenerateResult(turn: ScriptedTurn): LanguageModelV4GenerateResult {
  if (turn.error !== undefined) throw turn.error;
  const unified = turn.finishReason ?? "stop";
  return {
    content: [{ type: "text", text: turn.text ?? (turn.deltas ?? []).join("") }],
    finishReason: { unified, raw: unified },
    usage: toUsage(turn),
    warnings: [],
  };
}

async function delay(ms: number, signal: AbortSignal | undefined): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    const timer = setTimeout(resolve, ms);
    signal?.addEventListener(
      "abort",
      () => {
        clearTimeout(timer);
        reject(signal.reason);
      },
      { once: true },
    );
  });
}

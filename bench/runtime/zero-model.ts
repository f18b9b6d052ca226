import type {
  LanguageModelV4,
  LanguageModelV4CallOptions,
  LanguageModelV4Content,
  LanguageModelV4StreamPart,
  LanguageModelV4Usage,
} from "@ai-sdk/provider";
import { deltasPerAnswer, type Script, toolCallsPerLoop } from "./subject.ts";

const usage: LanguageModelV4Usage = {
  inputTokens: { total: 100, noCache: 100, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 10, text: 10, reasoning: 0 },
};

/** A model of the AI SDK that answers at once: what kit, the AI SDK and the floor call. */
export function createZeroModel(script: Script): LanguageModelV4 {
  const partsFor = createAnswers(script);
  return {
    specificationVersion: "v4",
    provider: "zero",
    modelId: "zero",
    supportedUrls: {},
    doStream: async (options) => ({ stream: streamOf(partsFor(options)) }),
    doGenerate: async (options) => {
      const content: LanguageModelV4Content[] = [];
      for (const part of partsFor(options)) {
        if (part.type === "text-delta") content.push({ type: "text", text: part.delta });
        else if (part.type === "tool-call") content.push(part);
      }
      const unified = content.some((part) => part.type === "tool-call") ? "tool-calls" : "stop";
      return { content, finishReason: { unified, raw: unified }, usage, warnings: [] };
    },
  };
}

/** The same model, whose final answers come later. */
export function createDelayedModel(script: Script, delay: () => Promise<void>): LanguageModelV4 {
  const model = createZeroModel(script);
  const callsBefore = script === "tools" ? toolCallsPerLoop : 0;
  const doStream: LanguageModelV4["doStream"] = (options) =>
    resultsSinceUser(options.prompt) < callsBefore
      ? model.doStream(options)
      : delay().then(() => model.doStream(options));
  return { ...model, doStream };
}

/** The parts of each answer of a script. Answers without a tool call are the same array every time. */
export function createAnswers(
  script: Script,
): (options: Pick<LanguageModelV4CallOptions, "prompt">) => readonly LanguageModelV4StreamPart[] {
  let calls = 0;
  return ({ prompt }) => {
    if (script === "deltas") return deltaParts;
    if (script === "answer" || resultsSinceUser(prompt) >= toolCallsPerLoop) return answerParts;
    calls += 1;
    return callParts(`call_${calls}`);
  };
}

/** Counts the tool results after the last user message, which is the progress of the loop. */
function resultsSinceUser(messages: readonly { readonly role: string }[]): number {
  let results = 0;
  for (let index = messages.length - 1; index >= 0 && messages[index]?.role !== "user"; index -= 1) {
    if (messages[index]?.role === "tool") results += 1;
  }
  return results;
}

export function streamOf<Part>(parts: readonly Part[]): ReadableStream<Part> {
  return new ReadableStream({
    start(controller) {
      for (const part of parts) controller.enqueue(part);
      controller.close();
    },
  });
}

function textParts(deltas: readonly string[]): LanguageModelV4StreamPart[] {
  return [
    { type: "stream-start", warnings: [] },
    { type: "text-start", id: "t" },
    ...deltas.map((delta) => ({ type: "text-delta", id: "t", delta }) as const),
    { type: "text-end", id: "t" },
    { type: "finish", finishReason: { unified: "stop", raw: "stop" }, usage },
  ];
}

const answerParts = textParts(["Hello there."]);
const deltaParts = textParts(Array.from({ length: deltasPerAnswer }, () => "word "));

function callParts(toolCallId: string): LanguageModelV4StreamPart[] {
  return [
    { type: "stream-start", warnings: [] },
    { type: "tool-call", toolCallId, toolName: "echo", input: '{"text":"the same again"}' },
    { type: "finish", finishReason: { unified: "tool-calls", raw: "tool_calls" }, usage },
  ];
}

import type {
  LanguageModelV4,
  LanguageModelV4CallOptions,
  LanguageModelV4StreamPart,
  LanguageModelV4Usage,
} from "@ai-sdk/provider";
import { streamOf } from "../runtime/zero-model.ts";
import { askForDeltas, askToHold, deltaEveryMs, deltasPerAnswer, type ServeOptions } from "./subject.ts";

export const answer = "Hello there.";

const usage: LanguageModelV4Usage = {
  inputTokens: { total: 100, noCache: 100, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 10, text: 10, reasoning: 0 },
};
const answerParts: readonly LanguageModelV4StreamPart[] = [
  { type: "stream-start", warnings: [] },
  { type: "text-start", id: "t" },
  { type: "text-delta", id: "t", delta: answer },
  { type: "text-end", id: "t" },
  { type: "finish", finishReason: { unified: "stop", raw: "stop" }, usage },
];

/** A model without latency, except for two prompts: it never answers one, and answers the other in timed deltas. */
export function createServedModel({ holds, onFirstCall }: Omit<ServeOptions, "folder">): LanguageModelV4 {
  let wasCalled = false;
  return {
    specificationVersion: "v4",
    provider: "zero",
    modelId: "zero",
    supportedUrls: {},
    async doStream({ prompt }) {
      if (!wasCalled) onFirstCall(process.hrtime.bigint());
      wasCalled = true;
      const asked = lastText(prompt);
      if (holds && asked === askToHold) return await new Promise(() => undefined);
      if (asked === askForDeltas) return { stream: timedDeltas() };
      return { stream: streamOf(answerParts) };
    },
    async doGenerate() {
      return {
        content: [{ type: "text", text: answer }],
        finishReason: { unified: "stop", raw: "stop" },
        usage,
        warnings: [],
      };
    },
  };
}

/** Deltas that contain the time of their creation, in nanoseconds, and a space. */
export async function* timedTexts(): AsyncGenerator<string> {
  for (let count = 0; count < deltasPerAnswer; count += 1) {
    await new Promise((resolve) => setTimeout(resolve, deltaEveryMs));
    yield `${process.hrtime.bigint()} `;
  }
}

function timedDeltas(): ReadableStream<LanguageModelV4StreamPart> {
  const [started, opened, , ...rest] = answerParts;
  return ReadableStream.from(
    (async function* () {
      if (started !== undefined) yield started;
      if (opened !== undefined) yield opened;
      for await (const delta of timedTexts()) yield { type: "text-delta", id: "t", delta } as const;
      yield* rest;
    })(),
  );
}

function lastText(prompt: LanguageModelV4CallOptions["prompt"]): string | undefined {
  const part = prompt.findLast((message) => message.role === "user")?.content.at(-1);
  return typeof part === "object" && part.type === "text" ? part.text : undefined;
}

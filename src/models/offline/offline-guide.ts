import type {
  LanguageModelV4,
  LanguageModelV4CallOptions,
  LanguageModelV4Content,
  LanguageModelV4StreamPart,
} from "@ai-sdk/provider";
import { KitError } from "../../base/kit-error.ts";
import { composeAnswer } from "./compose-answer.ts";
import { planCalls } from "./plan-calls.ts";
import { readConversation } from "./read-conversation.ts";

/**
 * The built-in model `offline/guide`: needs no key and no network. It looks things up with the tools it
 * is given, specs, guidelines and files, and quotes what they return. It does not reason, and says so.
 *
 * The same conversation gives the same answer.
 */
export function createOfflineGuide(): LanguageModelV4 {
  return {
    specificationVersion: "v4",
    provider: "offline",
    modelId: "guide",
    supportedUrls: {},
    async doStream(options) {
      const parts = answer(options);
      return {
        stream: new ReadableStream<LanguageModelV4StreamPart>({
          start(controller) {
            for (const part of parts) controller.enqueue(part);
            controller.close();
          },
        }),
      };
    },
    async doGenerate(options) {
      const content = answer(options).flatMap((part): LanguageModelV4Content[] => {
        if (part.type === "text-delta") return [{ type: "text", text: part.delta }];
        return part.type === "tool-call" ? [part] : [];
      });
      const calls = content.some((part) => part.type === "tool-call");
      return { content, finishReason: finish(calls), usage: usageOf(options, content), warnings: [] };
    },
  };
}

function answer(options: LanguageModelV4CallOptions): LanguageModelV4StreamPart[] {
  const conversation = readConversation(options.prompt);
  if (conversation.wantsResult) throw noTypedResults();
  const calls = planCalls(conversation, new Set((options.tools ?? []).map((tool) => tool.name)));
  const parts: LanguageModelV4StreamPart[] = [{ type: "stream-start", warnings: [] }];
  if (calls.length > 0) {
    for (const call of calls) {
      parts.push({
        type: "tool-call",
        toolCallId: call.id,
        toolName: call.tool,
        input: JSON.stringify(call.input),
      });
    }
  } else {
    // Paragraph by paragraph, so that a reader of the stream sees it grow.
    parts.push({ type: "text-start", id: "answer" });
    for (const delta of composeAnswer(conversation).split(/(?<=\n\n)/))
      parts.push({ type: "text-delta", id: "answer", delta });
    parts.push({ type: "text-end", id: "answer" });
  }
  parts.push({ type: "finish", finishReason: finish(calls.length > 0), usage: usageOf(options, parts) });
  return parts;
}

// The guide says so at once: four answers that do not fit would not tell the caller why.
function noTypedResults(): KitError {
  return new KitError({
    code: "unavailable",
    message: "offline/guide only quotes: it cannot make a typed result.",
    hint: "Set the key of a provider, such as ANTHROPIC_API_KEY, or name another model.",
  });
}

function finish(calls: boolean): { unified: "tool-calls" | "stop"; raw: undefined } {
  return { unified: calls ? "tool-calls" : "stop", raw: undefined };
}

/** Counts a quarter of the characters as tokens: nothing is billed, but budgets and limits go on working. */
function usageOf(
  options: LanguageModelV4CallOptions,
  output: unknown,
): Extract<LanguageModelV4StreamPart, { type: "finish" }>["usage"] {
  return {
    inputTokens: {
      total: Math.ceil(JSON.stringify(options.prompt).length / 4),
      noCache: undefined,
      cacheRead: undefined,
      cacheWrite: undefined,
    },
    outputTokens: {
      total: Math.ceil(JSON.stringify(output).length / 4),
      text: undefined,
      reasoning: undefined,
    },
  };
}

import type { LanguageModelV4Message } from "@ai-sdk/provider";
import { defineTool } from "../../src/agents/define/tool.ts";
import type { Agent } from "../../src/agents/harness.ts";
import type { SessionStore } from "../../src/stores/contract.ts";
import { createScriptedModel, type ScriptedTurn } from "../../src/testing/scripted-model.ts";
import { createTestAgent } from "../../src/testing/test-runtime.ts";

/** The agent's answer to a prompt such as `#7`. */
export const answerTo = (prompt: string): string => `Done with ${prompt}.`;

/**
 * An agent whose model calls tools at random, one or several at a time, starts tasks, and has a window so
 * small that its history is compacted again and again. Like a provider, the model refuses a history
 * in which a call has no result.
 */
export function createBusyAgent(
  store: SessionStore,
  random: (below: number) => number,
  { startsTasks = true }: { readonly startsTasks?: boolean } = {},
): Agent {
  let calls = 0;
  const callTools = (count: number): NonNullable<ScriptedTurn["toolCalls"]> =>
    Array.from({ length: count }, () => {
      calls += 1;
      const id = `call_${calls}`;
      return startsTasks && random(4) === 0
        ? { id, name: "task", input: { prompt: "#0" } }
        : { id, name: "wait", input: { ms: random(4) } };
    });
  const model = createScriptedModel(
    ({ prompt, tools }): ScriptedTurn => {
      const usage = { input: Math.ceil(JSON.stringify(prompt).length / 4), output: 10 };
      if (tools === undefined) return { text: "Much was done.", usage };
      refuseOpenCalls(prompt);
      const user = prompt.findLastIndex((message) => message.role === "user");
      const turns = prompt.length - user;
      const isDone = turns > 6 || random(3) === 0;
      if (!isDone) return { toolCalls: callTools(1 + random(3)), usage };
      return { text: answerTo(textOf(prompt[user])), usage };
    },
    { recordCalls: false },
  );
  const wait = defineTool<{ readonly ms: number }>({
    name: "wait",
    description: "Waits.",
    input: { type: "object" },
    execute: async ({ ms }) => {
      await new Promise((resolve) => setTimeout(resolve, ms));
      return "waited ".repeat(20);
    },
  });
  return createTestAgent(
    model,
    {
      tools: [wait],
      maxTaskDepth: 2,
      compaction: { contextWindowTokens: 1_500, reserveTokens: 300, keepRecentTokens: 300 },
    },
    {
      store,
      sandbox: {
        name: "none",
        open: async () => {
          throw new Error("no sandbox");
        },
      },
    },
  );
}

function refuseOpenCalls(prompt: readonly LanguageModelV4Message[]): void {
  prompt.forEach((message, index) => {
    const called = idsOf(message, "assistant", "tool-call");
    const answered = idsOf(prompt[index + 1], "tool", "tool-result");
    if (called.join() !== answered.join()) throw refusal(`${called.join()} but ${answered.join()}`);
    if (message.role === "tool" && prompt[index - 1]?.role !== "assistant") throw refusal("a lone result");
  });
}

function idsOf(
  message: LanguageModelV4Message | undefined,
  role: "assistant" | "tool",
  type: "tool-call" | "tool-result",
): readonly string[] {
  if (message?.role !== role) return [];
  return message.content.flatMap((part) => (part.type === type ? [part.toolCallId] : []));
}

/** A permanent error of a provider, which is not retried. */
function refusal(why: string): Error {
  return Object.assign(new Error(`The history is invalid: ${why}.`), { statusCode: 400 });
}

function textOf(message: LanguageModelV4Message | undefined): string {
  if (message?.role !== "user") return "";
  return message.content.map((part) => (part.type === "text" ? part.text : "")).join("");
}

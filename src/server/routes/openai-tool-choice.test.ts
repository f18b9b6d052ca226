import type { LanguageModelV4CallOptions } from "@ai-sdk/provider";
import OpenAI from "openai";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { createScriptedModel } from "../../testing/scripted-model.ts";
import { createTestService } from "../../testing/test-service.ts";
import { type ServedService, serveService } from "../testing/serve-service.ts";

let served: ServedService;
let client: OpenAI;
const calls: LanguageModelV4CallOptions[] = [];
const script = createScriptedModel((call) => {
  calls.push(call);
  const { toolChoice, tools = [] } = call;
  const [first] = tools;
  const name = toolChoice?.type === "tool" ? toolChoice.toolName : first?.name;
  const isForced = toolChoice?.type === "tool" || toolChoice?.type === "required";
  return isForced && name !== undefined ? { toolCalls: [{ name, input: {} }] } : { text: "Free." };
});

beforeAll(async () => {
  const own = `const own = { name: "own", description: "Own.", input: { type: "object" }, execute: () => "done" };
export const triggers = { webhook: true };
export default { kind: "kit.agent", describe: async () => ({ tools: [own], builtInTools: false, specs: false, mcp: false }) };
`;
  served = await serveService({
    files: { "src/agents/chooser.ts": own },
    openService: ({ root }) => createTestService({ root, model: script }),
  });
  client = new OpenAI({ baseURL: `${served.url}/v1`, apiKey: "none", maxRetries: 0 });
});
afterAll(async () => {
  expect(served.errors).toEqual([]);
  await served.close();
});
beforeEach(() => {
  calls.length = 0;
});

const names = ["weather", "clock", "map"];
const functions = names.map((name) => ({ name, parameters: { type: "object" as const, properties: {} } }));
const ofResponses = functions.map((each) => ({ type: "function" as const, strict: false, ...each }));
const ofChat = functions.map((each) => ({ type: "function" as const, function: each }));
const model = "chooser";
const offered = (at = 0): string[] =>
  (calls[at]?.tools ?? []).map(({ name }) => name).filter((name) => names.includes(name));

test("a function that Responses forces is called first, and its result ends the force", async () => {
  const tool_choice = { type: "function", name: "clock" } as const;
  const first = await client.responses.create({ model, input: "x", tools: ofResponses, tool_choice });
  expect(first.tool_choice).toEqual(tool_choice);
  expect(calls[0]?.toolChoice).toEqual({ type: "tool", toolName: "clock" });
  const [call] = first.output;
  if (call?.type !== "function_call") throw new Error("There is no call.");
  expect(call.name).toBe("clock");
  const second = await client.responses.create({
    ...{ model, tools: ofResponses, tool_choice, previous_response_id: first.id },
    input: [{ type: "function_call_output", call_id: call.call_id, output: "noon" }],
  });
  expect(second.output_text).toBe("Free.");
  expect(calls[1]?.toolChoice).toBeUndefined();
});

test("Chat Completions forces a function, any, one of some, or none", async () => {
  const ask = async (tool_choice: OpenAI.Chat.ChatCompletionToolChoiceOption) => {
    calls.length = 0;
    const messages = [{ role: "user" as const, content: "x" }];
    const { choices } = await client.chat.completions.create({ model, messages, tools: ofChat, tool_choice });
    return choices[0]?.finish_reason;
  };
  expect(await ask({ type: "function", function: { name: "map" } })).toBe("tool_calls");
  expect(calls[0]?.toolChoice).toEqual({ type: "tool", toolName: "map" });
  await ask("required");
  expect(calls[0]?.toolChoice).toEqual({ type: "required" });
  const tools = [{ type: "function", function: { name: "clock" } }];
  await ask({ type: "allowed_tools", allowed_tools: { mode: "required", tools } });
  expect([offered(), calls[0]?.toolChoice]).toEqual([["clock"], { type: "required" }]);
  expect(await ask({ type: "allowed_tools", allowed_tools: { mode: "auto", tools } })).toBe("stop");
  expect([offered(), calls[0]?.toolChoice]).toEqual([["clock"], undefined]);
  expect(await ask("none")).toBe("stop");
  expect(offered()).toEqual([]);
});

test("a prompt of kit forces a tool of the agent, or forbids all", async () => {
  const ask = (tool_choice: unknown) =>
    served.send("/agents/chooser/kit", { body: { message: "x", tool_choice } });
  expect((await ask({ tool: "own" })).body.result.text).toBe("Free.");
  expect(calls.map(({ toolChoice }) => toolChoice)).toEqual([{ type: "tool", toolName: "own" }, undefined]);
  calls.length = 0;
  expect((await ask("none")).status).toBe(200);
  expect(calls[0]?.toolChoice).toEqual({ type: "none" });
  const missing = await ask({ tool: "other" });
  expect([missing.status, missing.body.error.message]).toEqual([
    400,
    'The choice of tools names the tool "other", which the agent does not have.',
  ]);
  expect((await ask("always")).status).toBe(400);
});

test.each([
  ["a function that is not in tools", { tools: ofResponses, tool_choice: { type: "function", name: "own" } }],
  ["required without tools", { tool_choice: "required" }],
  [
    "allowed tools without a mode",
    { tools: ofResponses, tool_choice: { type: "allowed_tools", tools: ofResponses } },
  ],
  ["a hosted tool", { tools: ofResponses, tool_choice: { type: "web_search_preview" } }],
  ["an unknown word", { tools: ofResponses, tool_choice: "always" }],
])("a forced %s is refused by name", async (_, fields) => {
  const { status, body } = await served.send("/v1/responses", { body: { model, input: "x", ...fields } });
  expect([status, body.error.param]).toEqual([400, "tool_choice"]);
  expect(calls).toEqual([]);
});

import type { LanguageModelV4CallOptions } from "@ai-sdk/provider";
import OpenAI from "openai";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { createScriptedModel } from "../../testing/scripted-model.ts";
import { createTestService } from "../../testing/test-service.ts";
import { serveForTests } from "../testing/serve-for-tests.ts";

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

const agentWith = (
  settings: string,
): string => `const own = { name: "own", description: "Own.", input: { type: "object" }, execute: () => {
  globalThis.ownRuns = (globalThis.ownRuns ?? 0) + 1;
  return "done";
} };
export const triggers = { webhook: true };
export default { kind: "kit.agent", describe: async () => ({ tools: [own], builtInTools: false, specs: false, mcp: false, ${settings} }) };
`;
const served = serveForTests({
  files: {
    "src/agents/chooser.ts": agentWith(""),
    "src/agents/silent.ts": agentWith('modelSettings: { toolChoice: "none" }'),
  },
  openService: ({ root }) => createTestService({ root, model: script }),
});
beforeAll(() => {
  client = new OpenAI({ baseURL: `${served.url}/v1`, apiKey: "none", maxRetries: 0 });
});
afterAll(() => expect(served.errors).toEqual([]));
beforeEach(() => {
  calls.length = 0;
});

const names = ["weather", "clock", "map"];
const functions = names.map((name) => ({ name, parameters: { type: "object" as const, properties: {} } }));
const ofResponses = functions.map((each) => ({ type: "function" as const, strict: false, ...each }));
const ofChat = functions.map((each) => ({ type: "function" as const, function: each }));
const model = "chooser";
const allOffered = (at = 0): string[] => (calls[at]?.tools ?? []).map(({ name }) => name);
const offered = (at = 0): string[] => allOffered(at).filter((name) => names.includes(name));
const ownRuns = (): number => Reflect.get(globalThis, "ownRuns") ?? 0;

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
  expect(await ask("required")).toBe("tool_calls");
  expect(calls[0]?.toolChoice).toEqual({ type: "required" });
  const tools = [{ type: "function", function: { name: "clock" } }];
  await ask({ type: "allowed_tools", allowed_tools: { mode: "required", tools } });
  expect([offered(), calls[0]?.toolChoice]).toEqual([["clock"], { type: "tool", toolName: "clock" }]);
  expect(await ask({ type: "allowed_tools", allowed_tools: { mode: "auto", tools } })).toBe("stop");
  expect([offered(), calls[0]?.toolChoice]).toEqual([["clock"], undefined]);
  expect(await ask("none")).toBe("stop");
  expect(offered()).toEqual([]);
});

test("a caller forces calls of its own functions, and no tool of the agent runs for it", async () => {
  const before = ownRuns();
  const some = { type: "allowed_tools", mode: "required", tools: ofResponses.slice(0, 2) } as const;
  for (const [tools, tool_choice] of [
    [ofResponses.slice(1, 2), "required"],
    [ofResponses, "required"],
    [ofResponses, some],
  ] as const) {
    calls.length = 0;
    const first = await client.responses.create({ model, input: "x", tools: [...tools], tool_choice });
    const [call] = first.output;
    if (call?.type !== "function_call") throw new Error("There is no call.");
    expect(names).toContain(call.name);
    await client.responses.create({
      ...{ model, tools: [...tools], previous_response_id: first.id },
      input: [{ type: "function_call_output", call_id: call.call_id, output: "noon" }],
    });
    // The turns that are not forced have all tools.
    expect(allOffered(1)).toContain("own");
  }
  const body = { message: "x", tools: functions.map(({ name }) => ({ name })), tool_choice: "required" };
  await served.send("/agents/chooser/caller/dispatch", { body: { ...body, message: undefined, input: "x" } });
  await expect
    .poll(async () => (await served.send("/agents/chooser/caller/approvals")).body.approvals)
    .toMatchObject([{ kind: "caller" }]);
  expect(ownRuns()).toBe(before);
});

test("no caller lifts the prohibition of an agent that calls no tools", async () => {
  const before = ownRuns();
  const forced = { type: "function", name: "clock" };
  for (const tool_choice of ["required", forced]) {
    const fields = { model: "silent", input: "x", tools: ofResponses, tool_choice };
    const { body } = await served.send("/v1/responses", { body: fields });
    expect([body.status, body.error.message]).toEqual([
      "failed",
      expect.stringContaining("`tool_choice` cannot force"),
    ]);
  }
  const messages = [{ role: "user", content: "x" }];
  const chat = { model: "silent", messages, tools: ofChat, tool_choice: "required" };
  expect((await served.send("/v1/chat/completions", { body: chat })).status).toBe(400);
  for (const tool_choice of ["required", { tool: "own" }]) {
    const { status, body } = await served.send("/agents/silent/1", { body: { message: "x", tool_choice } });
    expect([status, body.error.message]).toEqual([
      400,
      expect.stringContaining("`tool_choice` cannot force"),
    ]);
  }
  expect(calls).toEqual([]);
  await served.send("/agents/silent/1", { body: { message: "x", tool_choice: "auto" } });
  expect([calls[0]?.toolChoice, ownRuns()]).toEqual([{ type: "none" }, before]);
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

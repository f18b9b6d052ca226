import { describe, expect, test } from "vitest";
import { z } from "zod";
import type { PromptOptions } from "../agents/operations/options.ts";
import { forTests } from "../testing/for-tests.ts";
import { startProviderServer } from "../testing/provider-server/provider-server.ts";
import { createScriptedModel } from "../testing/scripted-model.ts";
import { createTestAgent } from "../testing/test-runtime.ts";
import { createModelResolver } from "./create-model-resolver.ts";

const server = forTests(startProviderServer, ({ close }) => close());

/** The request that a provider gets for one prompt, through the real AI SDK provider. */
async function sent(model: string, options: PromptOptions): Promise<unknown> {
  server.script([{ text: "ok" }]);
  const resolveModel = createModelResolver({ env: {}, providers: server.providers });
  const agent = createTestAgent(createScriptedModel([]), {}, { resolveModel });
  await agent.session().prompt("x", { ...options, model });
  return server.requests[0];
}

const anthropic = (effort: string) => ({ thinking: { type: "adaptive" }, output_config: { effort } });
const google = (thinkingBudget: number) => ({ generationConfig: { thinkingConfig: { thinkingBudget } } });

describe("thinking levels become the provider's own setting", () => {
  test.each([
    ["openai/gpt-5.1", "off", { reasoning: { effort: "none" } }],
    ["openai/gpt-5.1", "low", { reasoning: { effort: "low" } }],
    ["openai/gpt-5.1", "high", { reasoning: { effort: "high" } }],
    ["anthropic/claude-sonnet-4-6", "off", { thinking: { type: "disabled" } }],
    ["anthropic/claude-sonnet-4-6", "low", anthropic("low")],
    ["anthropic/claude-sonnet-4-6", "high", anthropic("high")],
    ["anthropic/claude-haiku-4-5", "low", { thinking: { type: "enabled", budget_tokens: 6_400 } }],
    ["google/gemini-2.5-pro", "off", google(128)],
    ["google/gemini-2.5-pro", "low", google(6_554)],
    ["google/gemini-2.5-pro", "xhigh", google(32_768)],
    ["local/m", "medium", { reasoning_effort: "medium" }],
  ] as const)("%s, %s", async (model, thinkingLevel, setting) => {
    expect(await sent(model, { thinkingLevel })).toMatchObject(setting);
  });

  test("and without a word about it nothing is sent", async () => {
    expect(await sent("local/m", {})).not.toHaveProperty("reasoning_effort");
  });
});

describe("an image is sent in the provider's own form", () => {
  const images = [{ data: new Uint8Array([1, 2, 3]), media_type: "image/png" }];
  const url = "data:image/png;base64,AQID";
  test.each([
    ["openai/gpt-5.1", { type: "input_image", image_url: url }],
    [
      "anthropic/claude-sonnet-4-6",
      { type: "image", source: { type: "base64", media_type: "image/png", data: "AQID" } },
    ],
    ["google/gemini-2.5-pro", { inlineData: { mimeType: "image/png", data: "AQID" } }],
    ["local/m", { type: "image_url", image_url: { url } }],
  ])("%s", async (model, part) => {
    const body = JSON.stringify(await sent(model, { images }));
    // Anthropic's last part is marked for its prompt cache.
    expect(body.replaceAll(',"cache_control":{"type":"ephemeral"}', "")).toContain(JSON.stringify(part));
  });
});

describe("model strings", () => {
  const resolve = createModelResolver({
    env: { ANTHROPIC_API_KEY: "sk-ant-test" },
    providers: {
      ours: {
        base_url: "http://127.0.0.1:1/v1",
        prices: { small: { input: 1, output: 2 } },
        context_windows: { small: 4_096 },
      },
      Mine: { base_url: "http://127.0.0.1:1/v1" },
      openai: { api_key: "sk-test", prices: { "gpt-5.1": { input: 1.25, output: 10 } } },
    },
  });

  test.each([
    ["anthropic/claude-sonnet-4-6", "anthropic/claude-sonnet-4-6", 200_000, 3],
    ["Anthropic:claude-sonnet-4-6", "anthropic/claude-sonnet-4-6", 200_000, 3],
    ["ours/small", "ours/small", 4_096, 1],
    ["ours/org/large:free", "ours/org/large:free", undefined, undefined],
    // Names that every object has by itself say nothing of a model.
    ["ours/constructor", "ours/constructor", undefined, undefined],
    ["ours/__proto__", "ours/__proto__", undefined, undefined],
    ["Mine/m", "mine/m", undefined, undefined],
    ["openai/gpt-4o-2024-08-06", "openai/gpt-4o-2024-08-06", 128_000, 2.5],
    ["openai/gpt-4o-audio-preview", "openai/gpt-4o-audio-preview", 128_000, undefined],
    ["openai/gpt-4.1-mini", "openai/gpt-4.1-mini", 1_000_000, 0.4],
    ["openai/gpt-4.1-nano", "openai/gpt-4.1-nano", 1_000_000, undefined],
    ["offline/guide", "offline/guide", undefined, 0],
  ])("%s is %s, with what is known of it", async (text, ...known) => {
    const resolved = await resolve(text);
    expect([resolved.name, resolved.contextWindowTokens, resolved.price?.input]).toEqual(known);
  });

  test.each([
    ["claude", "invalid_request", "does not name a model"],
    ["constructor/m", "invalid_request", "provider"],
    ["unknown/x", "invalid_request", "no provider"],
    ["offline/other", "invalid_request", "no model"],
    ["google/gemini-2.5-pro", "unavailable", "no key"],
    ["openrouter/x", "unavailable", "no key"],
  ])("%s is refused: %s, %s", async (text, code, message) => {
    await expect(resolve(text)).rejects.toMatchObject({ code, message: expect.stringContaining(message) });
  });
});

describe("the repair of a typed answer keeps the tools in the prompt where the provider allows it", () => {
  const result = z.object({ sum: z.int() });
  const inspect = { name: "look", description: "Looks.", input: { type: "object" }, execute: () => "" };
  async function repaired(model: string): Promise<readonly Readonly<Record<string, unknown>>[]> {
    server.script([{ text: "seven" }, { text: '{"sum":7}' }]);
    const resolveModel = createModelResolver({ env: {}, providers: server.providers });
    const agent = createTestAgent(createScriptedModel([]), {}, { resolveModel });
    const answer = await agent.session().prompt("x", { result, tools: [inspect], model });
    expect(answer.result).toEqual({ sum: 7 });
    return server.requests.slice(-2) as readonly Readonly<Record<string, unknown>>[];
  }

  test("anthropic is offered them, may not call them, and is held to the schema", async () => {
    const [first, repair] = await repaired("anthropic/claude-sonnet-4-6");
    expect(repair?.tools).toEqual(first?.tools);
    expect(repair?.system).toEqual(first?.system);
    expect(repair).toMatchObject({
      tool_choice: { type: "none" },
      output_config: { format: { type: "json_schema" } },
    });
  });

  test("google makes JSON without tools only", async () => {
    const [first, repair] = await repaired("google/gemini-2.5-pro");
    expect(first).toHaveProperty("tools");
    expect(repair).not.toHaveProperty("tools");
    expect(repair).toMatchObject({ generationConfig: { responseMimeType: "application/json" } });
  });
});

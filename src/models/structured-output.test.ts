import { describe, expect, test } from "vitest";
import { z } from "zod";
import type { Agent } from "../agents/harness.ts";
import { createJsonValidator } from "../app/runtime/validate-json.ts";
import { forTests } from "../testing/for-tests.ts";
import { startProviderServer } from "../testing/provider-server/provider-server.ts";
import { createTestAgent } from "../testing/test-runtime.ts";
import { createModelResolver } from "./create-model-resolver.ts";
import { createOfflineGuide } from "./offline/offline-guide.ts";
import type { ProviderConfigs } from "./provider-config.ts";

const server = forTests(startProviderServer, ({ close }) => close());

const Price = z.object({ cents: z.number() });
const Named = z.object({ cents: z.number(), name: z.string().optional() });
const json = '{"cents": 5}';

function agentOf(provider: string, over: ProviderConfigs = {}): Agent {
  const providers = { ...server.providers, ...over };
  const resolveModel = createModelResolver({ env: {}, providers });
  return createTestAgent(
    createOfflineGuide(),
    { model: `${provider}/m` },
    { resolveModel, validateJson: createJsonValidator() },
  );
}

/** The request that kit sent, as far as these tests look at it. */
function sent(index = 0): Readonly<Record<string, unknown>> {
  return server.requests[index] as Record<string, unknown>;
}

describe("a provider that makes JSON of a schema beside tools", () => {
  const strictFormat = {
    type: "json_schema",
    strict: true,
    name: "result",
    schema: {
      type: "object",
      properties: { cents: { type: "number" } },
      required: ["cents"],
      additionalProperties: false,
    },
  };

  test("is given the schema, and the prompt need not repeat it", async () => {
    server.script([{ text: json }]);
    const { result } = await agentOf("openai").session().prompt("price?", { result: Price });
    expect(result).toEqual({ cents: 5 });
    expect(sent()).toMatchObject({ text: { format: strictFormat } });
    expect(sent().tools).not.toEqual([]);
    expect(JSON.stringify(sent().input)).not.toContain("JSON Schema");
  });

  test("is given a schema with optional fields as it is, and told not to enforce it to the letter", async () => {
    server.script([{ text: '{"cents": 5, "name": "tea"}' }]);
    const { result } = await agentOf("openai").session().prompt("price?", { result: Named });
    expect(result).toEqual({ cents: 5, name: "tea" });
    expect(sent()).toMatchObject({ text: { format: { strict: false, schema: { required: ["cents"] } } } });
  });

  test("is given the schema of a skill too", async () => {
    server.script([{ text: json }]);
    const outputSchema = { type: "object", properties: { cents: { type: "integer" } }, required: ["cents"] };
    const skill = { name: "price", description: "", instructions: "Say the price.", outputSchema };
    const { result } = await agentOf("openai").session().skill(skill);
    expect(result).toEqual({ cents: 5 });
    expect(sent()).toMatchObject({
      text: { format: { schema: { properties: { cents: { type: "integer" } } } } },
    });
  });

  test("keeps its tools: calls first, the result at the end, and a repair with the same schema", async () => {
    server.script([
      { toolCall: { id: "c1", name: "exists", args: '{"path": "a"}' } },
      { text: '{"cents": "five"}' },
      { text: json },
    ]);
    expect((await agentOf("openai").session().prompt("price?", { result: Price })).result).toEqual({
      cents: 5,
    });
    for (const index of [0, 1, 2]) expect(sent(index)).toMatchObject({ text: { format: strictFormat } });
  });

  test("that refuses the schema all the same is asked in words, once for all", async () => {
    server.script([
      { status: 400, message: "Invalid schema for response_format" },
      { text: "It is five." },
      { text: `\`\`\`json\n${json}\n\`\`\`` },
    ]);
    const session = agentOf("openai").session();
    expect((await session.prompt("price?", { result: Price })).result).toEqual({ cents: 5 });
    for (const index of [1, 2]) expect(sent(index).text).toBeUndefined();
    expect(JSON.stringify(sent(1).input)).toContain("JSON Schema");
  });

  test("is not asked for it again where it fails for another reason", async () => {
    server.script([{ status: 401 }]);
    const prompt = agentOf("openai").session().prompt("price?", { result: Price });
    await expect(prompt).rejects.toMatchObject({ code: "model_error" });
    expect(server.requests).toHaveLength(1);
  });

  test("takes no list at the root: that is asked for in words", async () => {
    server.script([{ text: "[1, 2]" }]);
    const { result } = await agentOf("openai")
      .session()
      .prompt("prices?", { result: z.array(z.number()) });
    expect(result).toEqual([1, 2]);
    expect(sent().text).toBeUndefined();
  });

  test("may be an endpoint of one's own, when the configuration says that it can", async () => {
    const { local = {} } = server.providers;
    server.script([{ text: json }, { text: json }]);
    const able = { local: { ...local, structured_output: true } };
    expect((await agentOf("local", able).session().prompt("price?", { result: Price })).result).toEqual({
      cents: 5,
    });
    expect(sent()).toMatchObject({ response_format: { type: "json_schema", json_schema: { strict: true } } });
    await agentOf("local").session().prompt("price?", { result: Price });
    expect(sent(1)).not.toHaveProperty("response_format");
    expect(JSON.stringify(sent(1).messages)).toContain("JSON Schema");
  });
});

describe("a provider that makes JSON of a schema only without tools", () => {
  test("is asked in words while tools are offered, and held to the schema when it has to repair", async () => {
    server.script([{ text: "Five cents." }, { text: json }]);
    const session = agentOf("google").session();
    expect((await session.prompt("price?", { result: Price })).result).toEqual({ cents: 5 });
    expect(sent(0).generationConfig).not.toHaveProperty("responseMimeType");
    expect(sent(0)).toHaveProperty("tools");
    expect(sent(1)).toMatchObject({
      generationConfig: {
        responseMimeType: "application/json",
        responseJsonSchema: { properties: { cents: { type: "number" } } },
      },
    });
    expect(sent(1)).not.toHaveProperty("tools");
  });

  test("keeps its tools for the repair where the history has calls of them", async () => {
    server.script([
      { toolCall: { id: "c1", name: "exists", args: '{"path": "a"}' } },
      { text: "Five cents." },
      { text: json },
    ]);
    expect((await agentOf("anthropic").session().prompt("price?", { result: Price })).result).toEqual({
      cents: 5,
    });
    expect(sent(2)).toHaveProperty("tools");
    expect(JSON.stringify(sent(2).tools)).toContain('"exists"');
  });

  test("may make it by a tool of its own, whose call is the answer", async () => {
    server.script([{ text: "Five cents." }, { toolCall: { id: "j1", name: "json", args: json } }]);
    const { result } = await agentOf("anthropic").session().prompt("price?", { result: Price });
    expect(result).toEqual({ cents: 5 });
    expect(sent(1)).toMatchObject({ tools: [{ name: "json" }] });
  });
});

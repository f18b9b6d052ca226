import { expect, test } from "vitest";
import { createJsonValidator } from "../app/runtime/validate-json.ts";
import type { KitEvent } from "../protocol/event.ts";
import { forTests } from "../testing/for-tests.ts";
import { startProviderServer } from "../testing/provider-server/provider-server.ts";
import { createScriptedModel } from "../testing/scripted-model.ts";
import { createTestAgent } from "../testing/test-runtime.ts";
import { createModelResolver } from "./create-model-resolver.ts";
import type { ProviderConfigs } from "./provider-config.ts";

const server = forTests(startProviderServer, ({ close }) => close());

interface Sent {
  readonly model: string;
  readonly [field: string]: unknown;
}

/** The bodies of the requests of two prompts, the first of which calls a tool. */
async function sent(model: string, config: ProviderConfigs = {}, id = "1"): Promise<readonly Sent[]> {
  const call = { id: "c1", name: "look", args: "{}" };
  server.script([{ toolCall: call }, { text: "found" }, { text: "ok" }]);
  const providers = { ...server.providers, openrouter: server.providers.local ?? {}, ...config };
  const resolveModel = createModelResolver({ env: {}, providers });
  const tools = ["see", "look"].map((name) => ({
    name,
    description: name,
    input: { type: "object" },
    execute: () => "seen",
  }));
  const profile = { model, instructions: "Look first.", tools };
  const world = { resolveModel, validateJson: createJsonValidator(), id };
  const session = createTestAgent(createScriptedModel([]), profile, world).session();
  await session.prompt("one");
  await session.prompt("two");
  return server.requests as readonly Sent[];
}

/** Where the body has marks, as paths: `tools.3`, `messages.0.content.0`. */
function marks(body: unknown, path = ""): readonly string[] {
  if (typeof body !== "object" || body === null) return [];
  return Object.entries(body).flatMap(([key, value]) =>
    key === "cache_control" ? [path.slice(1)] : marks(value, `${path}.${key}`),
  );
}

test("Anthropic is told to keep the tools, the system prompt and the newest messages, four places at most", async () => {
  const [first, second, third] = await sent("anthropic/claude-sonnet-4-6");
  const last = `tools.${Object.keys(first?.tools ?? {}).length - 1}`;
  expect(marks(first).toSorted()).toEqual(["messages.0.content.0", "system.0", last]);
  // The end of the first prompt, where its cache was written, and the end of this one.
  expect(marks(second).toSorted()).toEqual([
    "messages.0.content.0",
    "messages.2.content.0",
    "system.0",
    last,
  ]);
  expect(marks(third).toSorted()).toEqual(["messages.2.content.0", "messages.4.content.0", "system.0", last]);
});

test("OpenAI is given a key that is the session's own and names no person", async () => {
  const keys = (await sent("openai/gpt-5.1", {}, "ada@example.com")).map((body) => body.prompt_cache_key);
  expect(new Set(keys).size).toBe(1);
  expect(keys[0]).toMatch(/^kit_[0-9a-f]{28}$/);
  expect((await sent("openai/gpt-5.1", {}, "bob@example.com"))[0]?.prompt_cache_key).not.toBe(keys[0]);
});

test("the key stands beside what else OpenAI is told of a call", async () => {
  server.script([{ text: '{"cents": 5}' }]);
  const resolveModel = createModelResolver({ env: {}, providers: server.providers });
  const session = createTestAgent(createScriptedModel([]), { model: "openai/m" }, { resolveModel }).session();
  const result = {
    type: "object",
    properties: { cents: { type: "number" }, name: { type: "string" } },
    required: ["cents"],
  };
  await session.prompt("price?", { result });
  expect(server.requests[0]).toMatchObject({
    prompt_cache_key: expect.any(String),
    text: { format: { strict: false } },
  });
});

test("OpenRouter is asked to mark prompts of Anthropic's models, and of no others", async () => {
  const [claude] = await sent("openrouter/anthropic/claude-sonnet-4.5");
  expect(marks(claude)).toEqual([""]);
  const [other] = await sent("openrouter/meta-llama/llama-4");
  expect(marks(other)).toEqual([]);
});

test.each(["google/gemini-2.5-pro", "local/m"])(
  "%s caches by itself, and is sent nothing about it",
  async (model) => {
    for (const body of await sent(model)) expect(JSON.stringify(body)).not.toMatch(/cache/i);
  },
);

test.each(["anthropic", "openai"])(
  "with prompt_cache = false, %s is sent nothing about it",
  async (provider) => {
    const config = { [provider]: { ...server.providers[provider], prompt_cache: false } };
    for (const body of await sent(`${provider}/m`, config))
      expect(JSON.stringify(body)).not.toMatch(/cache/i);
  },
);

test.each([
  ["anthropic/claude-sonnet-4-6", 3 * 0.3 + 8 * 3],
  ["openai/gpt-4o", 3 * 1.25 + 8 * 2.5],
  ["google/gemini-2.5-flash", 3 * 0.03 + 8 * 0.3],
])(
  "what %s reads from its cache costs what it costs there, in events and results",
  async (model, millionths) => {
    server.script([{ text: "ok" }]);
    const events: KitEvent[] = [];
    const resolveModel = createModelResolver({ env: {}, providers: server.providers });
    const profile = { model, onEvent: (event: KitEvent) => events.push(event) };
    const { usage } = await createTestAgent(createScriptedModel([]), profile, { resolveModel })
      .session()
      .prompt("x");
    const { cost } = usage;
    expect(usage).toMatchObject({ input: 11, cache_read: 3 });
    expect((cost.input ?? 0) + (cost.cache_read ?? 0)).toBeCloseTo(millionths / 1e6, 12);
    const turn = events.find((event) => event.type === "turn");
    expect(turn).toMatchObject({ usage: { cache_read: 3, cost } });
  },
);

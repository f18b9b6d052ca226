import { expect, test } from "vitest";
import type { ResolvedModel } from "../../models/contract.ts";
import { createScriptedModel, type ScriptedModel } from "../../testing/scripted-model.ts";
import { createTestAgent } from "../../testing/test-runtime.ts";
import { defineCommand, defineTool } from "../define/tool.ts";

const lookTool = defineTool({
  name: "look",
  description: "",
  input: { type: "object" },
  execute: () => "seen",
});

/** A model that calls the tool in every turn, so that only a budget ends the operation. */
function tireless(): ScriptedModel {
  return createScriptedModel(() => ({ toolCalls: [{ name: "look" }], usage: { input: 90, output: 10 } }));
}

const answer = () => createScriptedModel(() => ({ text: "ok", usage: { input: 1_000, output: 500 } }));

test("the model gets images as bytes or as a URL, and the history keeps them", async () => {
  const model = answer();
  const session = createTestAgent(model).session();
  await session.prompt("What is this?", {
    images: [
      { data: new Uint8Array([1, 2, 3]), media_type: "image/png" },
      { url: "https://example.com/a.jpg", media_type: "image/jpeg" },
    ],
  });
  const files = model.calls[0]?.prompt[1]?.content;
  expect(files).toMatchObject([
    { type: "text" },
    { type: "file", mediaType: "image/png" },
    { type: "file", mediaType: "image/jpeg" },
  ]);
  expect(JSON.stringify(files)).toContain("AQID");
  expect((await session.history())[0]).toMatchObject({
    content: [{ type: "text" }, { type: "image", data: "AQID" }, { type: "image" }],
  });
  await expect(
    session.prompt("And this?", { images: [{ url: "http://example.com/a.png" }] }),
  ).rejects.toThrow("https://");
});

test.each([
  ["off", "none"],
  ["minimal", "minimal"],
  ["low", "low"],
  ["medium", "medium"],
  ["high", "high"],
  ["xhigh", "xhigh"],
] as const)("the thinking level %s becomes the provider's %s", async (thinkingLevel, reasoning) => {
  const model = answer();
  await createTestAgent(model, { thinkingLevel: "low" }).session().prompt("x", { thinkingLevel });
  expect(model.calls[0]?.reasoning).toBe(reasoning);
});

test("the model of the call overrides the role's, and the role's the agent's, for prompts and skills", async () => {
  const asked: string[] = [];
  const messages: string[] = [];
  const model = createScriptedModel(({ prompt }) => {
    messages.push(JSON.stringify(prompt[0]));
    return { text: "ok" };
  });
  const resolveModel = async (name: string): Promise<ResolvedModel> => {
    asked.push(name);
    return { name, model, structuredOutput: "never" };
  };
  const role = { name: "careful", description: "", instructions: "Check twice.", model: "a/role" };
  const skill = { name: "triage", description: "", instructions: "Sort." };
  const agent = createTestAgent(model, { model: "a/agent", roles: [role] }, { resolveModel });
  const session = agent.session();
  await session.prompt("x");
  await session.prompt("x", { role: "careful" });
  await session.prompt("x", { role: "careful", model: "a/call" });
  const { model: used } = await session.skill(skill, { model: "a/skill-call" });
  expect(asked).toEqual(["a/agent", "a/role", "a/call", "a/skill-call"]);
  expect(used.id).toBe("a/skill-call");
  expect(messages.map((system) => system.includes("Check twice."))).toEqual([false, true, true, false]);
});

test("tools and commands of a call exist for that call only", async () => {
  const model = answer();
  const session = createTestAgent(model).session();
  await session.prompt("x", { tools: [lookTool], commands: [defineCommand("deploy", () => "done")] });
  await session.prompt("x");
  const offered = model.calls.map(({ tools }) => (tools ?? []).map(({ name }) => name));
  expect(offered[0]).toEqual(expect.arrayContaining(["look", "deploy"]));
  expect(offered[1]).not.toContain("look");
  expect(offered[1]).not.toContain("deploy");
});

test("a budget of turns, tokens or money ends an operation, and the next one continues the conversation", async () => {
  const price = { input: 1_000, output: 1_000 };
  const model = tireless();
  const resolveModel = async (name: string): Promise<ResolvedModel> => ({
    name,
    model,
    price,
    structuredOutput: "never",
  });
  const session = createTestAgent(
    model,
    { tools: [lookTool], budget: { maxTurns: 4 } },
    { resolveModel },
  ).session();
  const exceeded = { code: "budget_exceeded" };
  await expect(session.prompt("x")).rejects.toMatchObject(exceeded);
  expect(model.calls).toHaveLength(4);
  await expect(session.prompt("x", { budget: { maxTokens: 250 } })).rejects.toMatchObject(exceeded);
  expect(model.calls).toHaveLength(7);
  // 100 tokens at 1,000 dollars per million are 10 cents.
  await expect(session.prompt("x", { budget: { maxCost: 0.15 } })).rejects.toMatchObject(exceeded);
  expect(model.calls).toHaveLength(9);
  const history = await session.history();
  expect(history.at(-1)?.role).toBe("tool");
});

test("the cost of a task counts toward the operation that started it", async () => {
  const model = createScriptedModel((call) =>
    JSON.stringify(call.prompt).includes("Count.")
      ? { text: "three", usage: { input: 900, output: 100 } }
      : { toolCalls: [{ name: "task", input: { prompt: "Count." } }], usage: { input: 10, output: 10 } },
  );
  const session = createTestAgent(model).session();
  await expect(session.prompt("x", { budget: { maxTokens: 1_000 } })).rejects.toMatchObject({
    code: "budget_exceeded",
  });
  expect(model.calls).toHaveLength(2);
});

test("the cost follows from the price of the tokens; without a price it is null and a money budget is refused", async () => {
  const model = answer();
  const resolve = (price?: ResolvedModel["price"]) => ({
    resolveModel: async (name: string): Promise<ResolvedModel> => ({
      name,
      model,
      structuredOutput: "never",
      ...(price === undefined ? {} : { price }),
    }),
  });
  const priced = createTestAgent(model, {}, resolve({ input: 2, output: 10 })).session();
  expect((await priced.prompt("x")).usage).toMatchObject({
    input: 1_000,
    output: 500,
    total_tokens: 1_500,
    cost: { input: 0.002, output: 0.005, total: 0.007 },
  });
  const unpriced = createTestAgent(model, { tools: [lookTool] }, resolve()).session();
  expect((await unpriced.prompt("x")).usage.cost.total).toBeNull();
  const busy = tireless();
  const dear = createTestAgent(
    busy,
    { tools: [lookTool], budget: { maxCost: 1_000 } },
    { resolveModel: async (name) => ({ name, model: busy, structuredOutput: "never" }) },
  ).session();
  await expect(dear.prompt("x")).rejects.toMatchObject({
    code: "budget_exceeded",
    message: expect.stringContaining("price of this model is unknown"),
  });
  expect(busy.calls).toHaveLength(1);
});

test("a prompt without text, an unknown role or skill, and an unset secret are refused", async () => {
  const model = answer();
  const session = createTestAgent(model).session();
  const refused = { code: "invalid_request" };
  await expect(session.prompt("  ")).rejects.toMatchObject(refused);
  await expect(session.prompt("x", { role: "unknown" })).rejects.toMatchObject(refused);
  await expect(session.prompt("x", { secrets: ["NOT_SET"] })).rejects.toMatchObject(refused);
  await expect(session.skill("nothing")).rejects.toMatchObject({
    ...refused,
    hint: expect.stringContaining("kit skill new"),
  });
  expect(model.calls).toHaveLength(0);
  expect(await session.history()).toEqual([]);
});

test("a history that the caller gives begins a new session, and one that has begun refuses it", async () => {
  const model = answer();
  const session = createTestAgent(model).session();
  const history = [
    { role: "user", content: "I am Alice." },
    { role: "assistant", content: "Hello Alice." },
  ] as const;
  await session.prompt("Who am I?", { history });
  expect(model.calls[0]?.prompt.slice(1).map(({ role, content }) => [role, JSON.stringify(content)])).toEqual(
    [
      ["user", expect.stringContaining("I am Alice.")],
      ["assistant", expect.stringContaining("Hello Alice.")],
      ["user", expect.stringContaining("Who am I?")],
    ],
  );
  expect((await session.history()).map(({ role }) => role)).toEqual([
    "user",
    "assistant",
    "user",
    "assistant",
  ]);
  await expect(session.prompt("And now?", { history })).rejects.toMatchObject({ code: "conflict" });
  await expect(session.prompt("x", { history: [{ role: "system", content: "x" } as never] })).rejects.toThrow(
    "history",
  );
});

import { expect, test } from "vitest";
import { defineTool } from "../agents/define/tool.ts";
import { createScriptedModel } from "./scripted-model.ts";
import { createTestAgent } from "./test-runtime.ts";

test("a test's agent holds arguments and results to their JSON Schema, as any agent does", async () => {
  const schema = { type: "object", properties: { cents: { type: "integer" } }, required: ["cents"] };
  const pay = defineTool({ name: "pay", description: "Pays.", input: schema, execute: () => "paid" });
  const model = createScriptedModel([
    { toolCalls: [{ name: "pay", input: { cents: "five" } }] },
    { text: '{"euros": 5}' },
    { text: '{"cents": 5}' },
  ]);
  const session = createTestAgent(model, { tools: [pay] }).session();
  const { result, messages } = await session.prompt("Pay.", { result: schema });
  expect(result).toEqual({ cents: 5 });
  expect(JSON.stringify(messages)).toContain("cents: must be integer, not string");
  expect(messages.some((message) => message.role === "user" && message.source === "repair")).toBe(true);
});

test("a model that is asked past the end of its script says so, once", async () => {
  const model = createScriptedModel([{ text: "one" }]);
  const session = createTestAgent(model).session();
  await session.prompt("first");
  await expect(session.prompt("second")).rejects.toMatchObject({
    message: "The script has 1 turns, and was asked for turn 2.",
  });
  expect(model.calls).toHaveLength(2);
});

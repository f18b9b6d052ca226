import { expect, test } from "vitest";
import { z } from "zod";
import { defineTool } from "../agents/define/tool.ts";
import { createScriptedModel } from "./scripted-model.ts";
import { createTestAgent } from "./test-runtime.ts";

test("a test's agent validates arguments and results by their JSON Schema, like any agent", async () => {
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

test("a model that is called past the end of its script fails once, with an error that says so", async () => {
  const model = createScriptedModel([{ text: "one" }]);
  const session = createTestAgent(model).session();
  await session.prompt("first");
  await expect(session.prompt("second")).rejects.toMatchObject({
    message: "The script has 1 turns, and the test asked for turn 2.",
  });
  expect(model.calls).toHaveLength(2);
});

test.each([
  [{ instuctions: "Be brief." }, "`instuctions` is not a field of a profile; did you mean instructions?"],
  [{ modelSettings: { temperature: "0" } }, "`modelSettings.temperature` must be a number, not a text."],
  [
    { modelSettings: { toolChoice: { type: "tool", toolName: "pay" } } },
    '`modelSettings.toolChoice` must be auto, none, required or { tool: "<name>" }',
  ],
  [{ output: { cents: z.number() } }, "not an object of schemas; wrap it: z.object({ … })"],
  [{ output: { type: "objekt" } }, "`output` is not a valid JSON Schema: `type` must be one of"],
  [{ output: { properties: { cents: { $ref: "#/$defs/cents" } } } }, "`properties.cents.$ref` refers to"],
  [
    { tools: [{ name: "t", description: "", input: { required: "x" }, execute: () => "" }] },
    "`tools[0].input` is not a valid JSON Schema: `required` must be a list of texts",
  ],
  [
    { commands: [{ name: "c", action: () => "", input: { properties: 3 } }] },
    "`commands[0].input` is not a valid JSON Schema: `properties` must be an object of schemas",
  ],
  [
    { skills: [{ name: "s", description: "", instructions: "", outputSchema: { type: "strin" } }] },
    "`skills[0].outputSchema` is not a valid JSON Schema: `type` must be one of",
  ],
  [{ builtInTools: ["raed"] }, "did you mean read?"],
])("a test's agent refuses a profile that an application refuses: %j", (profile, message) => {
  expect(() => createTestAgent(createScriptedModel([]), profile as never)).toThrow(message);
});

import fc from "fast-check";
import { expect, expectTypeOf, test } from "vitest";
import { z } from "zod";
import type { StandardSchemaV1 } from "../../base/standard-schema.ts";
import { createScriptedModel } from "../../testing/scripted-model.ts";
import { createTestAgent } from "../../testing/test-runtime.ts";
import { defineTool } from "../define/tool.ts";
import { findJson } from "./typed-output.ts";

const Price = z.object({ cents: z.number() });

test.each([
  ["bare JSON", '{"cents": 5}'],
  ["a fenced block among prose", 'Here it is:\n```json\n{"cents": 5}\n```\nAnything else?'],
  ["an object inside a sentence", 'The result is {"cents": 5}, as asked.'],
  ["the last of several fences", 'First\n```json\n{"draft": true}\n```\nthen\n```json\n{"cents": 5}\n```'],
])("%s is found and validated", async (_name, text) => {
  const session = createTestAgent(createScriptedModel([{ text }])).session();
  const { result } = await session.prompt("price?", { result: Price });
  expect(result).toEqual({ cents: 5 });
});

/** As libraries write them that know no JSON Schema: valibot's, for one. */
const plainSchema: StandardSchemaV1<unknown, number> = {
  "~standard": {
    version: 1,
    vendor: "plain",
    validate: (value) =>
      typeof value === "number" ? { value } : { issues: [{ message: "a number is wanted" }] },
  },
};

test("a schema that cannot say its shape checks results all the same, and is no input of a tool", async () => {
  const model = createScriptedModel([{ text: '"five"' }, { text: "5" }]);
  const session = createTestAgent(model).session();
  expect((await session.prompt("price?", { result: plainSchema })).result).toBe(5);
  expect(JSON.stringify(await session.history())).toContain("a number is wanted");
  const tool = defineTool({ name: "pay", description: "", input: plainSchema, execute: () => "" });
  const refused = createTestAgent(createScriptedModel([]), { tools: [tool] })
    .session()
    .prompt("go");
  await expect(refused).rejects.toMatchObject({
    code: "invalid_request",
    message: expect.stringContaining('the tool "pay"'),
    hint: expect.stringContaining("toStandardJsonSchema"),
  });
});

test("an answer that does not fit goes back with what is wrong, and the repaired one counts", async () => {
  const model = createScriptedModel([{ text: '{"cents": "five"}' }, { text: '{"cents": 5}' }]);
  const session = createTestAgent(model).session();
  expect((await session.prompt("price?", { result: Price })).result).toEqual({ cents: 5 });
  const history = await session.history();
  expect(history[2]).toMatchObject({
    source: "repair",
    content: [{ text: expect.stringContaining("cents") }],
  });
});

test("a result has the type of its schema, and none without a schema", async () => {
  const session = createTestAgent(createScriptedModel(() => ({ text: '{"cents": 5}' }))).session();
  const { result } = await session.prompt("price?", { result: Price });
  expectTypeOf(result).toEqualTypeOf<z.infer<typeof Price>>();
  const shape = { type: "object", required: ["cents"] };
  const { result: ofJson } = await session.prompt("price?", { result: shape });
  expectTypeOf(ofJson).toEqualTypeOf<unknown>();
  const { result: said } = await session.prompt<{ cents: number }>("price?", { result: shape });
  expect([result.cents, ofJson, said.cents]).toEqual([5, { cents: 5 }, 5]);
});

test("after the last attempt the error has every answer and its issues", async () => {
  const model = createScriptedModel(() => ({ text: "I would rather not." }));
  const session = createTestAgent(model, { typedRetries: 1 }).session();
  await expect(session.prompt("price?", { result: Price })).rejects.toMatchObject({
    code: "typed_output",
    attempts: [{ issues: ["the answer holds no JSON"] }, { text: "I would rather not." }],
  });
});

test("by default an answer is repaired three times: the fourth may fit, a fifth is not asked for", async () => {
  const answers = (fitting: number) =>
    createScriptedModel((_, index) => ({ text: index === fitting ? '{"cents": 5}' : "no" }));
  const fourth = createTestAgent(answers(3)).session();
  expect((await fourth.prompt("price?", { result: Price })).result).toEqual({ cents: 5 });
  const fifth = answers(4);
  const refused = createTestAgent(fifth).session().prompt("price?", { result: Price });
  await expect(refused).rejects.toMatchObject({ code: "typed_output" });
  expect(fifth.calls).toHaveLength(4);
});

test("any JSON value in a fence among any prose is found", () => {
  const prose = fc.string().filter((text) => !text.includes("`"));
  fc.assert(
    fc.property(prose, fc.jsonValue(), prose, (before, value, after) => {
      const text = `${before}\n\`\`\`json\n${JSON.stringify(value)}\n\`\`\`\n${after}`;
      expect(findJson(text)).toContainEqual(JSON.parse(JSON.stringify(value)));
    }),
  );
});

test("a megabyte of open braces is given up in linear time", () => {
  expect(findJson("{".repeat(1_000_000))).toEqual([]);
});

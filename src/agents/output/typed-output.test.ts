import type { StandardSchemaV1 } from "@standard-schema/spec";
import fc from "fast-check";
import { expect, expectTypeOf, test } from "vitest";
import { z } from "zod";
import { createScriptedModel, type Script } from "../../testing/scripted-model.ts";
import { createTestAgent } from "../../testing/test-runtime.ts";
import { defineTool } from "../define/tool.ts";
import { createSecretMask } from "../secrets.ts";
import type { Session } from "../session/session.ts";
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

/** A schema of a library without JSON Schema support, such as valibot. */
const plainSchema: StandardSchemaV1<unknown, number> = {
  "~standard": {
    version: 1,
    vendor: "plain",
    validate: (value) =>
      typeof value === "number" ? { value } : { issues: [{ message: "a number is wanted" }] },
  },
};

test("a schema without a JSON Schema validates results, and is refused as a tool's input", async () => {
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

test("an invalid JSON Schema is refused before the model is asked, and by defineTool", async () => {
  // The model has no answers: a call of it would fail otherwise.
  const asked = createTestAgent(createScriptedModel([]))
    .session()
    .prompt("price?", { result: { type: "object", properties: { cents: "number" } } });
  await expect(asked).rejects.toMatchObject({
    code: "invalid_request",
    message: expect.stringContaining(
      "`result` is not a valid JSON Schema: `properties.cents` must be a schema",
    ),
  });
  const toolOf = (input: Readonly<Record<string, unknown>>) => () =>
    defineTool({ name: "pay", description: "", input, execute: () => "" });
  expect(toolOf({ type: "objekt" })).toThrow(
    'The tool "pay": `input` is not a valid JSON Schema: `type` must',
  );
  expect(toolOf({ type: "string" })).toThrow("must be the schema of an object, the tool's arguments");
  const tool = defineTool({ name: "pay", description: "", input: z.string(), execute: () => "" });
  const session = createTestAgent(createScriptedModel([]), { tools: [tool] }).session();
  await expect(session.prompt("go")).rejects.toMatchObject({
    code: "invalid_request",
    message: 'The schema of the tool "pay" must describe an object, not a string.',
  });
});

test("an invalid answer is sent back with its issues, and the repaired answer counts", async () => {
  const model = createScriptedModel([{ text: '{"cents": "five"}' }, { text: '{"cents": 5}' }]);
  const session = createTestAgent(model).session();
  expect((await session.prompt("price?", { result: Price })).result).toEqual({ cents: 5 });
  const history = await session.history();
  expect(history[2]).toMatchObject({
    source: "repair",
    content: [{ text: expect.stringContaining("cents") }],
  });
});

test("a result has the type of its schema, and is undefined without a schema", async () => {
  const session = createTestAgent(createScriptedModel(() => ({ text: '{"cents": 5}' }))).session();
  const { result } = await session.prompt("price?", { result: Price });
  expectTypeOf(result).toEqualTypeOf<z.infer<typeof Price>>();
  const shape = { type: "object", required: ["cents"] };
  const { result: ofJson } = await session.prompt("price?", { result: shape });
  expectTypeOf(ofJson).toEqualTypeOf<unknown>();
  const { result: said } = await session.prompt<{ cents: number }>("price?", { result: shape });
  expect([result.cents, ofJson, said.cents]).toEqual([5, { cents: 5 }, 5]);
});

test("after the last attempt, the error has every answer and its issues", async () => {
  const model = createScriptedModel(() => ({ text: "I would rather not." }));
  const session = createTestAgent(model, { typedRetries: 1 }).session();
  await expect(session.prompt("price?", { result: Price })).rejects.toMatchObject({
    code: "typed_output",
    attempts: [{ issues: ["the answer holds no JSON"] }, { text: "I would rather not." }],
  });
});

test("by default an answer is repaired three times: the fourth answer can match, a fifth is not requested", async () => {
  const answers = (fitting: number) =>
    createScriptedModel((_, index) => ({ text: index === fitting ? '{"cents": 5}' : "no" }));
  const fourth = createTestAgent(answers(3)).session();
  expect((await fourth.prompt("price?", { result: Price })).result).toEqual({ cents: 5 });
  const fifth = answers(4);
  const refused = createTestAgent(fifth).session().prompt("price?", { result: Price });
  await expect(refused).rejects.toMatchObject({ code: "typed_output" });
  expect(fifth.calls).toHaveLength(4);
});

test("any JSON value in a fence between any prose is found", () => {
  const prose = fc.string().filter((text) => !text.includes("`"));
  fc.assert(
    fc.property(prose, fc.jsonValue(), prose, (before, value, after) => {
      const text = `${before}\n\`\`\`json\n${JSON.stringify(value)}\n\`\`\`\n${after}`;
      expect(findJson(text)).toContainEqual(JSON.parse(JSON.stringify(value)));
    }),
  );
});

test("a megabyte of open braces is rejected in linear time", () => {
  expect(findJson("{".repeat(1_000_000))).toEqual([]);
});

const Trip = z.object({ city: z.string(), days: z.array(z.number()) });

async function partialsOf(
  script: Script,
  options: { readonly result?: typeof Trip; readonly env?: Readonly<Record<string, string>> } = {
    result: Trip,
  },
): Promise<unknown[]> {
  const mask = createSecretMask(Object.values(options.env ?? {}));
  const agent = createTestAgent(createScriptedModel(script), {}, { mask });
  const stream = agent
    .session()
    .stream("Where to?", options.result === undefined ? {} : { result: options.result });
  const values: unknown[] = [];
  for await (const value of stream.partialResults()) values.push(value);
  await stream.result.catch(() => undefined);
  return values;
}

test("a typed result is streamed as it grows, and a prompt without a schema streams none", async () => {
  const deltas = ["Here:\n```json\n{", '"city": "Bo', 'nn", "da', 'ys": [1', "2, 3]}\n```"];
  expect(await partialsOf([{ deltas }])).toEqual([
    {},
    { city: "Bo" },
    { city: "Bonn" },
    { city: "Bonn", days: [1] },
    { city: "Bonn", days: [12, 3] },
  ]);
  expect(await partialsOf([{ deltas }], {})).toEqual([]);
});

test("a repaired or retried answer starts a new partial result", async () => {
  const whole = ['{"city": "Bonn"', ', "days": [1]}'];
  const wrong = { deltas: ['{"city": 1', "}"] };
  const value = [{ city: "Bonn" }, { city: "Bonn", days: [1] }];
  expect(await partialsOf([wrong, { deltas: whole }])).toEqual([{ city: 1 }, ...value]);
  const broken = { deltas: ['{"city": "Ro', 'me"'], error: new TypeError("fetch failed"), failAfter: 2 };
  expect((await partialsOf([broken, { deltas: whole }])).slice(-2)).toEqual(value);
});

test("partial results contain no secret, also when it arrives in parts", async () => {
  const env = { KEY: 'sk-"top"-secret' };
  const values = await partialsOf([{ deltas: ['{"city": "sk-', '\\"top\\"-se', 'cret", "days": []}'] }], {
    result: Trip,
    env,
  });
  expect(values.at(-1)).toEqual({ city: "[secret]", days: [] });
  expect(JSON.stringify(values)).not.toContain("top");
});

test("the type of partial results is a deep partial of the result", () => {
  const stream = (session: Session) => session.stream("Where to?", { result: Trip }).partialResults();
  expectTypeOf<ReturnType<typeof stream>>().toEqualTypeOf<
    AsyncIterable<{ readonly city?: string | undefined; readonly days?: readonly number[] | undefined }>
  >();
});

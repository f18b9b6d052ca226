import fc from "fast-check";
import { expect, test } from "vitest";
import { createJsonValidator } from "../../app/runtime/validate-json.ts";
import { processorMs } from "../../testing/processor-time.ts";
import { limits } from "../limits.ts";
import { vetSchema } from "./vet-schema.ts";

const validate = createJsonValidator({ isLenient: true });

async function accepts(schema: unknown, value: unknown): Promise<boolean> {
  const { checked } = vetSchema(schema);
  return (await validate(checked, value)).length === 0;
}

const object = (properties: unknown, keywords: object = {}): unknown => ({
  type: "object",
  properties,
  ...keywords,
});

test("an ordinary schema is passed on without unknown keywords", async () => {
  const schema = object(
    {
      title: { type: "string", minLength: 1, description: "The title." },
      tags: { type: "array", items: { type: "string" } },
    },
    {
      required: ["title"],
      additionalProperties: false,
      $schema: "http://json-schema.org/draft-07/schema#",
      "x-order": 1,
    },
  );
  const vetted = vetSchema(schema);
  expect(vetted.bounded).toEqual(
    object(
      {
        title: { type: "string", minLength: 1, description: "The title." },
        tags: { type: "array", items: { type: "string" } },
      },
      { required: ["title"], additionalProperties: false },
    ),
  );
  expect(await accepts(schema, { title: "a", tags: ["b"] })).toBe(true);
  for (const wrong of [{}, { title: "" }, { title: "a", more: 1 }, { title: "a", tags: [1] }]) {
    expect([wrong, await accepts(schema, wrong)]).toEqual([wrong, false]);
  }
});

test("a schema without a type or properties becomes an object schema", () => {
  expect(vetSchema({}).bounded).toEqual({ type: "object", properties: {} });
});

test("a root that providers refuse is described in words and still checked", async () => {
  const schema = object({ a: {}, b: {} }, { anyOf: [{ required: ["a"] }, { required: ["b"] }] });
  const vetted = vetSchema(schema);
  expect(vetted.bounded).toEqual(object({ a: {}, b: {} }));
  expect(vetted.alternatives).toEqual({ anyOf: [{ required: ["a"] }, { required: ["b"] }] });
  expect(await accepts(schema, { b: 1 })).toBe(true);
  expect(await accepts(schema, {})).toBe(false);
});

test("tuples of older drafts become `prefixItems`", async () => {
  const schema = object({
    at: { type: "array", items: [{ type: "number" }, { type: "string" }], additionalItems: false },
  });
  expect(vetSchema(schema).bounded).toEqual(
    object({ at: { type: "array", prefixItems: [{ type: "number" }, { type: "string" }], items: false } }),
  );
  expect(await accepts(schema, { at: [1, "m"] })).toBe(true);
  expect(await accepts(schema, { at: ["m", 1] })).toBe(false);
});

test("references inside a schema are followed, also to names with special characters", async () => {
  const schema = object(
    { a: { $ref: "#/$defs/id" }, b: { $ref: "#/definitions/a%20b" }, c: { $ref: "#/properties/a" } },
    { $defs: { id: { type: "integer" } }, definitions: { "a b": { type: "string" } } },
  );
  expect(await accepts(schema, { a: 1, b: "x", c: 2 })).toBe(true);
  expect(await accepts(schema, { a: "1" })).toBe(false);
  expect(await accepts(schema, { c: "1" })).toBe(false);
});

test("a schema that only refers to a definition becomes that definition", async () => {
  const input = object({ a: { type: "string" }, next: { $ref: "#/definitions/Input" } }, { required: ["a"] });
  const schema = { $ref: "#/definitions/Input", definitions: { Input: input }, $schema: "…" };
  expect(vetSchema(schema).bounded).toEqual({ ...(input as object), definitions: { Input: input } });
  expect(await accepts(schema, { a: "x" })).toBe(true);
  expect(await accepts(schema, {})).toBe(false);
  expect(() => vetSchema({ $ref: "#/definitions/None" })).toThrow("which does not exist in it");
  expect(vetSchema({ $ref: "#" }).bounded).toEqual(object({}));
});

test.each([
  [undefined, "is missing"],
  ["object", "no schema at its root"],
  [[], "no schema at its root"],
  [true, "is not an object"],
  [{ type: "string" }, "does not describe an object"],
  [object({ a: 7 }), 'no schema at "/properties/a"'],
  [object([]), 'wrong at "/properties"'],
  [object({ a: { type: "text" } }), 'wrong at "/properties/a/type"'],
  [object({ a: { type: ["string", "string"] } }), "wrong at"],
  [object({ a: { type: [] } }), "wrong at"],
  [object({ a: { enum: [] } }), "wrong at"],
  [object({ a: { enum: "x" } }), "wrong at"],
  [object({ a: { minLength: -1 } }), "wrong at"],
  [object({ a: { minimum: "1" } }), "wrong at"],
  [object({ a: { exclusiveMinimum: true } }), "wrong at"],
  [object({ a: { anyOf: [] } }), "wrong at"],
  [object({ a: { anyOf: {} } }), "wrong at"],
  [object({}, { required: "a" }), "wrong at"],
  [object({}, { required: [1] }), "wrong at"],
  [object({ a: { $ref: "#/$defs/none" } }), "which does not exist in it"],
  [object({ a: { $ref: "#/$defs/%" } }), "which does not exist in it"],
  [object({ a: { $ref: "file:///etc/passwd" } }), "outside the schema"],
  [object({ a: { $ref: 7 } }), "wrong at"],
  [object({ "a b": {} }), "whose name providers refuse"],
  [object({ ["x".repeat(65)]: {} }), "whose name providers refuse"],
  [JSON.parse('{"properties":{"__proto__":{}}}'), "__proto__"],
  [object({ a: { description: "d".repeat(limits.schemaChars) } }), "is longer than"],
  [object({ a: { enum: ["\ud800"] } }), "is not Unicode"],
])("%j is refused: its schema %s", (schema, message) => {
  expect(() => vetSchema(schema)).toThrow(message);
});

test("a schema of any depth is refused without a stack overflow", () => {
  for (const depth of [limits.schemaDepth + 1, 2_000, 200_000]) {
    let schema: unknown = { type: "string" };
    for (let level = 0; level < depth; level += 1) schema = { items: schema };
    expect(() => vetSchema(object({ a: schema }))).toThrow(/deeper than|longer than/);
    expect(() => vetSchema(object({ a: { default: schema } }))).toThrow(/wrong at|deeper than|longer than/);
  }
});

test("descriptions in a schema are cleaned and shortened", () => {
  const { bounded: output } = vetSchema(
    object({ a: { description: `a\u202e\u0000b${"c".repeat(10_000)}` } }),
  );
  const text = (output as { properties: { a: { description: string } } }).properties.a.description;
  expect(text.startsWith("abccc")).toBe(true);
  expect(text.length).toBe(limits.descriptionChars + 1);
});

test("patterns are shown to the model, and enforced in linear time", async () => {
  const schema = object({ a: { type: "string", pattern: "^(a+)+$", format: "email" } }, { required: ["a"] });
  expect(vetSchema(schema).bounded).toEqual(schema);
  const started = processorMs();
  expect(await accepts(schema, { a: `${"a".repeat(10_000)}!` })).toBe(false);
  expect(await accepts(schema, { a: "a".repeat(10_000) })).toBe(true);
  // Too long for the pattern, so the server has to check it.
  expect(await accepts(schema, { a: `${"a".repeat(9_000_000)}!` })).toBe(true);
  expect(processorMs() - started).toBeLessThan(2_000);
  expect(await accepts(schema, {})).toBe(false);
});

test.each([
  ["^\\d{4}\\-\\d{2}$", "2026-11", "2026"],
  ["^[\\w\\.\\-]+\\@x$", "a.b@x", "a.b"],
  ["^\\p{Lu}+$", "\u00c9", "\u00e9"],
])(
  "the pattern %s, which one mode of JavaScript refuses, is shown and enforced",
  async (pattern, right, wrong) => {
    const schema = object({ a: { pattern } });
    expect(vetSchema(schema).bounded).toEqual(schema);
    expect([await accepts(schema, { a: right }), await accepts(schema, { a: wrong })]).toEqual([true, false]);
  },
);

test("a pattern of another language is not shown, but enforced if RE2 supports it", async () => {
  const schema = object({ a: { pattern: "^(?i)(?P<x>ab)$" }, b: { pattern: "(" }, c: { pattern: 7 } });
  expect(vetSchema(schema).bounded).toEqual(object({ a: {}, b: {}, c: {} }));
  expect([await accepts(schema, { a: "AB" }), await accepts(schema, { a: "c" })]).toEqual([true, false]);
  expect(await accepts(schema, { b: "anything", c: "anything" })).toBe(true);
});

test.each(["^(?=a)", "(?!a)", "(?<=a)b", "(?<!a)b", "(a)\\1", "(?<n>a)\\k<n>"])(
  "the pattern %s is shown, reported and left to the server; the rest is checked",
  async (pattern) => {
    const schema = object({ a: { pattern, maxLength: 3 } }, { required: ["a"] });
    const vetted = vetSchema(schema);
    expect([vetted.bounded, vetted.leftToServer]).toEqual([schema, [pattern]]);
    expect(await accepts(schema, { a: "zz" })).toBe(true);
    expect(await accepts(schema, { a: "zzzz" })).toBe(false);
    expect(await accepts(schema, {})).toBe(false);
  },
);

test("names by pattern are checked, and none is refused if only the server can check them", async () => {
  const withName = (pattern: string): unknown =>
    object({}, { patternProperties: { [pattern]: { type: "number" } }, additionalProperties: false });
  expect(await accepts(withName("^x_"), { x_2: 1 })).toBe(true);
  expect(await accepts(withName("^x_"), { x_2: "1" })).toBe(false);
  expect(await accepts(withName("^x_"), { y: 1 })).toBe(false);
  expect(await accepts(withName("^(?=x)"), { y: 1 })).toBe(true);
});

test("if ignoring a pattern would refuse valid arguments, only the server checks", async () => {
  for (const [rule, value] of [
    [{ not: { pattern: "^(?=b)" } }, "a"],
    [{ oneOf: [{ pattern: "^(?=a)" }, { pattern: "^(?=b)" }] }, "a"],
    // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema.
    [{ if: { pattern: "^(?=b)" }, then: { maxLength: 1 } }, "aa"],
    [{ contains: { pattern: "^(?=b)" }, maxContains: 1 }, ["a", "a"]],
    [{ anyOf: [{ maxLength: 1 }, { not: { pattern: "^(?=b)" } }] }, "aa"],
  ] as const) {
    expect([rule, await accepts(object({ a: rule }), { a: value })]).toEqual([rule, true]);
  }
});

test("schemas with two references on every level cost little", async () => {
  const $defs: Record<string, unknown> = { d0: { type: "string" } };
  for (let level = 1; level <= 60; level += 1) {
    $defs[`d${level}`] = { anyOf: [{ $ref: `#/$defs/d${level - 1}` }, { $ref: `#/$defs/d${level - 1}` }] };
  }
  const schema = object({ a: { $ref: "#/$defs/d60" } }, { $defs });
  const started = processorMs();
  expect(await accepts(schema, { a: 1 })).toBe(true);
  expect(processorMs() - started).toBeLessThan(1_000);
  expect(vetSchema(schema).bounded.$defs).toBeDefined();
});

test("a recursive schema is shown and checked completely", async () => {
  const name = { type: "string" };
  const node = object({ name, children: { type: "array", items: { $ref: "#" } } }, { required: ["name"] });
  expect(vetSchema(node).bounded).toEqual(node);
  expect(await accepts(node, { name: "a", children: [{ name: "b", children: [] }] })).toBe(true);
  expect(await accepts(node, { children: [] })).toBe(false);
  expect(await accepts(node, { name: "a", children: "none" })).toBe(false);
  expect(await accepts(node, { name: "a", children: [{ children: [] }] })).toBe(false);
  const twice = object({ a: { anyOf: [{ $ref: "#/properties/a" }, { $ref: "#/properties/a" }] }, b: name });
  expect(await accepts(twice, { a: 1, b: "x" })).toBe(true);
  // The reference is endless, so only the server can check it.
  expect(await accepts(twice, { a: 1, b: 2 })).toBe(true);
});

test("vetting any input returns an object schema or a reason", () => {
  const keyword = fc.constantFrom(
    "type",
    "properties",
    "items",
    "anyOf",
    "not",
    "$ref",
    "$defs",
    "enum",
    "required",
    "pattern",
    "patternProperties",
    "additionalProperties",
    "minLength",
    "if",
    "dependentRequired",
    "x-other",
    "__proto__",
  );
  const { schema } = fc.letrec<{ schema: unknown; value: unknown }>((tie) => ({
    value: fc.oneof(
      { maxDepth: 4 },
      fc.constantFrom(null, true, 1, -1, "string", "object", "#", "#/$defs/a", "(", [], ["a"]),
      tie("schema"),
      fc.array(tie("schema"), { maxLength: 3 }),
      fc.dictionary(fc.constantFrom("a", "b", "a b"), tie("schema"), { maxKeys: 3 }),
    ),
    schema: fc.dictionary(keyword, tie("value"), { maxKeys: 4 }),
  }));
  fc.assert(
    fc.property(schema, (raw) => {
      try {
        const vetted = vetSchema(raw);
        expect(vetted.bounded.type).toBe("object");
        expect(vetSchema(vetted.bounded).bounded).toEqual(vetted.bounded);
      } catch (error) {
        expect((error as Error).constructor.name).toBe("SchemaFault");
      }
    }),
    { numRuns: 3_000 },
  );
});

import { Ajv2020 } from "ajv/dist/2020.js";
import { expect, test } from "vitest";
import { z } from "zod";
import { faultOfJsonSchema, faultOfSchema } from "./schema-fault.ts";

const types = "null, boolean, object, array, number, integer, string";

test.each<readonly [string, object, string]>([
  [
    "an unknown type",
    { type: "objekt" },
    `\`type\` must be one of ${types}, not "objekt"; did you mean object?`,
  ],
  ["one of several types", { type: ["string", "any"] }, `\`type\` must be one of ${types}, not "any"`],
  ["no type", { type: [] }, "`type` must be a type, or a list of at least one, not an empty list"],
  [
    "properties that are a number",
    { properties: 3 },
    "`properties` must be an object of schemas, by name, not 3",
  ],
  ["required that is a text", { required: "x" }, '`required` must be a list of texts, not "x"'],
  [
    "required in a property, as before draft 4",
    { type: "object", properties: { a: { type: "string", required: true } } },
    "`properties.a.required` must be a list of texts, not true",
  ],
  [
    "a type in place of a schema",
    { properties: { a: "string" } },
    '`properties.a` must be a schema: an object, true or false, not "string"',
  ],
  [
    "a wrong keyword in a list",
    { anyOf: [{}, { items: { minLength: -1 } }] },
    "`anyOf[1].items.minLength` must be a whole number from 0 up, not -1",
  ],
  [
    "a list without alternatives",
    { anyOf: [] },
    "`anyOf` must be a list of at least one schema, not an empty list",
  ],
  [
    "an enumeration without values",
    { enum: [] },
    "`enum` must be a list of at least one value, not an empty list",
  ],
  [
    "an exclusive limit of draft 4",
    { exclusiveMinimum: true },
    "`exclusiveMinimum` must be a number, not true",
  ],
  ["a divisor of 0", { multipleOf: 0 }, "`multipleOf` must be a number above 0, not 0"],
  [
    "a reference without a target",
    { $ref: "#/$defs/price" },
    '`$ref` refers to "#/$defs/price", which the schema does not contain',
  ],
  [
    "a reference to another document",
    { items: { $ref: "https://example.org/price.json" } },
    '`items.$ref` refers to "https://example.org/price.json", which the schema does not contain',
  ],
  ["a reference to a keyword", { type: "string", not: { $ref: "#/type" } }, "which is not a schema"],
  ["a reference to itself", { $ref: "#" }, "which leads back to itself without end"],
  ["a pattern that is not one", { pattern: "(" }, 'the pattern "(" of `pattern` is not a regular expression'],
  ["a look-ahead", { pattern: "^(?!a)" }, "has a look-around or a back-reference"],
  ["a part that is repeated too often", { pattern: "^.{1,2000}$" }, "repeats a part more than 1000 times"],
  ["nested repetitions", { pattern: "^(?:(a{2}){50}b){11}$" }, "repeats a part more than 1000 times"],
  [
    "a back-reference in a name",
    { patternProperties: { "(a)\\1": {} } },
    "has a look-around or a back-reference",
  ],
  [
    "a schema of zod in it",
    { properties: { a: z.string() } },
    "`properties.a` must be JSON Schema, like the schema around it",
  ],
])("%s is refused by its path", (_, schema, fault) => {
  expect(faultOfSchema(schema)).toContain("is not a valid JSON Schema: ");
  expect(faultOfSchema(schema)).toContain(fault);
});

test("a schema that contains itself as an object is refused", () => {
  const schema: Record<string, unknown> = { type: "array" };
  schema.items = schema;
  expect(faultOfJsonSchema(schema)).toContain("`items` contains itself; use $ref instead");
});

test.each<readonly [string, object]>([
  [
    "unknown keywords and formats",
    { type: "string", format: "iban", nullable: 1, "x-order": {}, example: 2 },
  ],
  [
    "properties named like keywords",
    { properties: { type: { type: "object" }, required: { type: "boolean" } } },
  ],
  [
    "values that look like schemas",
    { const: { type: "objekt" }, enum: [{ $ref: "#/nowhere" }], default: { items: 1 } },
  ],
  ["a list type that refers to itself", { properties: { next: { $ref: "#" } } }],
  [
    "anchors and identifiers",
    { $ref: "#here", $defs: { a: { $anchor: "here" } }, items: { $ref: "u:x" }, not: { $id: "u:x" } },
  ],
  [
    "references relative to a schema with an identifier of its own",
    {
      $id: "https://example.org/tree",
      properties: { nodes: { items: { $ref: "node" } } },
      $defs: {
        node: {
          $id: "https://example.org/node",
          properties: { name: { $ref: "#/$defs/name" }, subtree: { $ref: "tree" } },
          $defs: { name: { type: "string" } },
        },
      },
    },
  ],
  [
    "references to the root in a schema with an identifier of its own",
    { $defs: { a: { $id: "https://example.org/a", items: { $ref: "#/$defs/b" } }, b: {} } },
  ],
  ["a recursive reference by a name", { $id: "T0", properties: { next: { $ref: "T0" } } }],
  [
    "older drafts",
    {
      definitions: { a: {} },
      items: [{ type: "string" }],
      additionalItems: false,
      dependencies: { a: ["b"], c: {} },
    },
  ],
  [
    "patterns with classes, flags and names",
    {
      allOf: [
        "[(?=]\\\\1",
        "(?i)a",
        "(?P<y>\\d)",
        "\\-",
        "\\(?=",
        "\\p{L}",
        "a{1000}b{9}",
        "(a{500}){2}",
        "(a{100})\\d{20}",
        "\\{2000}[{2000}]",
      ].map((pattern) => ({ pattern })),
    },
  ],
  ["boolean schemas", { additionalProperties: false, items: true, not: false }],
  ["keywords without a value", { type: "string", pattern: undefined }],
])("%s are accepted", (_, schema) => {
  expect(faultOfSchema(schema)).toBeUndefined();
});

test("one object may be used many times, and a deep schema is refused", () => {
  let shared: object = { type: "string" };
  for (let level = 0; level < 100; level += 1) shared = { anyOf: [shared, shared] };
  expect(faultOfJsonSchema(shared)).toBeUndefined();
  let deep: object = {};
  for (let level = 0; level < 100_000; level += 1) deep = { not: deep };
  expect(faultOfJsonSchema(deep)).toContain("nested deeper than 500 levels");
});

test("every wrong value of a keyword is one that another validator refuses too, and the other way round", () => {
  const values = [
    null,
    true,
    1,
    -1,
    0.5,
    "a",
    "string",
    [],
    ["a"],
    [{}],
    [[]],
    {},
    { a: {} },
    { a: 1 },
    { a: ["b"] },
  ];
  const keywords =
    "$anchor $defs type enum title description format pattern minLength maxLength minimum maximum exclusiveMinimum exclusiveMaximum multipleOf properties required additionalProperties patternProperties propertyNames minProperties maxProperties dependentRequired dependentSchemas unevaluatedProperties items prefixItems contains minContains maxContains minItems maxItems uniqueItems unevaluatedItems allOf anyOf oneOf not if then else";
  const ajv = new Ajv2020({ strict: false, logger: false });
  const differing: string[] = [];
  for (const keyword of keywords.split(" "))
    for (const value of values) {
      const schema = { [keyword]: value };
      const isValid = ajv.validateSchema(schema) === true;
      if (isValid !== (faultOfJsonSchema(schema) === undefined)) differing.push(JSON.stringify(schema));
    }
  // A list of schemas for `items` is of older drafts; an empty enumeration accepts no value.
  expect(differing).toEqual(['{"enum":[]}', '{"items":[{}]}']);
});

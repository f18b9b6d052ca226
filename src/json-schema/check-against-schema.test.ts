import { Ajv2020 } from "ajv/dist/2020.js";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { rounds } from "../testing/campaign.suite.ts";
import { processorMs } from "../testing/processor-time.ts";
import { checkJson } from "./check-against-schema.ts";
import { createSchemaDocument } from "./schema-document.ts";

const issues = (schema: unknown, value: unknown): readonly string[] =>
  checkJson(createSchemaDocument(schema), value).map(({ path, message }) => [...path, message].join(" "));
const fits = (schema: unknown, value: unknown): boolean => issues(schema, value).length === 0;
/** JSON as it comes from elsewhere: `__proto__` is a property like any other. */
const json = (text: string): unknown => JSON.parse(text);

const inherited = ["constructor", "toString", "hasOwnProperty", "valueOf", "__proto__", "isPrototypeOf"];

describe.each(inherited)("the name %s", (name) => {
  const quoted = JSON.stringify(name);
  const withName = json(`{${quoted}: 1}`);

  test("is missing where it is required, and there where it is given", () => {
    expect(issues({ required: [name] }, {})).toEqual([`"${name}" is missing`]);
    expect(fits({ required: [name] }, withName)).toBe(true);
    const dependent = json(`{"dependentRequired": {${quoted}: ["x"]}}`);
    expect([fits(dependent, {}), fits(dependent, withName)]).toEqual([true, false]);
    expect(fits({ dependentRequired: { x: [name] } }, { x: 1 })).toBe(false);
    const schemas = json(`{"dependentSchemas": {${quoted}: false}}`);
    expect([fits(schemas, {}), fits(schemas, withName)]).toEqual([true, false]);
  });

  test("has the schema that is written for it, and no other", () => {
    const schema = json(`{"properties": {${quoted}: {"type": "string"}}, "additionalProperties": false}`);
    expect(issues(schema, withName)).toEqual([`${name} must be string, not number`]);
    expect(fits(schema, {})).toBe(true);
    expect(issues({ properties: {}, additionalProperties: false }, withName)).toEqual([
      `"${name}" is not known`,
    ]);
    expect(issues({ unevaluatedProperties: false }, withName)).toEqual([`"${name}" is not known`]);
    expect(fits({ additionalProperties: { type: "string" } }, withName)).toBe(false);
    expect(fits({ propertyNames: { pattern: "^x" } }, withName)).toBe(false);
    expect(fits({ patternProperties: { [`^${name}$`]: { type: "string" } } }, withName)).toBe(false);
    expect(fits({ maxProperties: 0 }, withName)).toBe(false);
  });

  test("is compared like any other", () => {
    const other = json(`{${quoted}: 2}`);
    for (const keyword of ["const", "enum"]) {
      const schema = { [keyword]: keyword === "enum" ? [withName] : withName };
      expect([fits(schema, withName), fits(schema, other), fits(schema, {})]).toEqual([true, false, false]);
    }
    expect(fits({ uniqueItems: true }, [withName, other, {}])).toBe(true);
    expect(fits({ uniqueItems: true }, [withName, json(`{${quoted}: 1}`)])).toBe(false);
  });

  test("is found by a reference only where it is defined", () => {
    const schema = { $ref: `#/$defs/${name}` };
    expect(issues(schema, 1)[0]).toContain("which it does not hold");
    const defined = json(`{"$ref": "#/$defs/${name}", "$defs": {${quoted}: {"type": "string"}}}`);
    expect([fits(defined, "a"), fits(defined, 1)]).toEqual([true, false]);
  });
});

test("nothing that is checked reaches the prototype of all objects", () => {
  const schema = json('{"properties": {"__proto__": {"properties": {"polluted": {"default": "yes"}}}}}');
  fits(schema, json('{"__proto__": {"polluted": "yes"}, "constructor": {"prototype": {"polluted": "yes"}}}'));
  expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
});

/** Names that objects have by themselves among others; not those that the other validator trips over itself. */
const name = fc.constantFrom("a", "b", "isPrototypeOf", "hasOwnProperty", "toLocaleString");
const scalar = fc.constantFrom<unknown>(null, true, false, 0, 1, 2, 1.5, -3, "", "a", "ab", "x1", "😀");
const { value } = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { depthSize: "small", withCrossShrink: true },
    scalar,
    fc.array(tie("value"), { maxLength: 3 }),
    fc.dictionary(name, tie("value"), { maxKeys: 4 }),
  ),
}));
const type = fc.constantFrom("null", "boolean", "number", "integer", "string", "array", "object");
const count = fc.integer({ min: 0, max: 3 });
test.each([
  ["^\\p{Letter}+$", "ñandú", "n4"],
  ["^\\P{L}$", "4", "n"],
  ["^[\\p{Script=Greek}\\p{gc=Decimal_Number}]+$", "αβγ4", "abc"],
  ["^\\\\p{2}$", "\\pp", "pp"],
])("the Unicode classes of the pattern %s are those of JavaScript", (source, text, other) => {
  expect([fits({ pattern: source }, text), fits({ pattern: source }, other)]).toEqual([true, false]);
});

const pattern = fc.constantFrom("^a", "b$", "^[a-z]+$", "\\d", "^(a|b)*$", "^.{2}$", "\\w+");
const { schema } = fc.letrec<{ schema: unknown }>((tie) => {
  const several = fc.array(tie("schema"), { minLength: 1, maxLength: 3 });
  const byName = fc.dictionary(name, tie("schema"), { maxKeys: 3 });
  const keywords = {
    type: fc.oneof(type, fc.uniqueArray(type, { minLength: 1, maxLength: 3 })),
    const: value,
    enum: fc.array(value, { minLength: 1, maxLength: 3 }),
    minimum: count,
    exclusiveMaximum: count,
    multipleOf: fc.constantFrom(1, 2),
    minLength: count,
    maxLength: count,
    pattern,
    required: fc.uniqueArray(name, { maxLength: 2 }),
    dependentRequired: fc.dictionary(name, fc.uniqueArray(name, { maxLength: 2 }), { maxKeys: 2 }),
    minProperties: count,
    maxProperties: count,
    minItems: count,
    maxItems: count,
    uniqueItems: fc.boolean(),
    properties: byName,
    patternProperties: fc.dictionary(pattern, tie("schema"), { maxKeys: 2 }),
    additionalProperties: tie("schema"),
    propertyNames: tie("schema"),
    dependentSchemas: byName,
    unevaluatedProperties: fc.boolean(),
    prefixItems: several,
    items: tie("schema"),
    contains: tie("schema"),
    minContains: count,
    maxContains: count,
    allOf: several,
    anyOf: several,
    oneOf: several,
    not: tie("schema"),
    if: tie("schema"),
    // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema.
    then: tie("schema"),
    else: tie("schema"),
    $ref: fc.constantFrom("#/$defs/one", "#/$defs/isPrototypeOf"),
  };
  const each = Object.entries(keywords).map(([keyword, rule]) =>
    (rule as fc.Arbitrary<unknown>).map((given) => ({ [keyword]: given })),
  );
  // A few keywords at a time: with all of them, nothing would ever fit.
  const few = fc.array(fc.oneof(...each), { maxLength: 4 }).map((parts) => Object.assign({}, ...parts));
  return { schema: fc.oneof({ depthSize: "small" }, fc.boolean(), few) };
});

test("agrees with another validator for any schema and value", () => {
  const defs = fc.record({ one: schema, isPrototypeOf: schema });
  let fitting = 0;
  fc.assert(
    fc.property(schema, defs, fc.array(value, { minLength: 1, maxLength: 5 }), (part, $defs, given) => {
      const plain = typeof part === "boolean" ? { not: { not: part } } : { ...(part as object), $defs };
      // As JSON comes: the other validator takes objects without a prototype for others.
      const { whole, values } = JSON.parse(JSON.stringify({ whole: plain, values: given }));
      const found = values.map((one: unknown) => issues(whole, one));
      // Definitions that refer to each other without end: the other validator would not come back.
      if (found.flat().some((text: string) => text.includes("cannot be checked"))) return;
      const isValid = new Ajv2020({ strict: false, ownProperties: true, logger: false }).compile(whole);
      for (const [index, one] of values.entries()) {
        const isFitting = found[index]?.length === 0;
        if (isFitting) fitting += 1;
        expect({ schema: whole, value: one, fits: isFitting }).toEqual({
          schema: whole,
          value: one,
          fits: isValid(one),
        });
      }
    }),
    { numRuns: rounds(30, 150) },
  );
  expect(fitting).toBeGreaterThan(rounds(25, 50));
});

describe("any schema and value takes bounded time", () => {
  const evil: readonly string[] = [
    "^(a+)+$",
    "^(a|a)*$",
    "^(a|aa)+$",
    "(x+x+)+y",
    "^(([a-z])+.)+[A-Z]([a-z])+$",
    "(.*a){20}",
    "^(?:[a-z]{1,100}){1,10}$",
    "\\s+$",
  ];

  test.each(evil)("the pattern %s", (source) => {
    const text = `${"a".repeat(50_000)}!`;
    const started = processorMs();
    issues({ pattern: source }, text);
    issues({ patternProperties: { [source]: false } }, { [text]: 1 });
    issues({ propertyNames: { pattern: source } }, { [text]: 1 });
    issues({ items: { anyOf: [{ pattern: source }, { not: { pattern: source } }] } }, Array(20).fill(text));
    expect(processorMs() - started).toBeLessThan(3_000);
  });

  test.each(["date", "time", "date-time", "email", "uri", "hostname", "ipv4", "ipv6", "uuid", "regex"])(
    "the format %s",
    (format) => {
      const started = processorMs();
      for (const part of ["a", "a@", "a.", "1", "1:", "::", "-", "@.", " ", "\u{1f600}", "a-"])
        issues({ format }, part.repeat(100_000));
      expect(processorMs() - started).toBeLessThan(1_000);
    },
  );

  test.each<readonly [string, unknown, unknown, string]>([
    ["a reference to itself", { $ref: "#" }, 1, "nested without end"],
    [
      "two that refer to each other",
      { $ref: "#/$defs/a", $defs: { a: { $ref: "#/$defs/b" }, b: { $ref: "#/$defs/a" } } },
      1,
      "nested without end",
    ],
    [
      "a tree of references",
      {
        $defs: Object.fromEntries(
          Array.from({ length: 40 }, (_, n) => [
            `d${n}`,
            { allOf: [{ $ref: `#/$defs/d${n + 1}` }, { $ref: `#/$defs/d${n + 1}` }] },
          ]).concat([["d40", {}]] as never),
        ),
        $ref: "#/$defs/d0",
      },
      1,
      "too many steps",
    ],
    [
      "alternatives in alternatives",
      {
        anyOf: Array(50).fill({
          anyOf: Array(50).fill({ anyOf: Array(50).fill({ anyOf: Array(50).fill(false) }) }),
        }),
      },
      1,
      "too many steps",
    ],
    [
      "a pattern that no linear engine takes",
      { pattern: "(a)\\1" },
      "aa",
      "not a regular expression that is matched in linear time",
    ],
    ["a look-around", { pattern: "^(?=a)" }, "aa", "not a regular expression"],
    ["a pattern that is none", { pattern: "(" }, "aa", "not a regular expression"],
    ["a reference to another document", { $ref: "https://example.org/x.json" }, 1, "which it does not hold"],
  ])("%s is refused with why", (...[, given, of, why]) => {
    const started = processorMs();
    expect(issues(given, of).join()).toContain(why);
    expect(processorMs() - started).toBeLessThan(1_000);
  });

  test("many items, many properties, deep values and long enumerations", () => {
    const started = processorMs();
    const many = Array.from({ length: 100_000 }, (_, n) => ({ n }));
    expect(fits({ uniqueItems: true, items: { properties: { n: { type: "integer" } } } }, many)).toBe(true);
    expect(fits({ enum: many }, { n: 99_999 })).toBe(true);
    let deep: unknown = 1;
    for (let level = 0; level < 100_000; level += 1) deep = [deep];
    expect(issues({ uniqueItems: true }, [deep, deep])[0]).toContain("too deeply");
    expect(issues({ $ref: "#/$defs/a", $defs: { a: { items: { $ref: "#/$defs/a" } } } }, deep)[0]).toContain(
      "without end",
    );
    expect(processorMs() - started).toBeLessThan(1_000);
  });
});

test.each<readonly [string, string, readonly string[], readonly string[]]>([
  ["date", "of the calendar", ["2024-02-29", "0099-01-01"], ["2023-02-29", "2024-13-01", "2024-1-1"]],
  ["time", "with an offset", ["10:00:00Z", "10:00:00.5+02:00"], ["10:00", "25:00:00Z", "10:00:00"]],
  ["date-time", "of both", ["2024-01-02T03:04:05Z"], ["2024-01-02T03:04", "2024-01-02"]],
  ["email", "with one @", ["a.b@example.org"], ["a", "a@", "a b@c"]],
  ["uuid", "of 36 signs", ["123e4567-e89b-12d3-a456-426614174000"], ["123e4567"]],
  ["ipv4", "of four numbers", ["127.0.0.1"], ["127.0.0.256", "localhost"]],
  ["ipv6", "of groups", ["::1"], ["1", "fe80::1%eth0"]],
  ["hostname", "of labels", ["example.org"], ["-a.org", "a..b"]],
  ["uri", "with a scheme", ["https://example.org/x"], ["/x", "a b"]],
  ["unknown-format", "says something to people only", ["", "a"], []],
])("the format %s is %s", (...[format, , good, bad]) => {
  expect(good.filter((text) => !fits({ format }, text))).toEqual([]);
  expect(bad.filter((text) => fits({ format }, text))).toEqual([]);
});

test("a reference in a schema with an identifier of its own is relative to that schema", () => {
  const tree = {
    $id: "https://example.org/tree",
    properties: { nodes: { items: { $ref: "node" } } },
    $defs: {
      name: { type: "number" },
      node: {
        $id: "https://example.org/node",
        properties: { name: { $ref: "#/$defs/name" }, subtree: { $ref: "tree" } },
        $defs: { name: { type: "string" } },
      },
    },
  };
  expect(fits(tree, { nodes: [{ name: "a", subtree: { nodes: [{ name: "b" }] } }] })).toBe(true);
  expect(fits(tree, { nodes: [{ name: "a", subtree: { nodes: [{ name: 1 }] } }] })).toBe(false);
});

test("schemas with ids that are relative to each other take linear time", () => {
  let schema: object = { type: "string" };
  for (let level = 0; level < 40_000; level += 1) schema = { $id: "a/", not: schema };
  const started = performance.now();
  createSchemaDocument(schema);
  expect(performance.now() - started).toBeLessThan(1_000);
});

test("older drafts and anchors are understood", () => {
  expect(fits({ items: [{ type: "string" }], additionalItems: false }, ["a", 1])).toBe(false);
  expect(fits({ $ref: "#/definitions/a", definitions: { a: { type: "string" } } }, 1)).toBe(false);
  expect(fits({ $ref: "#here", $defs: { x: { $anchor: "here", type: "string" } } }, 1)).toBe(false);
  expect(fits({ dependencies: { a: ["b"] } }, { a: 1 })).toBe(false);
  expect(fits({ properties: { a: { type: "string" } }, required: ["a"] }, { a: undefined })).toBe(false);
});

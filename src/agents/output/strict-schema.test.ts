import fc from "fast-check";
import { expect, test } from "vitest";
import { z } from "zod";
import { jsonSchemaOf, toStrictSchema } from "./typed-output.ts";

test("the strict form of an object with required properties forbids additional ones, at every depth", () => {
  const Order = z.object({ id: z.string(), lines: z.array(z.object({ cents: z.number() })) });
  expect(toStrictSchema(jsonSchemaOf(Order) ?? {})).toEqual({
    type: "object",
    properties: {
      id: { type: "string" },
      lines: {
        type: "array",
        items: {
          type: "object",
          properties: { cents: { type: "number" } },
          required: ["cents"],
          additionalProperties: false,
        },
      },
    },
    required: ["id", "lines"],
    additionalProperties: false,
  });
});

test.each([
  ["optional properties", { type: "object", properties: { a: { type: "string" } }, required: [] }],
  ["free keys", { type: "object", additionalProperties: { type: "string" } }],
  ["any object", { type: "object" }],
  ["keywords beyond the common ones", { type: "string", pattern: "^a" }],
  [
    "a nested schema with one of these",
    { type: "object", properties: { a: { type: "object" } }, required: ["a"] },
  ],
])("%s have no strict form", (_name, schema) => {
  expect(toStrictSchema(schema)).toBeUndefined();
});

test("a strict schema allows nothing that the original schema forbids", () => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      const schema = typeof value === "object" && value !== null ? { ...value } : {};
      const strict = toStrictSchema(schema);
      if (strict !== undefined) expect(strict).toMatchObject(omit(schema, "$schema"));
    }),
  );
});

test("a schema that is nested without end is returned unchanged", () => {
  let schema: Record<string, unknown> = { type: "string" };
  for (let depth = 0; depth < 100_000; depth += 1) schema = { type: "array", items: schema };
  expect(toStrictSchema(schema)).toBeUndefined();
});

function omit(schema: object, key: string): object {
  return Object.fromEntries(Object.entries(schema).filter(([name]) => name !== key));
}

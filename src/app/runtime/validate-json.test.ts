import { expect, test } from "vitest";
import { createJsonValidator } from "./validate-json.ts";

const order = {
  type: "object",
  properties: {
    file: { type: "string", minLength: 2 },
    lines: {
      type: "array",
      items: { type: "object", properties: { price: { type: "number" } }, required: ["price"] },
    },
  },
  required: ["file"],
  additionalProperties: false,
};

test.each([
  [{ file: "ab" }, []],
  [{}, ['"file" is missing']],
  [{ file: 3 }, ["file: must be string, not number"]],
  [{ file: "ab", line: 1 }, ['"line" is not known']],
  [
    { file: "ab", lines: [{}, { price: "1" }] },
    ['lines.0: "price" is missing', "lines.1.price: must be number, not string"],
  ],
  [[], ["must be object, not array"]],
])("of %j it says %j", async (value, issues) => {
  const validate = createJsonValidator();
  expect(await validate(order, value)).toEqual(issues);
  // A schema that was read before is answered at once, and the same.
  expect(validate(order, value)).toEqual(issues);
});

test("errors of every keyword are reported, in at most twenty issues", async () => {
  const validate = createJsonValidator();
  expect(await validate({ anyOf: [{ type: "string" }, { const: 1 }] }, {})).not.toEqual([]);
  expect(await validate({ not: {} }, 1)).not.toEqual([]);
  const many = Array.from({ length: 100 }, (_, index) => index);
  expect(await validate({ type: "array", items: { type: "string" } }, many)).toHaveLength(20);
});

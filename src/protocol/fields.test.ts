import { expect, test } from "vitest";
import { z } from "zod";
import { textField } from "./fields.ts";
import { specQuerySchema } from "./spec-query.ts";

test("a text's length is counted in code points, like the published maxLength", () => {
  const field = textField(4);
  expect(["😀😀😀😀", "ａbcd", "e\u0301e\u0301"].map((text) => field.safeParse(text).success)).toEqual([
    true,
    true,
    true,
  ]);
  expect(["😀😀😀😀😀", "abcde"].map((text) => field.safeParse(text).success)).toEqual([false, false]);
  expect(z.toJSONSchema(field)).toMatchObject({ type: "string", maxLength: 4 });
  expect(z.toJSONSchema(field.min(1).exactOptional().meta({ description: "x" }))).toMatchObject({
    maxLength: 4,
    minLength: 1,
  });
  expect(z.toJSONSchema(specQuerySchema)).toMatchObject({ properties: { q: { maxLength: 1000 } } });
});

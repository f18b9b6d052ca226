import { expect, test } from "vitest";
import { defined } from "./record.ts";

test("keys that hold undefined are left out, and a key `__proto__` of JSON gives the object no fields", () => {
  expect(defined({ a: 1, b: undefined })).toEqual({ a: 1 });
  const made = defined(JSON.parse('{"__proto__":{"approved":true}}'));
  expect(Reflect.get(made, "approved")).toBeUndefined();
});

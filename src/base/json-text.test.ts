import { expect, test } from "vitest";
import { toJsonText } from "./json-text.ts";

const cyclic: Record<string, unknown> = { list: [] };
cyclic.list = [cyclic];

test.each([
  [1n, "it is a bigint"],
  [{ rows: [{ id: 1n }] }, "rows[0].id is a bigint"],
  [new Map([[1, 2]]), "it is a Map"],
  [{ tags: new Set(["a"]) }, "tags is a Set"],
  [{ later: Promise.resolve(1) }, "later is a Promise"],
  [[new TypeError("x")], "[0] is a TypeError"],
  [() => 1, "it is a function"],
  [Symbol("x"), "it is a symbol"],
  [[() => 1], "[0] is a function"],
  [cyclic, "list[0] contains itself"],
])("a value that JSON would lose is refused with its place: %#", (value, place) => {
  expect(() => toJsonText(value)).toThrow(new TypeError(place));
});

test("a value that is nested too deep is refused", () => {
  let deep: unknown = 1;
  for (let level = 0; level < 100_000; level += 1) deep = [deep];
  expect(() => toJsonText(deep)).toThrow("is nested more than 1000 levels deep");
});

test.each([
  [undefined, ""],
  [null, "null"],
  [{ when: new Date(0), absent: undefined, method: () => 1 }, '{"when":"1970-01-01T00:00:00.000Z"}'],
  [Number.NaN, "null"],
  [new URL("http://a.example/"), '"http://a.example/"'],
  [[{ a: 1 }, "b"], '[{"a":1},"b"]'],
])("any other value is written as JSON.stringify writes it: %#", (value, text) => {
  expect(toJsonText(value)).toBe(text);
});

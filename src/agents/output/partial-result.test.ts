import fc from "fast-check";
import { expect, test } from "vitest";
import { PartialResult } from "./partial-result.ts";

function partialsOf(text: string, cuts: readonly number[] = []): unknown[] {
  const partial = new PartialResult();
  const parts = cuts.length === 0 ? [...text] : slices(text, cuts);
  return parts.map((part) => partial.push(part)).filter((value) => value !== undefined);
}

function slices(text: string, cuts: readonly number[]): string[] {
  const at = [...new Set([0, ...cuts.map((cut) => cut % (text.length + 1)), text.length])].sort(
    (a, b) => a - b,
  );
  return at.slice(1).map((end, index) => text.slice(at[index], end));
}

test("each time an object grows, it is emitted with unfinished texts and numbers", () => {
  expect(partialsOf('{"city": "Bonn", "at": [1.5, -2], "ok": true}')).toEqual([
    {},
    { city: "" },
    { city: "B" },
    { city: "Bo" },
    { city: "Bon" },
    { city: "Bonn" },
    { city: "Bonn", at: [] },
    { city: "Bonn", at: [1] },
    { city: "Bonn", at: [1.5] },
    { city: "Bonn", at: [1.5, -2] },
    { city: "Bonn", at: [1.5, -2], ok: true },
  ]);
});

test.each([
  ["after prose and a fence", 'Here it is:\n```json\n{"a": 1}\n```\n', [{}, { a: 1 }]],
  ["in the middle of the text", 'I think\n  {"a": 1}\nThat is it.', [{}, { a: 1 }]],
  ["a list", '["x"]', [[], [""], ["x"]]],
  ["not in the middle of a line", 'Use {"a": 1} here.', []],
  ["not after invalid JSON", "{a: 1}\nand so on", [{}]],
  ["the later of two values", '[1]\n{"b": 2}', [[], [1], {}, { b: 2 }]],
  ["half a surrogate pair is held back", '"\\ud83d\\ude00"'.replace(/^/, "["), [[], [""], ["😀"]]],
  ["escapes", '["a\\n\\"b"]', [[], [""], ["a"], ["a\n"], ['a\n"'], ['a\n"b']]],
  ["`__proto__` as a property", '{"__proto__": 1}', [{}, JSON.parse('{"__proto__": 1}')]],
  ["no bare text or number", '"text"', []],
])("the JSON value of an answer is found: %s", (_, text, expected) => {
  expect(partialsOf(text)).toEqual(expected);
});

test("a surrogate pair split over two deltas is never emitted as a half", () => {
  const partial = new PartialResult();
  const given = ['["', "\ud83d", "\ude00", '"]'].map((part) => partial.push(part));
  expect(given.filter((value) => value !== undefined)).toEqual([[""], ["😀"]]);
});

const json = fc.oneof(fc.object({ maxDepth: 4 }), fc.array(fc.jsonValue()));

test("wherever JSON is cut, each value is a prefix of the final value, and the last one is final", () => {
  fc.assert(
    fc.property(json, fc.boolean(), fc.array(fc.nat(), { minLength: 1 }), (value, pretty, cuts) => {
      const text = JSON.stringify(value, undefined, pretty ? 2 : 0);
      const given = partialsOf(text, cuts);
      expect(given.at(-1)).toEqual(JSON.parse(text));
      for (const one of given) expect(isBeginning(one, JSON.parse(text))).toBe(true);
    }),
  );
});

/** Whether a partial value can grow into the whole value. */
function isBeginning(part: unknown, whole: unknown): boolean {
  if (typeof part === "string") return typeof whole === "string" && whole.startsWith(part);
  // While `1e2` arrives, its value is first 1, then 100.
  if (typeof part === "number") return typeof whole === "number";
  if (Array.isArray(part))
    return (
      Array.isArray(whole) &&
      part.length <= whole.length &&
      part.every((item, at) => isBeginning(item, whole[at]))
    );
  if (typeof part !== "object" || part === null) return part === whole;
  return (
    typeof whole === "object" &&
    whole !== null &&
    Object.entries(part).every(
      ([key, item]) => Object.hasOwn(whole, key) && isBeginning(item, Reflect.get(whole, key)),
    )
  );
}

test("any text is parsed without an exception, in linear time", () => {
  fc.assert(
    fc.property(
      fc.string({ unit: fc.constantFrom(...'{}[]",:\\u0e-1tn \n') }),
      (text) => void partialsOf(text),
    ),
  );
  const partial = new PartialResult();
  let sent = 0;
  const text = JSON.stringify({ items: Array.from({ length: 1_500 }, (_, n) => ({ n, name: `item ${n}` })) });
  for (let at = 0; at < text.length; at += 4)
    sent += JSON.stringify(partial.push(text.slice(at, at + 4)))?.length ?? 0;
  expect(sent).toBeLessThan(20 * text.length);
});

test("values that are too deep or too long are not emitted", () => {
  expect(partialsOf("[".repeat(100)).length).toBeLessThan(65);
  const started = performance.now();
  partialsOf(JSON.stringify(["\n".repeat(1_000_000)]), [1_000_000]);
  expect(performance.now() - started).toBeLessThan(2_000);
  const given = partialsOf(JSON.stringify(["x".repeat(200_000)]), [99_000, 150_000]);
  expect(given.map((value) => JSON.stringify(value).length)).toEqual([99_002]);
});

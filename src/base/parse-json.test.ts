import fc from "fast-check";
import { expect, test } from "vitest";
import { processorMs } from "../testing/processor-time.ts";
import { parseJson } from "./parse-json.ts";

const parse = (text: string) => parseJson(text, { maxDepth: 8 });

test("returns what JSON.parse returns for any JSON", () => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 6 }), (value) => {
      const text = JSON.stringify(value);
      expect(parse(text)).toEqual(JSON.parse(text));
    }),
  );
});

test("refuses what JSON.parse refuses, always with invalid_json", () => {
  fc.assert(
    fc.property(fc.string({ unit: fc.constantFrom(...'{}[]",:\\u01a \n') }), (text) => {
      let legal = true;
      try {
        JSON.parse(text);
      } catch {
        legal = false;
      }
      try {
        parse(text);
        expect(legal).toBe(true);
      } catch (error) {
        expect(error).toMatchObject({ code: "invalid_json" });
      }
    }),
  );
});

test("refuses a repeated key of an object, also with escapes", () => {
  for (const text of ['{"a":1,"a":2}', '{"x":[{"b":{},"b":[]}]}', '{"a":1,"\\u0061":2}', '{"":1,"":1}']) {
    expect(() => parse(text)).toThrow("occurs twice");
  }
});

test("accepts equal keys of different objects, and equal strings that are not keys", () => {
  for (const text of [
    '[{"a":1},{"a":2}]',
    '{"a":{"a":"a"}}',
    '{"a":["a","a"]}',
    '{"a":"\\"a\\":1","b":"a"}',
  ]) {
    expect(parse(text)).toEqual(JSON.parse(text));
  }
});

test("names the position of a syntax error without quoting the text", () => {
  expect(() => parse('{"key": "secret" "x"}')).toThrow(/malformed \(line 1 column 18\)/);
  expect(() => parse('{"key": "secret" "x"}')).not.toThrow(/secret/);
});

test("keeps a prototype name as a plain key", () => {
  expect(Object.keys(Object(parse('{"__proto__":{"polluted":1}}')))).toEqual(["__proto__"]);
  expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
});

test("refuses nesting of any depth without recursion", () => {
  expect(parse("[".repeat(8) + "]".repeat(8))).toBeDefined();
  expect(() => parse("[".repeat(9) + "]".repeat(9))).toThrow("deeper than 8");
  expect(() => parse("[".repeat(1_000_000))).toThrow("deeper than 8");
});

test("takes linear time on a megabyte of backslashes and quotes", () => {
  const started = processorMs();
  expect(() => parse(`{"a":"${"\\".repeat(1_000_000)}`)).toThrow();
  expect(() => parse(`"${'\\"'.repeat(500_000)}`)).toThrow();
  expect(processorMs() - started).toBeLessThan(1_000);
});

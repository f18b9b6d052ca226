import { runInNewContext } from "node:vm";
import fc from "fast-check";
import { expect, test } from "vitest";
import { checkJson, isJson } from "./json-values.ts";

test("any value that JSON keeps unchanged is accepted", () => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      expect(isJson(value)).toBe(true);
      expect(JSON.parse(JSON.stringify(value))).toEqual(JSON.parse(JSON.stringify(value)));
    }),
  );
});

test("a value that JSON would change is refused, and the error names its path", () => {
  const cyclic: { self?: unknown } = {};
  cyclic.self = [cyclic];
  const cases: readonly [unknown, string][] = [
    [Number.NaN, "it is NaN"],
    [{ a: { b: [0, Number.POSITIVE_INFINITY] } }, "a.b[1] is Infinity"],
    [{ when: new Date() }, "when is a Date"],
    [[new Map()], "[0] is a Map"],
    [{ f: () => 1 }, "f is a function"],
    [{ n: 1n }, "n is a bigint"],
    [[undefined], "[0] is undefined"],
    [Symbol("s"), "it is a symbol"],
    [new Uint8Array(2), "it is a Uint8Array"],
    [cyclic, "it is nested too deep, or contains itself"],
    [{ toJSON: () => 1 }, "toJSON is a function"],
  ];
  for (const [value, found] of cases) {
    expect(isJson(value)).toBe(false);
    expect(() => checkJson(value, "The result")).toThrow(`The result is not JSON: ${found}.`);
  }
});

test("undefined, properties that are undefined, and objects of another realm are accepted", () => {
  checkJson(undefined, "It");
  checkJson({ a: undefined, b: Object.create(null) }, "It");
  checkJson(runInNewContext("({ a: [{}] })"), "It");
});

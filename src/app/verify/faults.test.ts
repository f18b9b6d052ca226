import fc from "fast-check";
import { expect, test } from "vitest";
import { faultsOf, respaced } from "./faults.ts";

const before = "export const one = 1;\n";
const after = `${before}export function over(total, limit) {
  // More than the limit.
  if (total >= limit && limit > 0) return true;
  return total + 1;
}
export const twice = (value) => value * 2;
`;

test("faults lie in the lines that a change added, one each, then those of a kind together", () => {
  const faults = faultsOf([{ path: "a.ts", before, after }], 24);
  const singles = faults.filter(({ how }) => !how.includes("lines"));
  expect(singles.map(({ line, how }) => `${line} ${how}`)).toEqual([
    "2 the line is missing",
    '4 ">=" is "<"',
    "4 true is false",
    "4 a number is one more",
    "4 the line is missing",
    "5 returns nothing",
    '5 "+" is "-"',
    "5 a number is one more",
    "5 the line is missing",
    "7 returns nothing",
    '7 "*" is "+"',
    "7 a number is one more",
    "7 the line is missing",
  ]);
  for (const { text } of singles) {
    const changed = text.split("\n").filter((line, at) => line !== after.split("\n")[at]);
    expect(changed).toHaveLength(1);
  }
  expect(faults.filter(({ how }) => how.includes("lines")).map(({ how }) => how)).toEqual([
    '">=" is "<", in 3 lines',
    "a number is one more, in 3 lines",
    "returns nothing, in 2 lines",
  ]);
});

test("a few faults are spread over a large change, and none is put into what was there", () => {
  const lines = Array.from({ length: 1_000 }, (_, at) => `x${at} = ${at} + y;`).join("\n");
  const faults = faultsOf([{ path: "a.js", before: "", after: lines }], 10);
  expect(faults.filter(({ how }) => !how.includes("lines"))).toHaveLength(10);
  expect(Math.max(...faults.map(({ line }) => line))).toBeGreaterThan(800);
  expect(faultsOf([{ path: "a.js", before: lines, after: `${lines}\n` }], 10)).toEqual([]);
});

test("other spaces change no line that was there, and no line with quotes, comments or patterns", () => {
  expect(
    respaced({ path: "a.js", before: "a = b;\n", after: 'a = b;\nc = d + e;\nf = "g h";\ni = j; // k\n' }),
  ).toBe('a = b;\nc  =  d  +  e;\nf = "g h";\ni = j; // k\n');
});

test("any text has faults that differ from it, and keeps its words when it gets other spaces", () => {
  fc.assert(
    fc.property(fc.string(), fc.string(), (old, text) => {
      const file = { path: "a.py", before: old, after: text };
      for (const fault of faultsOf([file], 5)) expect(fault.text).not.toBe(text);
      expect(respaced(file).replace(/ +/g, " ")).toBe(text.replace(/ +/g, " "));
    }),
  );
});

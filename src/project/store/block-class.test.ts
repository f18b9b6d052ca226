import { expect, test } from "vitest";
import { lifecycles } from "../../protocol/enums.ts";
import { classIdOf, keyRangeOf, toKey, weightOf } from "./block-row.ts";

test("the keys of a class are one range", () => {
  expect(classIdOf(toKey(3, 7))).toBe(3);
  expect(keyRangeOf(3)).toEqual([BigInt(toKey(3, 0)), BigInt(toKey(4, 0)) - 1n]);
  expect(Number.isSafeInteger(toKey(10_000, 2 ** 32 - 1))).toBe(true);
});

test.each([
  ["critical", [1, 0.5, 0.2, 0]],
  ["high", [0.8, 0.4, 0.16, 0]],
  ["medium", [0.5, 0.25, 0.1, 0]],
  ["low", [0.3, 0.15, 0.06, 0]],
] as const)("a %s block that is active, deprecated, legacy or obsolete weighs %j", (priority, weights) => {
  const found = lifecycles.map((lifecycle) => weightOf({ lifecycle, priority }));
  for (const [index, weight] of weights.entries()) expect(found[index]).toBeCloseTo(weight, 9);
});

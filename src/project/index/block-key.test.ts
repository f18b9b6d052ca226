import fc from "fast-check";
import { expect, test } from "vitest";
import { frameworks, lifecycles, priorities, specTypes } from "../../protocol/spec-block.ts";
import {
  classCodeOf,
  classCodeOfKey,
  classOf,
  createClassCodes,
  keyRangeOf,
  toKey,
  weightOf,
} from "./block-key.ts";

test("lists of any length keep their values apart: each combination has a code of its own, and reads back", () => {
  const list = fc.uniqueArray(fc.string({ minLength: 1 }), { minLength: 1, maxLength: 9 });
  fc.assert(
    fc.property(fc.array(list, { minLength: 1, maxLength: 4 }), (lists) => {
      const codes = createClassCodes(lists);
      const all = lists.reduce<readonly (readonly string[])[]>(
        (above, values) => above.flatMap((start) => values.map((value) => [...start, value])),
        [[]],
      );
      const given = all.map((values) => codes.encode(values));
      expect(given).toEqual(all.map((_, index) => index));
      expect(given.map((code) => codes.decode(code))).toEqual(all);
    }),
    { numRuns: 50 },
  );
});

test("a fifth type, priority and lifecycle change no other value of a class", () => {
  const wider = createClassCodes([
    [...lifecycles, "draft"],
    [...priorities, "none"],
    [...frameworks, "fw_x"],
    [...specTypes, "scenario"],
  ]);
  for (const values of [
    ["active", "low", "custom", "scenario"],
    ["draft", "none", "fw_x", "requirement"],
    ["obsolete", "none", "fw_a", "constraint"],
  ])
    expect(wider.decode(wider.encode(values))).toEqual(values);
});

test("every class of a block reads back from its code and from its key, and ranges of keys do not meet", () => {
  const seen = new Set<number>();
  for (const lifecycle of lifecycles)
    for (const priority of priorities)
      for (const framework of frameworks)
        for (const spec_type of specTypes) {
          const one = { lifecycle, priority, framework, spec_type };
          const code = classCodeOf(one);
          expect(classOf(code)).toEqual(one);
          const { from, to } = keyRangeOf(code);
          expect([classCodeOfKey(from), classCodeOfKey(to), toKey(code, 0)]).toEqual([code, code, from]);
          expect(Number.isSafeInteger(to)).toBe(true);
          seen.add(code);
        }
  expect(seen.size).toBe(lifecycles.length * priorities.length * frameworks.length * specTypes.length);
});

test.each([
  ["critical", [1, 0.5, 0.2, 0]],
  ["high", [0.8, 0.4, 0.16, 0]],
  ["medium", [0.5, 0.25, 0.1, 0]],
  ["low", [0.3, 0.15, 0.06, 0]],
] as const)("a %s block that is active, deprecated, legacy or obsolete weighs %j", (priority, weights) => {
  const found = lifecycles.map((lifecycle) =>
    weightOf(classCodeOf({ lifecycle, priority, framework: "custom", spec_type: "task" })),
  );
  for (const [index, weight] of weights.entries()) expect(found[index]).toBeCloseTo(weight, 9);
});

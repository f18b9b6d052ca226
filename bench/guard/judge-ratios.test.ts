import { expect, test } from "vitest";
import { judgeRatios, toLimits } from "./judge-ratios.ts";

const limits = { loop: { measured: 4, limit: 6 }, index: { measured: 10, limit: 15 } };

test("ratios within their limits have no fault", () => {
  expect(
    judgeRatios(
      [
        { name: "loop", ratio: 6 },
        { name: "index", ratio: 3 },
      ],
      limits,
    ),
  ).toEqual([]);
});

test("a ratio beyond its limit is reported with its limit and what to do", () => {
  const [fault, ...others] = judgeRatios(
    [
      { name: "loop", ratio: 6.06 },
      { name: "index", ratio: 9 },
    ],
    limits,
  );
  expect(fault).toBe(
    '"loop" takes 6.1 times its floor; its limit is 6, and it was 4 when the limit was written. Make it cheaper, or raise the limit in bench/ratios.json and say in the commit why.',
  );
  expect(others).toEqual([]);
});

test("a measurement without a limit and a limit without a measurement are faults", () => {
  expect(judgeRatios([{ name: "prompt", ratio: 1 }], { loop: limits.loop })).toEqual([
    "\"prompt\" has no limit in bench/ratios.json: run 'npm run bench:guard -- --write'.",
    '"loop" has a limit in bench/ratios.json, and was not measured.',
  ]);
});

test("limits that a run writes let the same run pass, with room for a busy machine", () => {
  const ratios = [{ name: "loop", ratio: 4.321 }];
  expect(toLimits(ratios)).toEqual({ loop: { measured: 4.3, limit: 6.9 } });
  expect(judgeRatios(ratios, toLimits(ratios))).toEqual([]);
});

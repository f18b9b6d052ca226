import { expect, test } from "vitest";
import { judgeCounts } from "./judge-counts.ts";

const loop = { bytes: 100_000, kept: 9_000, waiting: 12_000, promises: 200, timers: 0, statements: 10 };

test("counts within five percent of the known ones have no fault", () => {
  expect(judgeCounts({ loop: { ...loop, bytes: 105_000, promises: 150 } }, { loop })).toEqual([]);
});

test("a count that grows is reported with both figures and what to do", () => {
  expect(judgeCounts({ loop: { ...loop, statements: 11 } }, { loop })).toEqual([
    '"loop" costs 11 statements; it cost 10 when the limit was written. Make it cheaper, or raise the count in bench/counts.json and say in the commit why.',
  ]);
  expect(judgeCounts({ loop: { ...loop, timers: 1 } }, { loop })).toHaveLength(1);
});

test("counts without a limit and a limit without counts are faults", () => {
  expect(judgeCounts({ turn: loop }, { loop })).toEqual([
    "\"turn\" has no counts in bench/counts.json: run 'npm run bench:guard -- --write'.",
    '"loop" has counts in bench/counts.json, and was not counted.',
  ]);
});

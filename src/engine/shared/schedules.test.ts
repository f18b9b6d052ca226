import { expect, test } from "vitest";
import { nextOccurrence } from "./schedules.ts";

const next = (cron: string, timezone: string | undefined, after: string): string | undefined => {
  const at = nextOccurrence({ cron, timezone }, Date.parse(after));
  return at === undefined ? undefined : new Date(at).toISOString();
};

test("times are in the time zone, also across changes of daylight saving time", () => {
  expect(next("0 9 * * *", undefined, "2026-11-21T10:00:00Z")).toBe("2026-11-22T09:00:00.000Z");
  expect(next("0 9 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z")).toBe("2026-03-29T07:00:00.000Z");
  expect(next("0 9 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z")).toBe("2026-10-25T08:00:00.000Z");
  // That night the clock jumps from two to three: a time in between occurs right after the jump.
  expect(next("30 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z")).toBe("2026-03-29T01:00:00.000Z");
});

test("an occurrence is later than the start time, also by a second", () => {
  expect(next("*/10 * * * * *", "UTC", "2026-11-21T10:00:10Z")).toBe("2026-11-21T10:00:20.000Z");
  expect(next("0 0 29 2 *", "UTC", "2026-11-21T10:00:00Z")).toBe("2028-02-29T00:00:00.000Z");
});

test("a date that does not exist never occurs", () => {
  expect(next("0 0 31 2 *", "UTC", "2026-11-21T10:00:00Z")).toBeUndefined();
});

import { expect, test } from "vitest";
import { nextOccurrence } from "./schedules.ts";

const next = (cron: string, timezone: string | undefined, after: string): string | undefined => {
  const at = nextOccurrence({ cron, timezone }, Date.parse(after));
  return at === undefined ? undefined : new Date(at).toISOString();
};

test("times are those of the zone, over the changes of its clocks", () => {
  expect(next("0 9 * * *", undefined, "2026-11-21T10:00:00Z")).toBe("2026-11-22T09:00:00.000Z");
  expect(next("0 9 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z")).toBe("2026-03-29T07:00:00.000Z");
  expect(next("0 9 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z")).toBe("2026-10-25T08:00:00.000Z");
  // That night goes from two to three: what was due in between comes as soon as it is over.
  expect(next("30 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z")).toBe("2026-03-29T01:00:00.000Z");
});

test("an occurrence is after the time that is given, also to the second", () => {
  expect(next("*/10 * * * * *", "UTC", "2026-11-21T10:00:10Z")).toBe("2026-11-21T10:00:20.000Z");
  expect(next("0 0 29 2 *", "UTC", "2026-11-21T10:00:00Z")).toBe("2028-02-29T00:00:00.000Z");
});

test("a day that never is never comes", () => {
  expect(next("0 0 31 2 *", "UTC", "2026-11-21T10:00:00Z")).toBeUndefined();
});

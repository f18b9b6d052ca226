import { expect, test } from "vitest";
import { fromNow, span } from "./safe-text.ts";

test.each([
  [0, "0 ms"],
  [999, "999 ms"],
  [12_340, "12.3 s"],
  [59_960, "1 min"],
  [250_000, "4 min 10 s"],
  [3_599_700, "1 h"],
  [7_500_000, "2 h 5 min"],
  [86_399_999, "1 d"],
  [273_600_000, "3 d 4 h"],
])("%d ms are %s", (ms, text) => {
  expect(span(ms)).toBe(text);
});

test.each([
  ["2026-11-22T10:00:00.400Z", "now"],
  ["2026-11-22T09:59:48.000Z", "12 s ago"],
  ["2026-11-22T09:01:00.000Z", "59 min ago"],
  ["2026-11-20T10:00:00.000Z", "2 d ago"],
  ["2026-11-22T13:00:00.000Z", "in 3 h"],
  ["never", "never"],
])("%s is %s at ten o'clock", (time, text) => {
  expect(fromNow(time, Date.parse("2026-11-22T10:00:00.000Z"))).toBe(text);
});

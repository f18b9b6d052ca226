import { expect, test } from "vitest";
import { earlierReceipt, isNoAnswer } from "./retry-rules.ts";

test("a request with the key of cancelled work repeats the work only if it came after the cancellation", () => {
  const cancelled = { status: "cancelled", error: null, ended_at: 1_000, accepted_at: 0 };
  expect([999, 1_000, 1_001].map((since) => isNoAnswer(cancelled, since))).toEqual([false, true, true]);
  expect(earlierReceipt(cancelled).error).toEqual({ type: "aborted", message: "It was cancelled." });
});

test("a request repeats work that failed with an error that another attempt may change", () => {
  const failed = (type: string) => ({
    status: "failed",
    error: JSON.stringify({ type, message: "No." }),
    ended_at: 1_000,
  });
  expect(isNoAnswer(failed("model_error"), 0)).toBe(true);
  expect(isNoAnswer(failed("budget_exceeded"), 2_000)).toBe(false);
  expect(isNoAnswer({ status: "completed", error: null, ended_at: 1_000 }, 2_000)).toBe(false);
});

import { expect, test } from "vitest";
import { processorMs } from "../testing/processor-time.ts";
import { suggest } from "./error-text.ts";

test.each([
  ["prot", "port"],
  ["PORT", "port"],
  ["includes", "include"],
  ["hots", "host"],
  ["zzz", undefined],
  ["", undefined],
])("%j means %j", (text, meant) => {
  expect(suggest(text, ["host", "port", "include", "exclude"])).toBe(meant);
});

test("the most similar candidate wins; among equals, the first", () => {
  expect(suggest("cat", ["cart", "cats", "bat"])).toBe("cart");
  expect(suggest("checkout", ["checkouts", "checkout"])).toBe("checkout");
});

test("long texts are not compared", () => {
  const start = processorMs();
  expect(suggest("a".repeat(100_000), ["b".repeat(100_000)])).toBeUndefined();
  expect(processorMs() - start).toBeLessThan(100);
});

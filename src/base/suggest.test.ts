import { expect, test } from "vitest";
import { processorMs } from "../testing/processor-time.ts";
import { suggest } from "./suggest.ts";

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

test("the nearest wins, the first of equals", () => {
  expect(suggest("cat", ["cart", "cats", "bat"])).toBe("cart");
  expect(suggest("checkout", ["checkouts", "checkout"])).toBe("checkout");
});

test("long texts cost no more than a glance", () => {
  const start = processorMs();
  expect(suggest("a".repeat(100_000), ["b".repeat(100_000)])).toBeUndefined();
  expect(processorMs() - start).toBeLessThan(100);
});

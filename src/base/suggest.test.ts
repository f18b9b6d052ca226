import { expect, test } from "vitest";
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
  const start = performance.now();
  expect(suggest("a".repeat(100_000), ["b".repeat(100_000)])).toBeUndefined();
  expect(performance.now() - start).toBeLessThan(100);
});

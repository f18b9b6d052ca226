import fc from "fast-check";
import { expect, test } from "vitest";
import { isWantedTool, matchesName } from "./read-catalogue.ts";

test("without lists every tool is offered, with allow only the named ones, with deny all others", () => {
  expect(isWantedTool("get", {})).toBe(true);
  expect(isWantedTool("get", { allow: ["get_*", "list"] })).toBe(false);
  expect(isWantedTool("get_issue", { allow: ["get_*", "list"] })).toBe(true);
  expect(isWantedTool("get_issue", { deny: ["*_issue"] })).toBe(false);
  expect(isWantedTool("get_issue", { allow: ["get_*"], deny: ["get_issue"] })).toBe(false);
  expect(isWantedTool("get", { allow: [] })).toBe(false);
});

test("a pattern matches like a regular expression with .* in place of *", () => {
  const letters = fc.constantFrom("a", "b", "*", ".");
  fc.assert(
    fc.property(
      fc.string({ unit: fc.constantFrom("a", "b", "."), maxLength: 8 }),
      fc.string({ unit: letters, maxLength: 8 }),
      (name, pattern) => {
        const source = pattern.replaceAll(".", "\\.").replaceAll("*", ".*");
        expect(matchesName(name, pattern)).toBe(new RegExp(`^${source}$`).test(name));
      },
    ),
    { numRuns: 2_000 },
  );
});

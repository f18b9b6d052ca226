import fc from "fast-check";
import { expect, test } from "vitest";
import { createWordSearch } from "./list-guidelines.ts";

const plainSearch = (query: string, title: string, content: string): boolean =>
  query
    .toLowerCase()
    .split(/\s+/)
    .every((word) => title.toLowerCase().includes(word) || content.toLowerCase().includes(word));

test("every word must occur, in title or content, in any case", () => {
  const record = { title: "Write Tests", content: "One rule per TEST, größer als null.\nK" };
  expect(createWordSearch("")(record)).toBe(true);
  expect(createWordSearch(" tests  RULE ")(record)).toBe(true);
  expect(createWordSearch("ule est")(record)).toBe(true);
  expect(createWordSearch("GRÖSSER")(record)).toBe(false);
  expect(createWordSearch("GRÖß")(record)).toBe(true);
  expect(createWordSearch("rule missing")(record)).toBe(false);
  expect(createWordSearch("(((( [")(record)).toBe(false);
  expect(createWordSearch("x")({ title: "", content: "" })).toBe(false);
});

test("it finds what a search without signatures finds", () => {
  const text = fc.string({ unit: fc.constantFrom(..."abAB \n.İK\u212aßé"), maxLength: 30 });
  fc.assert(
    fc.property(text, text, text, (query, title, content) => {
      expect(createWordSearch(query)({ title, content })).toBe(plainSearch(query, title, content));
    }),
    { numRuns: 5000 },
  );
});

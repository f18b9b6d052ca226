import { expect, test } from "vitest";
import { matchesOf } from "./matches.ts";

const numbers = /(?<sign>-)?(\d+)/gu;
const empty = /\b(?=the\b)/g;

test.each(["", "none", "1", "a 1, -22 and 𝟛33", "-1-2-3", "1 ".repeat(5_000)])(
  "the matches in %#. text are those of matchAll",
  (text) => {
    expect([...matchesOf(numbers, text)]).toEqual([...text.matchAll(numbers)]);
  },
);

test("a search that was left in the middle does not change the next one", () => {
  numbers.exec("1 2 3");
  expect(Array.from(matchesOf(numbers, "4 5"), ([match]) => match)).toEqual(["4", "5"]);
});

test("a pattern that matches an empty text is an error, not an endless loop", () => {
  expect(() => matchesOf(empty, "see the end")).toThrow("The pattern matches an empty text.");
});

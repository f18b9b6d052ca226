import { expect, test } from "vitest";
import { readPlain, splitInline } from "./inline-markdown.ts";

test("a criterion is shown with its bold words and code, without marks of lists and links", () => {
  expect(splitInline("- **WHEN** a `cart` has *many* lines\n- THEN see [the design](design.md)")).toEqual([
    [
      { kind: "strong", text: "WHEN" },
      { kind: "text", text: " a " },
      { kind: "code", text: "cart" },
      { kind: "text", text: " has " },
      { kind: "emphasis", text: "many" },
      { kind: "text", text: " lines" },
    ],
    [
      { kind: "text", text: "THEN see " },
      { kind: "text", text: "the design" },
    ],
  ]);
  expect(readPlain("1. __IF__ a * b * c and 2 ** 3\n\n> THEN `x_y_z`")).toBe(
    "IF a * b * c and 2 ** 3 THEN x_y_z",
  );
});

test("a text of marks without ends takes linear time", () => {
  const start = performance.now();
  for (const mark of ["*", "**", "`", "_", "[", "[a]("]) splitInline(mark.repeat(5_000));
  expect(performance.now() - start).toBeLessThan(5_000);
});

import fc from "fast-check";
import { expect, test } from "vitest";
import { lineDiff } from "./line-diff.ts";

test("changes are printed with the lines around them", () => {
  expect(lineDiff("a\nb\nc\nd\ne\nf\n", "a\nb\nc\nd\nX\nf\n")).toEqual([
    "@@ -2 +2 @@",
    " b",
    " c",
    " d",
    "-e",
    "+X",
    " f",
  ]);
  expect(lineDiff("", "a\n")).toEqual(["@@ -1 +1 @@", "+a"]);
  expect(lineDiff("a\n", "a\n")).toEqual([]);
});

test("a diff of short texts marks old and new lines", () => {
  const text = fc.array(fc.constantFrom("a", "b", "c"), { maxLength: 4 }).map((lines) => lines.join("\n"));
  fc.assert(
    fc.property(text, text, (before, after) => {
      const lines = lineDiff(before, after).filter((line) => !line.startsWith("@@"));
      const of = (marks: string): string =>
        lines.flatMap((line) => (marks.includes(line[0] ?? "") ? [line.slice(1)] : [])).join("\n");
      if (lines.length > 0 && Math.max(before.length, after.length) < 8) {
        expect(of(" -")).toBe(before);
        expect(of(" +")).toBe(after);
      }
    }),
  );
});

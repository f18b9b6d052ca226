import fc from "fast-check";
import { expect, test } from "vitest";
import { scanMarkdown } from "./scan-markdown.ts";
import { headingsBetween, sectionsOf, withoutBlankEdges } from "./segments.ts";

const text = "intro\n\n# A\n\na\n\n## B\nb\n\n### C\nc\n\n## D\n# E\ne";

test("a section ends at the next heading of the same or a higher level", () => {
  const sections = sectionsOf(scanMarkdown(text), () => true);
  expect(
    sections.map(({ heading, bodyLine, endLine, body }) => [heading.title, bodyLine, endLine, body]),
  ).toEqual([
    ["A", 4, 13, "a\n\n## B\nb\n\n### C\nc\n\n## D"],
    ["B", 8, 12, "b\n\n### C\nc"],
    ["C", 11, 12, "c"],
    ["D", 14, 13, ""],
    ["E", 15, 15, "e"],
  ]);
});

test("only the accepted sections are returned", () => {
  const sections = sectionsOf(scanMarkdown(text), ({ level }) => level === 2);
  expect(sections.map(({ heading }) => heading.title)).toEqual(["B", "D"]);
});

test("blank lines at the edges of a range are left out, up to nothing", () => {
  const scan = scanMarkdown("\n \na\n\nb\n\n");
  expect(withoutBlankEdges(scan, 1, 6)).toEqual({ from: 3, to: 5 });
  expect(withoutBlankEdges(scan, 1, 2)).toEqual({ from: 3, to: 2 });
});

test("the headings of a range are those whose first line is in it", () => {
  const scan = scanMarkdown(text);
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 20 }), fc.integer({ min: 0, max: 20 }), (from, to) => {
      const expected = scan.headings.filter(({ line }) => line >= from && line <= to);
      expect(headingsBetween(scan, from, to)).toEqual(expected);
    }),
  );
});

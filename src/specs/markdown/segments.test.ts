import fc from "fast-check";
import { expect, test } from "vitest";
import { scanMarkdown } from "./scan-markdown.ts";
import {
  headingLine,
  headingsBetween,
  listItemEnd,
  listItemText,
  sectionsOf,
  segmentsOf,
  toListItem,
  withoutBlankEdges,
  writeSegments,
} from "./segments.ts";

const segments = (text: string, level: number) => segmentsOf(scanMarkdown(text), level);

test("segments do not overlap, and keep the headings below the chosen levels", () => {
  expect(
    segments("intro\n\n# A\n\na\n\n## B\n### C\nc\n# D\n", 2).map(
      ({ heading, parents, body, startLine, endLine }) => [
        heading?.title,
        parents.map(({ title }) => title),
        body,
        startLine,
        endLine,
      ],
    ),
  ).toEqual([
    [undefined, [], "intro", 1, 1],
    ["A", [], "a", 3, 5],
    ["B", ["A"], "### C\nc", 7, 9],
    ["D", [], "", 10, 10],
  ]);
});

test("a comment or an empty text has no content", () => {
  expect(
    segments("<!-- a -->\n# A\n<!-- b -->\n# B\n\n## C\n", 2).map(({ hasContent, hasChildren }) => [
      hasContent,
      hasChildren,
    ]),
  ).toEqual([
    [false, false],
    [false, true],
    [false, false],
  ]);
});

test("a section whose level closes nothing is separated by its parent, written again", () => {
  const title = (name: string, level: number) => ({ title: name, level });
  const text = writeSegments([
    { ...title("A", 2), parents: [title("T", 1)], body: "a" },
    { ...title("B", 3), parents: [title("T", 1)], body: "b" },
    { ...title("C", 3), parents: [title("T", 1), title("U", 2)], body: "c" },
  ]);
  expect(text).toBe("# T\n\n## A\n\na\n\n# T\n\n### B\n\nb\n\n## U\n\n### C\n\nc\n");
});

test("a title that ends in number signs keeps them", () => {
  for (const title of ["C #", "#", "a ##", "C#"]) {
    expect(scanMarkdown(headingLine(title, 2)).headings[0]?.title).toBe(title);
  }
});

test("written segments read back as the same segments", () => {
  const line = fc.constantFrom(
    "# A",
    "## B",
    "### C",
    "#### D",
    "text",
    "",
    "- item",
    "```\n# x\n```",
    "A\n===",
    "B\n---",
    "<!-- c -->",
  );
  fc.assert(
    fc.property(fc.array(line, { maxLength: 12 }), fc.integer({ min: 1, max: 4 }), (lines, level) => {
      const view = (text: string) =>
        segments(text, level)
          .filter(({ body }) => body !== "")
          .map(({ heading, parents, body }) => ({
            ...(heading !== undefined && { title: heading.title }),
            level: heading?.level ?? 0,
            parents,
            body,
          }));
      const before = view(lines.join("\n"));
      expect(view(writeSegments(before))).toEqual(before);
    }),
  );
});

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

function itemOf(text: string): string {
  const scan = scanMarkdown(text);
  return listItemText(scan, 1, listItemEnd(scan, 1, scan.lineCount));
}

test("an item has its wrapped lines, paragraphs, nested lists and code", () => {
  expect(itemOf("- a\nlazy\n  b\n\n  c\n  - d\n\n  ```\n  e\n  ```\n- next")).toBe(
    "a\nlazy\nb\n\nc\n- d\n\n```\ne\n```",
  );
  expect(itemOf("12. a\n    b\n\tc")).toBe("a\nb\nc");
  expect(itemOf("-\n  a")).toBe("a");
});

test("an item ends at a sibling, a heading, a break, and text after a blank line", () => {
  for (const end of ["- b", " * b", "2) b", "# b", "---", "\nb", "\n```\nb\n```"])
    expect(itemOf(`- a\n${end}`)).toBe("a");
});

test("a written item reads back as the same text", () => {
  const line = fc.constantFrom(
    "a",
    "  b",
    "- c",
    "",
    "```",
    "code",
    "===",
    "---",
    "# d",
    "1. e",
    "\tf",
    "~~~",
  );
  fc.assert(
    fc.property(fc.array(line, { maxLength: 8 }), (lines) => {
      const text = itemOf(`- x\n${lines.map((each) => (each === "" ? "" : `  ${each}`)).join("\n")}`);
      expect(itemOf(toListItem("-", text))).toBe(text);
    }),
    { numRuns: 1000 },
  );
});

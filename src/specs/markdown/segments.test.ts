import fc from "fast-check";
import { expect, test } from "vitest";
import { scanMarkdown } from "./scan-markdown.ts";
import { headingLine, segmentsOf, writeSegments } from "./segments.ts";

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

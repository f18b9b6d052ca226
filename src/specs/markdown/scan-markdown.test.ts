import { Parser } from "commonmark";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { contentOfCase, readMarkdownCases } from "../../../tests/security/markdown-case.ts";
import { rounds } from "../../testing/campaign.suite.ts";
import { processorMs } from "../../testing/processor-time.ts";
import { lineKinds, lineText, maxTitleLength, scanMarkdown, textOfLines } from "./scan-markdown.ts";

function headingsOf(text: string): [number, string][] {
  return scanMarkdown(text).headings.map(({ level, title }) => [level, title]);
}

function kindsOf(text: string): string {
  return scanMarkdown(text).kinds.join("");
}

const { cases: securityCases } = readMarkdownCases();

describe("the hostile files of tests/security/markdown.json", () => {
  const withHeadings = securityCases.filter(({ expected, fixture }) => {
    return (
      fixture === undefined &&
      (expected.headings ?? expected.has_heading ?? expected.heading_count) !== undefined
    );
  });
  test.each(withHeadings.map((one) => [`${one.id} ${one.why}`, one] as const))("%s", (_name, one) => {
    const text = Buffer.from(contentOfCase(one))
      .toString("utf8")
      .replace(/^\ufeff/, "");
    const headings = headingsOf(text);
    const { expected } = one;
    if (expected.headings !== undefined) expect(headings).toEqual(expected.headings);
    if (expected.has_heading !== undefined) expect(headings).toContainEqual(expected.has_heading);
    if (expected.heading_count !== undefined) expect(headings).toHaveLength(expected.heading_count);
  });
});

describe("headings, fences and HTML as CommonMark has them", () => {
  /** Level and line of the top-level headings, after the reference parser of CommonMark. */
  function referenceHeadings(text: string): [number, number][] {
    const headings: [number, number][] = [];
    for (let node = new Parser().parse(text).firstChild; node !== null; node = node.next) {
      if (node.type === "heading") headings.push([node.level, node.sourcepos[0][0]]);
    }
    return headings;
  }

  // Left out, since the scanner knowingly differs: headings in lists and quotes, HTML blocks of any
  // tag name (kind 7), and text right behind an empty list item or indented code.
  const common = [
    ..."# one|## two ##|### three #x|####### seven|#no|#\ttab|#|## |text".split("|"),
    ..."===|---|=|--|- - -|***|___|=== x|--- x".split("|"),
    ..."```|````|~~~|~~~~|``` js|``` a`b|~~~ a`b|``".split("|"),
    ..."<!-- c -->|<!--|-->|<!-->|<div>|</div>|<DIV class='x'>|<script>|<pre>|<?php|<!DOCTYPE html>".split(
      "|",
    ),
    ...["", "", "", "", "", " ", "<b>inline</b>", "a < b", "<https://a.b>", "<Card> text"],
    ...["<script>\n# a\n\n</script>\n", "<pre>\n# a\n</pre> b\n", "<?\n# a\n?>", "<![CDATA[\n# a\n]]>"],
  ];
  const lists = "- item|* item|1. item|2. item|12) item|> quote|+ plus|-no list|1.no list".split("|");
  const indented = [
    "   # indented",
    "  more text",
    "   ---",
    "   ```",
    "    # code\n",
    "\t# tab code\n",
    "    ---\n",
  ];

  test.each([
    ["lists", [...common, ...lists]],
    ["indented lines", [...common, ...indented]],
  ])("the same headings come out of generated documents with %s", (_name, parts) => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom(...parts), { maxLength: 14 }), (document) => {
        // A first line that could open front matter is another matter.
        const text = ["intro", "", ...document].join("\n");
        const headings = scanMarkdown(text).headings.map((heading) => [heading.level, heading.line]);
        expect(headings, text).toEqual(referenceHeadings(text));
      }),
      { numRuns: rounds(1_000, 10_000) },
    );
  });
});

describe("what the scanner knows beyond CommonMark", () => {
  test("a fence can be indented as far as its list item", () => {
    expect(kindsOf("- a\n      ```\n      # x\n      ```\n# h")).toBe("01110");
  });

  test("front matter is closed by --- or ..., and is not a heading", () => {
    const scan = scanMarkdown("---\ntitle: x\n---\n# H\n");
    expect([scan.kinds.join(""), scan.bodyLine, scan.headings.length]).toEqual(["4440", 4, 1]);
    expect(scanMarkdown("---\na: b\n...\ntext").bodyLine).toBe(4);
    expect(scanMarkdown("text\n---\na: b\n---\n").bodyLine).toBe(1);
  });

  test("a fence that is never closed runs to the end, and is reported", () => {
    expect(scanMarkdown("a\n```js\n# x\n").unclosed).toEqual([{ kind: "fence", line: 2 }]);
    expect(scanMarkdown("a\n<!--\n# x\n").unclosed).toEqual([{ kind: "comment", line: 2 }]);
    expect(scanMarkdown("---\na: b\n# x\n").unclosed).toEqual([{ kind: "front_matter", line: 1 }]);
    expect(scanMarkdown("```\n```\n<!-- -->\n").unclosed).toEqual([]);
  });

  test("titles have no control characters and a bounded length", () => {
    expect(headingsOf("# A\u0000B\u001b[2J\n")).toEqual([[1, "A B [2J"]]);
    const [, title = ""] = headingsOf(`# ${"😀".repeat(400)}`)[0] ?? [];
    expect(title.length).toBeLessThanOrEqual(maxTitleLength);
    expect(title.isWellFormed()).toBe(true);
  });
});

describe("lines and offsets", () => {
  const lineEnd = fc.constantFrom("\n", "\r\n", "\r");
  const piece = fc.constantFrom("", "# a", "text", "😀 ü", "```", "a\u2028b", "\ufeff");

  test("LF, CRLF and CR end lines, and the offsets of every line are right", () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(piece, lineEnd)), piece, (lines, last) => {
        const text = lines.map(([content, end]) => content + end).join("") + last;
        const scan = scanMarkdown(text);
        const expected = text.split(/\r\n|\n|\r/);
        if (expected.at(-1) === "") expected.pop();
        expect(expected.map((_, index) => lineText(scan, index + 1))).toEqual(expected);
        expect(scan.lineCount).toBe(expected.length);
        expect(scan.kinds).toHaveLength(expected.length);
        expect(textOfLines(scan, 1, scan.lineCount)).toBe(text.slice(0, scan.ends.at(-1) ?? 0));
      }),
    );
  });

  test("the line ends make no difference to headings and kinds", () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom("# a", "b", "---", "```", "", "<!--", "-->")), (lines) => {
        const scans = ["\n", "\r\n", "\r"].map((end) => scanMarkdown(lines.join(end)));
        for (const scan of scans) {
          expect(scan.headings).toEqual(scans[0]?.headings);
          expect(scan.kinds).toEqual(scans[0]?.kinds);
        }
      }),
    );
  });

  test("a heading has its first and last line", () => {
    expect(scanMarkdown("a\r\rTitle\rgoes on\r===\r# B").headings).toEqual([
      { level: 1, title: "Title goes on", line: 3, end_line: 5 },
      { level: 1, title: "B", line: 6, end_line: 6 },
    ]);
  });

  test("lines outside of the text are empty", () => {
    const scan = scanMarkdown("a\nb");
    expect([lineText(scan, 0), lineText(scan, 3), textOfLines(scan, 2, 1)]).toEqual(["", "", ""]);
    expect(scanMarkdown("")).toMatchObject({ lineCount: 0, headings: [], bodyLine: 1 });
  });
});

test("any text is scanned, with a kind for each line", () => {
  const known: number[] = Object.values(lineKinds);
  fc.assert(
    fc.property(fc.string({ unit: fc.constantFrom(..."#`~<>!-=-- \t\r\nab|*1.\u0000😀") }), (text) => {
      const scan = scanMarkdown(text);
      expect(scan.kinds.every((kind) => known.includes(kind))).toBe(true);
    }),
  );
});

test("hostile texts take linear time", () => {
  const texts = [
    "~~~\na\n".repeat(100_000),
    "``` a`b\n".repeat(100_000),
    "<div>\n".repeat(100_000),
    "<!--".repeat(200_000),
    "<!-- x\n".repeat(100_000),
    "text\n".repeat(200_000),
    `a\n${" ".repeat(500_000)}---`,
    `# ${"#".repeat(500_000)}`,
    `# ${" ".repeat(500_000)}a`,
    "- ".repeat(300_000),
    "---\n".repeat(200_000),
    "<script>\n".repeat(100_000),
  ];
  const start = processorMs();
  for (const text of texts) scanMarkdown(text);
  expect(processorMs() - start).toBeLessThan(4000);
});

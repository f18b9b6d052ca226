import { createElement } from "react";
import { renderToStaticMarkup } from "react-dom/server";
import ReactMarkdown from "react-markdown";
import remarkGfm from "remark-gfm";
import { expect, test } from "vitest";
import { fileOfLink } from "./link-target.ts";
import { splitBlocks } from "./split-blocks.ts";
import { isTame } from "./tame-markdown.ts";

test.each([
  ["design.md", { path: ".kiro/specs/auth/design.md" }],
  ["./design.md#L12", { path: ".kiro/specs/auth/design.md", line: 12 }],
  ["../../../src/app.ts?raw#L3-L9", { path: "src/app.ts", line: 3 }],
  ["/src/a%20b.ts", { path: "src/a b.ts" }],
  ["design.md#sessions", { path: ".kiro/specs/auth/design.md" }],
  ["../../../../etc/passwd", undefined],
  ["#criteria", undefined],
  ["", undefined],
  [".", { path: ".kiro/specs/auth" }],
  ["https://example.com/a.md", undefined],
  ["//example.com/a.md", undefined],
  ["/\\example.com", undefined],
  ["javascript:alert(1)", undefined],
  [" JavaScript:alert(1)", undefined],
  ["java\nscript:alert(1)", undefined],
  ["data:text/html,x", undefined],
  ["mailto:a@b.c", undefined],
  ["%", undefined],
  ["a%00b", undefined],
  ["a%5c..%5cb", undefined],
])("the link %j in a spec leads to a file of the repository, or to nothing", (href, place) => {
  expect(fileOfLink(href, ".kiro/specs/auth/requirements.md")).toEqual(place);
});

const render = (text: string): string =>
  splitBlocks(text)
    .map((block) =>
      isTame(block)
        ? renderToStaticMarkup(createElement(ReactMarkdown, { remarkPlugins: [remarkGfm] }, block))
        : "as it is",
    )
    .join("");

test("common Markdown is rendered, and HTML in it is text", () => {
  const rows = Array.from({ length: 80 }, (_, at) => `| **row ${at}** | [a](b.md) | \`x\` |`).join("\n");
  const text = `# Title\n\n- [x] done\n  - nested *item*\n    1. deep\n\n| a | b | c |\n|---|---|---|\n${rows}\n\n<script>alert(1)</script>\n\n> quoted\n\n\`\`\`ts\nconst a = "[[[[";\n\`\`\`\n`;
  const html = render(text);
  for (const part of [
    "<h1>",
    'type="checkbox"',
    "<table>",
    "<strong>row 79</strong>",
    "<blockquote>",
    "language-ts",
  ])
    expect(html).toContain(part);
  expect(html).not.toContain("<script>");
  expect(html).not.toContain("as it is");
});

test.each([
  ["quotes", ">".repeat(9_000)],
  ["quotes with spaces", "> ".repeat(9_000)],
  ["lists in lists", "1. ".repeat(6_000)],
  ["items in items", "- ".repeat(9_000)],
  ["lists that go in", Array.from({ length: 140 }, (_, at) => `${"  ".repeat(at)}- a`).join("\n")],
  ["open emphasis", "a*".repeat(9_000)],
  ["closing brackets", "]".repeat(19_000)],
  ["opening brackets", "[".repeat(19_000)],
  ["cells", `|${"a|".repeat(4_500)}\n|${"-|".repeat(4_500)}`],
  ["a long line", "x".repeat(10_000_000)],
])("%s are shown unchanged, without delay", (_name, text) => {
  const began = performance.now();
  expect(render(text)).toContain("as it is");
  expect(performance.now() - began).toBeLessThan(10_000);
});

test.each([
  ["quotes", "> ".repeat(16)],
  ["emphasis", "a*".repeat(1_000)],
  ["nested emphasis", `${"*a ".repeat(500)}${"b* ".repeat(500)}`],
  ["brackets", "]".repeat(1_000)],
  ["lists", Array.from({ length: 16 }, () => "1. ").join("")],
])("%s at the limit are rendered without an error", (_name, text) => {
  const began = performance.now();
  expect(render(text)).not.toContain("as it is");
  expect(performance.now() - began).toBeLessThan(10_000);
});

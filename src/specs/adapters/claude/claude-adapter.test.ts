import { expect, test } from "vitest";
import { claudeAdapter } from "./claude-adapter.ts";

const blocksOf = (text: string, path = "CLAUDE.md") =>
  claudeAdapter.parse({ path, text }).drafts.map(({ id, title, content, tags, metadata, span }) => ({
    id: id.kind === "base" ? id.value : "",
    title,
    content,
    tags,
    metadata,
    span: [span.start_line, span.end_line],
  }));

test("it reads the instruction files in any folder and the rules folder, and nothing else", () => {
  const paths = [
    "CLAUDE.md",
    "web/CLAUDE.md",
    ".claude/CLAUDE.md",
    ".claude/rules/a.md",
    ".claude/rules/b/c.md",
  ];
  expect(paths.filter((path) => !claudeAdapter.matches(path))).toEqual([]);
  const others = [
    "AGENTS.md",
    "docs/NOTCLAUDE.md",
    ".claude/skills/a.md",
    ".claude/rules/a.txt",
    "claude.md",
  ];
  expect(others.filter((path) => claudeAdapter.matches(path))).toEqual([]);
});

test("each section is a constraint with its heading, body and slug", () => {
  expect(
    blocksOf("# Shop\n\n## Code Style\n\n- Use tabs.\n\n### Names\n\nShort.\n\n## Tests\nFast.\n"),
  ).toEqual([
    {
      id: "fw_c-code-style",
      title: "Code Style",
      content: "- Use tabs.\n\n### Names\n\nShort.",
      tags: ["fw_c", "code-style"],
      metadata: { level: 2, parents: [{ level: 1, title: "Shop" }] },
      span: [3, 9],
    },
    {
      id: "fw_c-tests",
      title: "Tests",
      content: "Fast.",
      tags: ["fw_c", "tests"],
      metadata: { level: 2, parents: [{ level: 1, title: "Shop" }] },
      span: [11, 12],
    },
  ]);
});

test("text before the first heading, and a file without headings, are blocks named after the file", () => {
  expect(blocksOf("Be brief.\n\n# A\nx\n").map(({ id, content }) => [id, content])).toEqual([
    ["fw_c-claude", "Be brief."],
    ["fw_c-a", "x"],
  ]);
  expect(blocksOf("Never push.\n", ".claude/rules/git.md").map(({ id, title }) => [id, title])).toEqual([
    ["fw_c-git", "git"],
  ]);
});

test("the text of a first-level heading is a block, and so is a heading without text", () => {
  expect(
    blocksOf("# Shop\n\nA bookshop.\n\n## Never log passwords\n\n## B\ny\n").map((block) => block.content),
  ).toEqual(["A bookshop.", "Never log passwords", "y"]);
});

test("front matter is kept as spelled on the first block, and what is wrong with it is reported", () => {
  const [first, second] = blocksOf("---\npaths: **/*.ts\n---\n# A\nx\n# B\ny\n", ".claude/rules/ts.md");
  expect(first?.metadata).toEqual({ frontmatter: "paths: **/*.ts", level: 1 });
  expect(second?.metadata).toEqual({ level: 1 });
  const { diagnostics } = claudeAdapter.parse({
    path: ".claude/rules/ts.md",
    text: "---\npaths: [\n# A\nx\n",
  });
  expect(diagnostics.map(({ rule, line }) => [rule, line])).toEqual([["front-matter", 1]]);
});

test("headings in fences and comments are text", () => {
  expect(blocksOf("## A\n```md\n## B\n```\n<!--\n## C\n-->\n").map(({ title }) => title)).toEqual(["A"]);
});

test("files that a section mentions are found, with their lines", () => {
  const { drafts } = claudeAdapter.parse({ path: "CLAUDE.md", text: "## A\n\nSee `src/a.ts`.\n" });
  expect(drafts[0]?.mentions).toEqual([{ path: "src/a.ts", line: 3 }]);
});

test("an empty file, a blank one and one with only a comment have no blocks", () => {
  for (const text of ["", " \n\n", "<!-- note -->\n"]) expect(blocksOf(text)).toEqual([]);
});

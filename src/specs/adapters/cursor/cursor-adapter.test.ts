import { expect, test } from "vitest";
import { processorMs } from "../../../testing/processor-time.ts";
import { cursorAdapter } from "./cursor-adapter.ts";

const parse = (text: string, path = ".cursorrules") => cursorAdapter.parse({ path, text });
const rulesOf = (text: string, path?: string) =>
  parse(text, path).drafts.map(({ content, tags }) => [content, ...tags.slice(1)]);

test("it reads the three sources in any folder, and nothing else", () => {
  const paths = [
    ".cursorrules",
    "api/.cursorrules",
    ".cursor/rules.json",
    ".cursor/rules/a.mdc",
    "api/.cursor/rules/b/c.mdc",
  ];
  expect(paths.filter((path) => !cursorAdapter.matches(path))).toEqual([]);
  const others = [".cursor/rules/a.md", "rules.json", "a.mdc", ".cursor/mcp.json", "x.cursorrules"];
  expect(others.filter((path) => cursorAdapter.matches(path))).toEqual([]);
});

test("a JSON list has a constraint per entry, with its lines, topic and tags", () => {
  const text = `{
  "rules": [
    "Use strict mode.",
    { "rule": "Name tests as sentences.", "topic": "Testing", "tags": ["ci"], "globs": "*.ts" }
  ]
}`;
  const { drafts, diagnostics } = parse(text, ".cursor/rules.json");
  expect(diagnostics).toEqual([]);
  expect(drafts).toMatchObject([
    {
      id: { kind: "sequence", prefix: "fw_b-rule-" },
      framework: "fw_b",
      spec_type: "constraint",
      title: "Cursor rule: Use strict mode.",
      content: "Use strict mode.",
      tags: ["fw_b", "general"],
      metadata: {},
      span: { start_line: 3, end_line: 3 },
    },
    {
      title: "Cursor rule: Name tests as sentences.",
      content: "Name tests as sentences.",
      tags: ["fw_b", "testing", "ci"],
      metadata: { topic: "Testing", entry: { tags: ["ci"], globs: "*.ts" } },
      span: { start_line: 4, end_line: 4 },
    },
  ]);
});

test("entries without text are reported with their line, and the others load", () => {
  const { drafts, diagnostics } = parse(
    '{"rules": [\n7,\n"",\n{"id": 1},\n"Keep it."\n]}',
    ".cursor/rules.json",
  );
  expect(drafts.map(({ content }) => content)).toEqual(["Keep it."]);
  expect(diagnostics.map(({ line, field }) => [line, field])).toEqual([
    [2, "rules[0]"],
    [3, "rules[1]"],
    [4, "rules[2]"],
  ]);
});

test("text that is not JSON, and JSON that is not a rule list, is one diagnostic", () => {
  for (const text of ["{", '{"rule": "x"}', '{"rules": 3}', `${"[".repeat(200)}${"]".repeat(200)}`]) {
    const { drafts, diagnostics } = parse(text, ".cursor/rules.json");
    expect([drafts.length, diagnostics.length]).toEqual([0, 1]);
  }
});

test("groups of a JSON list are topics, also in .cursorrules", () => {
  const text =
    '{"rules": {"style": {"description": "On style.", "rules": ["Use tabs."]}, "git": ["Sign off."]}}';
  expect(rulesOf(text)).toEqual([
    ["On style.", "style"],
    ["Use tabs.", "style"],
    ["Sign off.", "git"],
  ]);
});

test("a list can hold groups, whose name is the topic and whose description is a rule", () => {
  const text =
    '{"rules": [{"name": "Git", "rules": ["Sign off."]}, {"description": "On it.", "rules": {"a": "B."}}]}';
  expect(rulesOf(text, ".cursor/rules.json")).toEqual([
    ["Sign off.", "git"],
    ["On it.", "general"],
    ["B.", "a"],
  ]);
});

test("in .cursorrules each outer list item and each paragraph is a rule, under its heading", () => {
  const text = `You are an expert.

# Style
- Use tabs,
  always.
  - nested
- No \`any\`.

\`\`\`ts
let a: unknown;
\`\`\`

1. Short names.
`;
  expect(rulesOf(text)).toEqual([
    ["You are an expert.", "general"],
    ["Use tabs,\nalways.\n- nested", "style"],
    ["No `any`.\n\n```ts\nlet a: unknown;\n```", "style"],
    ["Short names.", "style"],
  ]);
});

test("labels are topics: bold, with a colon, or short before a list", () => {
  const text = "Code style:\n\n- a\n\n**Tests**\n\nWrite them.\n\nKey conventions\n\n- b\n\nDo this.\n- c\n";
  expect(rulesOf(text)).toEqual([
    ["a", "code-style"],
    ["Write them.", "tests"],
    ["b", "key-conventions"],
    ["Do this.", "key-conventions"],
    ["c", "key-conventions"],
  ]);
});

test("a long line that ends with a colon is one rule with its list", () => {
  const lead = "Before you suggest or generate any code at all, look through the codebase for these:";
  expect(rulesOf(`${lead}\n\n- names\n- errors\n\nThen write.\n`)).toEqual([
    [`${lead}\n\n- names\n- errors`, "general"],
    ["Then write.", "general"],
  ]);
});

test("a heading or label with nothing below it is a rule, a heading above headings is not", () => {
  expect(rulesOf("# Rules\n## Never push\n## Style\n- a\n\nBe kind:\n")).toEqual([
    ["Never push", "never-push"],
    ["a", "style"],
    ["Be kind", "be-kind"],
  ]);
});

test("a rule file is one rule, titled by its heading, with its description as summary", () => {
  const text = "---\ndescription: How we test\nglobs: *.test.ts\n---\n\n# Tests\n\n- Write them.\n";
  expect(parse(text, ".cursor/rules/testing.mdc").drafts).toMatchObject([
    {
      title: "Cursor rule: Tests",
      content: "# Tests\n\n- Write them.",
      summary: "How we test",
      tags: ["fw_b", "testing"],
      metadata: { frontmatter: "description: How we test\nglobs: *.test.ts" },
      span: { start_line: 6, end_line: 8 },
    },
  ]);
});

test("the content of a rule file without a body is its description, and a file without both is not a rule", () => {
  expect(rulesOf("---\ndescription: Ask before you push\n---\n", ".cursor/rules/a.mdc")).toEqual([
    ["Ask before you push", "a"],
  ]);
  expect(rulesOf("---\ndescription:\nglobs:\nalwaysApply: false\n---\n", ".cursor/rules/a.mdc")).toEqual([]);
});

test("a long rule is cut at a word in its title only", () => {
  const text = `- ${"word ".repeat(60)}`;
  const [draft] = parse(text).drafts;
  expect(draft?.title.endsWith("word…")).toBe(true);
  expect(draft?.title.length).toBeLessThanOrEqual("Cursor rule: ".length + 120);
  expect(draft?.content.length).toBe(299);
});

test("a rule without a heading has the topic of the first of its words that is in the table", () => {
  const text =
    "- Write tests first.\n- Never log passwords.\n- Explain every exception.\n- Open a pull request.\n- Be kind.\n- **Validate** all input.\n";
  expect(rulesOf(text).map(([, topic]) => topic)).toEqual([
    "testing",
    "logging",
    "errors",
    "git",
    "general",
    "validation",
  ]);
  expect(rulesOf("## Style\n\n- Write tests first.\n")).toEqual([["Write tests first.", "style"]]);
});

test("each row of a table is a rule, in words that need no columns", () => {
  const text = [
    "# Errors",
    "",
    "Never do these:",
    "",
    "| Do not | Instead | Why |",
    "|:---|---|:---:|",
    "| Rethrow the same error | Let it **pass** | CWE-755 |",
    "| Log \\| print `a | b` | – | |",
    "| | | |",
    "| Swallow | | — |",
    "",
    "- Keep this table:",
    "",
    "  | a | b |",
    "  | - | - |",
    "  | 1 | 2 |",
    "",
    "a | b",
    "no table",
    "",
    "| only | columns |",
    "| --- | --- |",
  ].join("\n");
  const { drafts } = parse(text);
  expect(drafts.map(({ title, span }) => [title, span.start_line, span.end_line])).toEqual([
    ["Cursor rule: Rethrow the same error — Instead: Let it pass; Why: CWE-755", 5, 7],
    ["Cursor rule: Log | print `a: b`", 8, 8],
    ["Cursor rule: Swallow", 10, 10],
    ["Cursor rule: Keep this table:", 12, 16],
    ["Cursor rule: a | b no table", 18, 19],
    ["Cursor rule: Never do these: only, columns", 21, 22],
  ]);
  expect(drafts[0]?.content).toBe("Rethrow the same error — Instead: Let it **pass**; Why: CWE-755");
  expect(drafts[0]?.tags).toEqual(["fw_b", "never-do-these"]);
  const silent = "| |\n|-|\n".repeat(20_000);
  const started = processorMs();
  parse(silent);
  expect(processorMs() - started).toBeLessThan(2_000);
});

test("titles are words that people read: rows of tables, the rest without its marks", () => {
  const text =
    "## Commands\n\n| Command | What it does |\n| --- | --- |\n| `npm test` | tests |\n\n- **Testing**: write *unit* tests with [vitest](https://vitest.dev).\n- [ ] Use `a * b * c` and snake_case_names.\n";
  expect(parse(text).drafts.map(({ title }) => title)).toEqual([
    "Cursor rule: `npm test`: tests",
    "Cursor rule: Testing: write unit tests with vitest.",
    "Cursor rule: Use `a * b * c` and snake_case_names.",
  ]);
});

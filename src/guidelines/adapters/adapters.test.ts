import fc from "fast-check";
import { expect, test } from "vitest";
import { rounds } from "../../testing/campaign.suite.ts";
import { processorMs } from "../../testing/processor-time.ts";
import { filePatternOf, toGuideline } from "../guideline-record.ts";
import { guidelineAdapterFor, readGuidelines } from "../read-guidelines.ts";

const read = (path: string, text: string) => readGuidelines({ path, text });
const titles = (path: string, text: string) => read(path, text).records.map((record) => record.title);
const first = (path: string, text: string) => {
  const record = read(path, text).records[0];
  if (record === undefined) throw new Error(`${path} has no guideline.`);
  return record;
};

test.each([
  ["CLAUDE.md", "claude"],
  ["packages/api/CLAUDE.md", "claude"],
  [".claude/CLAUDE.md", "claude"],
  ["CLAUDE.local.md", "claude"],
  [".claude/rules/a/b.md", "claude-rules"],
  ["web/.claude/rules/a.md", "claude-rules"],
  [".cursorrules", "cursorrules"],
  ["a/.cursorrules", "cursorrules"],
  [".cursor/rules/a/b.mdc", "cursor-rules"],
  ["web/.cursor/rules/a.mdc", "cursor-rules"],
  [".kiro/steering/a.md", "kiro-steering"],
  [".kiro/steering/deep/a.md", "kiro-steering"],
  ["AGENTS.md", "agents"],
  ["a/AGENTS.override.md", "agents"],
  [".cursor/rules/readme.md", undefined],
  [".kiro/specs/a/design.md", undefined],
  ["README.md", undefined],
  ["NOTCLAUDE.md", undefined],
  ["x.cursorrules", undefined],
])("%s is read by %s", (path, name) => {
  expect(guidelineAdapterFor(path)?.name).toBe(name);
});

test("a sectioned file has a guideline per second-level section, and one for the text before", () => {
  const text = [
    "# Shop",
    "",
    "Read this first.",
    "",
    "## Style",
    "Tabs.",
    "### Deep",
    "more",
    "```",
    "## no",
    "```",
    "",
    "## Empty",
    "# Later",
    "kept",
    "",
  ].join("\n");
  expect(
    read("CLAUDE.md", text).records.map(({ title, content, span }) => [
      title,
      content,
      span.start_line,
      span.end_line,
    ]),
  ).toEqual([
    ["Shop", "Read this first.", 1, 3],
    ["Style", "Tabs.\n### Deep\nmore\n```\n## no\n```", 5, 11],
    ["Empty", "", 13, 13],
    ["Later", "kept", 14, 15],
  ]);
});

test("a heading with nothing below it before the first section is not a guideline", () => {
  expect(titles("CLAUDE.md", "# A\n\n---\n<!-- note -->\n\n## B\nx")).toEqual(["B"]);
});

test("a file without second-level sections is one guideline", () => {
  const record = first("docs/AGENTS.md", "Use pnpm.\n\n### Three\nx\n");
  expect(record).toMatchObject({
    title: "AGENTS.md",
    content: "Use pnpm.\n\n### Three\nx",
    whole_file: true,
    scope: "docs",
  });
  expect(titles("CLAUDE.md", "# One\na\n# Two\nb")).toEqual(["One"]);
});

test("a blank file has no guideline and a diagnostic", () => {
  const { records, diagnostics } = read("CLAUDE.md", " \n\n");
  expect(records).toEqual([]);
  expect(diagnostics).toMatchObject([
    { severity: "warning", rule: "structure", code: "empty_file", path: "CLAUDE.md" },
  ]);
});

test("a rules file is one guideline, with its heading or its name as title", () => {
  expect(first(".claude/rules/api-style.md", "---\npaths:\n  - 'a/**'\n---\nText\n")).toMatchObject({
    title: "Api style",
    content: "Text",
    globs: ["a/**"],
    inclusion: "pattern",
    span: { start_line: 1, end_line: 5 },
  });
  expect(first(".kiro/steering/x.md", "# Real title\n\n## Part\ntext")).toMatchObject({
    title: "Real title",
    content: "## Part\ntext",
    tags: ["always"],
  });
});

test.each([
  ["globs: *.ts,**/*.{ts,tsx}", ["*.ts", "**/*.{ts,tsx}"], "pattern", ["fileMatch"]],
  ['globs: "*.ts", "*.tsx"', ["*.ts", "*.tsx"], "pattern", ["fileMatch"]],
  ["globs: ['a/**', 'b']", ["a/**", "b"], "pattern", ["fileMatch"]],
  ["globs:\n  - a\n  - *.b", ["a", "*.b"], "pattern", ["fileMatch"]],
  ["globs: web/**\nalwaysApply: true", ["web/**"], "always", ["always", "alwaysApply"]],
  ["description: When testing\nglobs:\nalwaysApply: false", [], "auto", ["auto", "manual"]],
  ["description:\nglobs:\nalwaysApply: false", [], "manual", ["manual"]],
])("Cursor's front matter %j", (...[frontMatter, globs, inclusion, tags]) => {
  const record = first("web/.cursor/rules/a.mdc", `---\n${frontMatter}\n---\nText\n`);
  expect(record).toMatchObject({ globs, inclusion, tags, scope: "web" });
  expect(filePatternOf(record)).toBe(globs.length === 0 ? undefined : globs.join(","));
});

test.each([
  ["inclusion: fileMatch\nfileMatchPattern: '**/*.ts'", ["**/*.ts"], "pattern", []],
  ["inclusion: fileMatch\nfileMatchPattern: ['a', 'b']", ["a", "b"], "pattern", []],
  ["inclusion: fileMatch\nfileMatchPattern: 'a,b'", ["a,b"], "pattern", ["comma_list"]],
  ["inclusion: fileMatch", [], "pattern", ["pattern_missing"]],
  ["inclusion: manual", [], "manual", []],
  ["inclusion: auto\nname: x\ndescription: y", [], "auto", []],
  ["inclusion: sometimes", [], "always", ["inclusion_unknown"]],
  ["fileMatchPattern: a", ["a"], "always", ["pattern_unused"]],
])("Kiro's front matter %j", (...[frontMatter, globs, inclusion, codes]) => {
  const { records, diagnostics } = read(".kiro/steering/a.md", `---\n${frontMatter}\n---\nText\n`);
  expect(records[0]).toMatchObject({ globs, inclusion });
  expect(diagnostics.map((diagnostic) => diagnostic.code)).toEqual(codes);
});

test("broken front matter is a diagnostic, and the body still loads", () => {
  const { records, diagnostics } = read(".kiro/steering/a.md", "---\nkey: [unclosed\n---\n# T\nbody\n");
  expect(records).toMatchObject([{ title: "T", content: "body" }]);
  expect(diagnostics).toMatchObject([{ rule: "front-matter", code: "frontmatter_invalid", line: 2 }]);
});

test("text between two rules is text, although it looks like front matter", () => {
  const text = "---\nRead this.\n---\n\n## A\nx\n";
  expect(read("CLAUDE.md", text).records).toMatchObject([
    { title: "CLAUDE.md", content: "---\nRead this.\n---" },
    { title: "A" },
  ]);
  expect(first(".claude/rules/a.md", "---\n- a\n---\n# T\n")).toMatchObject({
    title: "T",
    content: "---\n- a\n---\n# T",
  });
});

test("imports are found outside code, with their lines", () => {
  const text = "See @docs/a.md, and (@../b.md).\n`@no.md` me@example.org\n```\n@no.md\n```\n- @~/c.md#part\n";
  expect(first("CLAUDE.md", text).imports).toEqual([
    { path: "docs/a.md", line: 1 },
    { path: "../b.md", line: 1 },
    { path: "~/c.md", line: 6 },
  ]);
  expect(first(".kiro/steering/a.md", "x #[[file:api/open api.yaml]] `#[[file:no]]` @no").imports).toEqual([
    { path: "api/open api.yaml", line: 1 },
  ]);
  expect(first(".cursorrules", "@no.md").imports).toEqual([]);
});

test.each([
  "[@x/y](mdc:p)",
  "[@docs/a.md](mdc:docs/a.md)",
  "`@no.md` and ``@no.md ` @no.md``",
  "code that `goes on\n@no.md over` lines",
  "~~~\n@no.md\n~~~",
  "    ```\n    @no.md\n    ```",
  "<!--\n@no.md\n-->",
  "write to team@example.org or <a@b.md>",
  "mailto:a@b.md",
  "npm install @types/node @angular/core@17.0.0 @socket.io/component-emitter @scope/pkg/sub",
  "@Injectable() @app.get('/x.json') @app.route(\"/x.md\") @Override @media @param @deprecated @alice",
  "ask @alice, @bob.smith, @example.com",
  "git@github.com:a/b.md",
  "@ a.md @@a.md @",
])("%j imports nothing", (text) => {
  for (const path of ["CLAUDE.md", ".claude/rules/a.md", "AGENTS.md", ".cursor/rules/a.mdc"])
    expect(read(path, `## A\n\n${text}\n`).records.flatMap(({ imports }) => imports)).toEqual([]);
});

test.each([
  ["@AGENTS.md", "AGENTS.md"],
  ["**@AGENTS.md**", "AGENTS.md"],
  ["> @docs/a.md.", "docs/a.md"],
  ["- `code` @./a", "./a"],
  ["a ` lone backtick\n\n@a.md `", "a.md"],
  ["- one `\n- @a.md `", "a.md"],
  ["@~/.claude/my.md", "~/.claude/my.md"],
  ["@/etc/x", "/etc/x"],
  ["@docs/my\\ file.md", "docs/my file.md"],
  ["@README", "README"],
  ["@package.json, @src/[id].tsx", "package.json,src/[id].tsx"],
  ["| @docs/a.md |", "docs/a.md"],
])("%j imports %s", (text, paths) => {
  const [record] = read("CLAUDE.md", `${text}\n`).records;
  expect(record?.imports.map(({ path }) => path).join()).toBe(paths);
});

test("titles hold no control characters and no marks that reorder text", () => {
  const { records, diagnostics } = read("CLAUDE.md", "# safe \u202egnp.exe\u001b[2J\n\nx\n");
  expect(records[0]?.title).toBe("safe gnp.exe [2J");
  expect(diagnostics).toMatchObject([{ rule: "encoding", code: "bidi_control", line: 1 }]);
});

test("the adapter reports what a file leaves open", () => {
  const codes = (text: string) => read("CLAUDE.md", text).diagnostics.map(({ code, line }) => [code, line]);
  expect(codes("# A\n\n```js\n## swallowed\n")).toEqual([["fence_unclosed", 3]]);
  expect(codes("# A\n<!-- never\n## hidden\n")).toEqual([["comment_unclosed", 2]]);
});

test("a record on the wire has the fields of the contract", () => {
  expect(
    toGuideline(first(".cursor/rules/a.mdc", "---\nglobs: *.ts\n---\n# Use const\n\nAlways.\n")),
  ).toEqual({
    id: expect.stringMatching(/^[0-9a-f]{16}$/),
    title: "Use const",
    content: "Always.",
    source_type: "fw_b",
    source_file: ".cursor/rules/a.mdc",
    file_pattern: "*.ts",
    tags: ["fileMatch"],
    is_sample: false,
  });
});

test("100,000 headings take linear time and get different ids", () => {
  const start = processorMs();
  expect(read("CLAUDE.md", "# a\n".repeat(100_000)).records).toHaveLength(1);
  const { records } = read("CLAUDE.md", "## a\n# b\nc\n".repeat(30_000));
  expect(new Set(records.map((record) => record.id)).size).toBe(60_000);
  expect(processorMs() - start).toBeLessThan(12_000);
});

test("no text makes an adapter throw, and ids are unique and stable", () => {
  const parts = fc.constantFrom(
    "---\n",
    "globs: *.a\n",
    "# A\n",
    "## A\n",
    "## A:2\n",
    "text\n",
    "```\n",
    "<!-- kit:guideline -->\n",
    "<!-- /kit:guideline -->\n",
    "_File pattern: `a`_\n",
    "\r\n",
    "@x.md\n",
    "<div>\n",
    "\u202e",
  );
  const texts = fc
    .array(fc.oneof(parts, fc.string({ unit: "binary" })), { maxLength: 20 })
    .map((all) => all.join(""));
  const files = fc.constantFrom(
    "CLAUDE.md",
    ".cursorrules",
    ".cursor/rules/a.mdc",
    ".kiro/steering/a.md",
    ".claude/rules/a.md",
    "AGENTS.md",
  );
  fc.assert(
    fc.property(files, texts, (path, text) => {
      const { records } = read(path, text);
      expect(new Set(records.map((record) => record.id)).size).toBe(records.length);
      expect(read(path, text).records).toEqual(records);
      for (const { title, span } of records) {
        expect(title).not.toBe("");
        expect(span.start_line).toBeLessThanOrEqual(span.end_line);
      }
    }),
    { numRuns: rounds(300, 2_000) },
  );
});

test.each([
  [".cursor/rules/a.mdc", 'alwaysApply: "true"', "boolean_expected", "true"],
  [".cursor/rules/a.mdc", "alwaysApply: false", "description_missing", undefined],
  [".cursor/rules/a.mdc", "description: d\nalwaysAply: true", "key_unknown", undefined],
  [".cursor/rules/a.mdc", "description: d\napplyTo: '**'", "key_unknown", undefined],
  [".kiro/steering/a.md", "inclusion: auto", "description_missing", undefined],
  [".kiro/steering/a.md", "inclusion: always\nfileMatch: x", "key_unknown", undefined],
  [
    ".kiro/steering/a.md",
    "inclusion: fileMatch\nfileMatchPattern: '*.py, *.ts'",
    "comma_list",
    '["*.py", "*.ts"]',
  ],
  [
    ".github/instructions/a.instructions.md",
    "applyTo: '**'\nexcludeAgent: reviewer",
    "agent_unknown",
    undefined,
  ],
  [".windsurf/rules/a.md", "trigger: always_on\nalwaysApply: true", "key_unknown", undefined],
])("the front matter of %s with %j is reported as %s", (path, raw, ...[code, text]) => {
  const { diagnostics } = readGuidelines({ path, text: `---\n${raw}\n---\n# A\n\nx\n` });
  expect(diagnostics).toMatchObject([{ severity: "warning", rule: expect.any(String), code }]);
  expect(diagnostics[0]?.fix?.text).toBe(text);
  expect(diagnostics[0]?.line).toBeGreaterThan(1);
});

test.each([
  [".cursor/rules/a.mdc", "description:\nglobs:\nalwaysApply: false"],
  [".cursor/rules/a.mdc", "description: d\nglobs: **/*\nalwaysApply: true\ntags: [x]"],
  [".kiro/steering/a.md", "inclusion: auto\nname: n\ndescription: d"],
  [".github/instructions/a.instructions.md", "applyTo: '**'\nexcludeAgent: code-review"],
])("the front matter of %s with %j has no finding", (path, raw) => {
  expect(readGuidelines({ path, text: `---\n${raw}\n---\n# A\n\nx\n` }).diagnostics).toEqual([]);
});

import { expect, test } from "vitest";
import { processorMs } from "../../testing/processor-time.ts";
import { compareRecords } from "../guideline-record.ts";
import { guidelineAdapterFor, readGuidelines, sampleRecords } from "../read-guidelines.ts";
import { lintGuidelines } from "./lint-guidelines.ts";

interface Linted {
  readonly ignore?: readonly string[];
}

function findingsIn(files: Readonly<Record<string, string>>, { ignore = [] }: Linted = {}) {
  const records = Object.entries(files)
    .filter(([path]) => guidelineAdapterFor(path) !== undefined)
    .flatMap(([path, text]) => readGuidelines({ path, text }).records)
    .sort(compareRecords);
  const options = { files: Object.keys(files), readText: (path: string) => files[path], ignore };
  const found = lintGuidelines(records, options);
  // A check of single files has the same findings.
  const single = Object.keys(files).map((path) =>
    lintGuidelines(records, { ...options, only: new Set([path]) }),
  );
  expect(single.flat().sort((a, b) => (a.path < b.path ? -1 : a.path > b.path ? 1 : 0))).toEqual(found);
  return found;
}

function lint(files: Readonly<Record<string, string>>, linted: Linted = {}): string[] {
  return findingsIn(files, linted).map(
    ({ rule, path, line, message }) => `${path}:${line} ${rule}: ${message}`,
  );
}

const numbered = (count: number, changed: Readonly<Record<number, string>> = {}): string =>
  Array.from({ length: count }, (_, index) => changed[index + 1] ?? `Rule number ${index + 1} of them.`).join(
    "\n",
  );

test("copies that differ in a few lines have drifted, with the number of lines and both places", () => {
  expect(
    findingsIn({
      "CLAUDE.md": `# T\n\n## Flow\n\n${numbered(20)}\n`,
      ".cursor/rules/flow.mdc": `---\nalwaysApply: true\n---\n# Flow\n\n${numbered(20, { 4: "Another.", 9: "One more." })}\n`,
    }),
  ).toMatchObject([
    {
      rule: "drift",
      path: "CLAUDE.md",
      line: 8,
      message:
        '"Flow" and its copy in .cursor/rules/flow.mdc differ: 2 of 20 lines, first in line 8 here and line 9 there.',
      other: { path: ".cursor/rules/flow.mdc", line: 9 },
    },
  ]);
});

test("several copies of one file that drifted are one finding", () => {
  const file = (one: string) =>
    `## A\n${numbered(10, { 3: one })}\n## B\n${numbered(10, { 5: one, 6: one })}\n## C\n${numbered(6)}\n`;
  expect(lint({ "AGENTS.md": file("old"), "CLAUDE.md": file("new") })).toEqual([
    'CLAUDE.md:4 drift: 2 guidelines and their copies in AGENTS.md differ ("A", "B"): 3 of 20 lines, first in line 4 here and line 4 there.',
  ]);
});

test.each([
  [
    "adapted to another tool",
    numbered(9, { 2: "Cursor reads [x](mdc:AGENTS.md) in .cursor/rules, see cursor_rules.mdc." }),
    numbered(9, { 2: "Kiro reads [x](../../AGENTS.md) in .kiro/steering, see kiro_rules.md." }),
  ],
  ["of which one is the beginning of the other", numbered(9), numbered(12)],
  [
    "that share only their title",
    "npm test\nnpm run build\nnpm start\nnpm run lint\n",
    "make\nmake test\nmake all\nnpm start\n",
  ],
])("two texts %s have not drifted", (_case, one, other) => {
  expect(
    lint({
      "GEMINI.md": `## Commands\n${one}\n`,
      ".kiro/steering/c.md": `# Commands\n${other}\n`,
      "AGENTS.md": "",
    }),
  ).toEqual([]);
});

test("the text under a second heading of the first level is not part of the section before it", () => {
  const { records } = readGuidelines({
    path: "CLAUDE.md",
    text: "# One\n\nText one.\n\n# Two\n\nText two.\n\n## Three\n\nText three.\n\n# Four\n\nText four.\n",
  });
  expect(records.map(({ title, content }) => [title, content])).toEqual([
    ["One", "Text one."],
    ["Two", "Text two."],
    ["Three", "Text three."],
    ["Four", "Text four."],
  ]);
});

test.each([
  ["Use tabs.", "Use two spaces for indentation."],
  ["- Indent with 2 spaces", "- Always use 4 spaces for indentation"],
  ["Always commit lock files.", "Never commit the lock files."],
  ["- Use default exports", "- **Avoid default exports**"],
  ["Use single quotes.", "Prefer double quotes for strings."],
  ["Use pnpm, not npm.", "Use npm."],
  ["Keep lines under 80 characters", "Maximum line length: 120"],
  ["You must run the migrations by hand.", "Don't run migrations by hand"],
])("%j and %j contradict each other", (one, other) => {
  const found = findingsIn({
    "AGENTS.md": `## Style\n\n${one}\n`,
    ".cursorrules": `## Format\n\nText.\n\n${other}\n`,
  });
  expect(found).toMatchObject([
    { rule: "contradiction", path: "AGENTS.md", line: 3, other: { path: ".cursorrules", line: 5 } },
  ]);
  expect(found[0]?.message).toMatch(/contradicts ".+" in \.cursorrules:5\.$/);
});

test.each([
  ["Use spaces.", "Use 2 spaces for indentation."],
  ["Use 2 spaces in YAML.", "Use 4 spaces for indentation."],
  ["Always commit lock files.", "Never commit lock files unless the build needs it."],
  ["Use type imports where possible.", "Do not use type imports."],
  ["Never do it.", "Always do it."],
  ["❌ Use default exports", "Avoid default exports"],
  ["```\nUse tabs.\n```", "Use spaces."],
  ["### Python\n\nUse 4 spaces for indentation.", "Use 2 spaces for indentation."],
])("%j and %j do not contradict each other", (one, other) => {
  expect(lint({ "AGENTS.md": `## Style\n\n${one}\n`, "CLAUDE.md": `## Style\n\n${other}\n` })).toEqual([]);
});

test("a nested file can say the opposite of the file above it", () => {
  expect(lint({ "CLAUDE.md": "Use tabs.\n", "web/CLAUDE.md": "Use spaces.\n" })).toEqual([]);
});

test("the same text in two files that one tool reads is a duplicate, and elsewhere it is not", () => {
  const text = "Name a test after the behaviour that it guards.";
  const copies = { "AGENTS.md": `## Tests\n${text}\n`, ".kiro/steering/tests.md": `# Testing\n\n${text}\n` };
  expect(lint(copies)).toEqual([
    'AGENTS.md:1 duplicate-guideline: "Tests" has the same text as "Testing" in .kiro/steering/tests.md:1.',
  ]);
  expect(lint({ "AGENTS.md": copies["AGENTS.md"], "CLAUDE.md": copies["AGENTS.md"] })).toEqual([]);
  expect(lint({ "a/CLAUDE.md": copies["AGENTS.md"], "b/CLAUDE.md": copies["AGENTS.md"] })).toEqual([]);
  expect(
    lint({
      "AGENTS.md": copies["AGENTS.md"],
      "CLAUDE.md": "@AGENTS.md\n",
      ".claude/rules/t.md": `# T\n\n${text}\n`,
    }),
  ).toEqual(['AGENTS.md:1 duplicate-guideline: "Tests" has the same text as "T" in .claude/rules/t.md:1.']);
});

test("several copies between two files are one finding", () => {
  const file = "## A\nThe first of the long texts here.\n## B\nThe second of the long texts here.\n";
  expect(lint({ ".cursorrules": file, "AGENTS.md": file })).toEqual([
    'AGENTS.md:1 duplicate-guideline: 2 guidelines have the same text as in .cursorrules: "A", "B".',
  ]);
});

test.each([
  ["web/", '"web/**"'],
  ["web", '"web/**"'],
  ["web/*", '"web/**"'],
  ["web/*.ts", '"web/**/*.ts"'],
  ["src/*.ts", '"**/src/*.ts"'],
  ["web\\src\\*.ts", '"web/src/*.ts"'],
  ["nothing/**", undefined],
])("the glob %s probably means %s", (glob, intended) => {
  const [line, ...others] = lint({
    ".cursor/rules/a.mdc": `---\nglobs: ${glob}\n---\nx\n`,
    "web/src/a.ts": "",
  });
  expect(others).toEqual([]);
  expect(line).toContain(intended === undefined ? "matches no file." : `Did you mean ${intended}?`);
});

test("a dead glob has its own line and column, and a fix", () => {
  const text = "---\ndescription: d\nglobs: web/src/*.ts, src/*.ts\n---\nx\n";
  expect(findingsIn({ ".cursor/rules/a.mdc": text, "web/src/a.ts": "" })).toMatchObject([
    { code: "glob_no_file", line: 3, column: 22, end_column: 30, fix: { text: "**/src/*.ts" } },
  ]);
  const list = "---\npaths:\n  - 'src/**'\n  - \"src\\\\*.ts\"\n---\nx\n";
  const found = findingsIn({ ".claude/rules/a.md": list, "src/a.ts": "" });
  // The file spells the glob with an escape, so its columns are not known, and a fix could break it.
  expect(found).toMatchObject([{ code: "glob_no_file", line: 1 }]);
  expect(found[0]?.fix).toBeUndefined();
});

test.each([
  ["**/*.ts, **/*.mts", []],
  ["**/*.ts, gone/**/*.ts", ['The glob "gone/**/*.ts" matches no file.']],
  ["**/*.ts, src/gone.ts", ['The glob "src/gone.ts" matches no file.']],
  ["**/*.ts, src/*.py", ['The glob "src/*.py" matches no file. Did you mean "src/**/*.py"?']],
  [
    "**/*.ts, src/*.py, src/*.rb",
    ['The globs "src/*.py", "src/*.rb" match no file. Did you mean "src/**/*.py", "src/**/*.rb"?'],
  ],
  ["**/*.cs, **/*.vb", ['The globs "**/*.cs", "**/*.vb" match no file, so the rule never applies.']],
])("of the globs %s, those are reported that look like a mistake", (globs, messages) => {
  const files = {
    ".cursor/rules/a.mdc": `---\nglobs: ${globs}\n---\nx\n`,
    "src/a.ts": "",
    "src/b/a.py": "",
    "src/b/a.rb": "",
  };
  expect(findingsIn(files).map(({ message }) => message)).toEqual(messages);
});

test("a glob that a tool may read in another way, or match with a virtual document, is no finding", () => {
  expect(
    lint({
      "src/a.js": "",
      ".cursor/rules/a.mdc": "---\nglobs: '*.js'\n---\n# A\n\nShort.\n",
      ".cursor/rules/b.mdc": "---\nglobs: '*.js,*.mdc,gone/*.js'\n---\n# B\n\nBrief.\n",
      ".github/instructions/a.instructions.md": "---\napplyTo: '**/github-issues/**'\n---\n# C\n\nPlain.\n",
      ".github/instructions/b.instructions.md": "---\napplyTo: '**/github-issues/*.md'\n---\n# D\n\nTrue.\n",
    }),
  ).toEqual([
    '.cursor/rules/b.mdc:2 glob-no-match: The glob "gone/*.js" matches no file.',
    '.github/instructions/b.instructions.md:2 glob-no-match: The glob "**/github-issues/*.md" matches no file.',
  ]);
});

test("a copy that only names files as its tool does is no drift", () => {
  const file = (name: string) => `# Flow\n\n${numbered(12, { 4: `See ${name}.`, 7: `List in ${name}.` })}\n`;
  expect(
    lint({
      ".cursor/rules/flow.mdc": `---\nalwaysApply: true\n---\n${file("[`tasks.mdc`](mdc:.cursor/rules/flow.mdc)")}`,
      ".kiro/steering/flow.md": file("@`tasks.md`"),
    }),
  ).toEqual([]);
});

test("an AGENTS.md of a skill has no limit, since Codex reads it for files beside it only", () => {
  const long = `# Rules\n\n${"Word. ".repeat(7_000)}\n`;
  const found = lint({ "web/.agents/skills/react/AGENTS.md": long, "web/AGENTS.md": `${long}More.\n` });
  expect(found).toEqual([expect.stringMatching(/^web\/AGENTS.md:1 limit: Codex reads 32,768 bytes/)]);
});

test("a glob that names its own folder again, a comma list and a broken one are explained", () => {
  const files = { "packages/api/src/a.ts": "", "a.py": "" };
  expect(
    lint({ ...files, "packages/api/.cursor/rules/a.mdc": "---\nglobs: packages/api/src/*.ts\n---\nx\n" }),
  ).toEqual([
    'packages/api/.cursor/rules/a.mdc:2 glob-no-match: The glob "packages/api/src/*.ts" matches no file below packages/api. Did you mean "src/*.ts"?',
  ]);
  expect(
    lint({ ...files, ".windsurf/rules/a.md": "---\ntrigger: glob\nglobs: ['*.py, **/*.ts']\n---\nx\n" }),
  ).toEqual([
    '.windsurf/rules/a.md:3 glob-no-match: The glob "*.py, **/*.ts" matches no file. Did you mean a list of "*.py", "**/*.ts"?',
  ]);
  // Its adapter says it, with the line.
  expect(
    lint({
      ...files,
      ".kiro/steering/a.md": "---\ninclusion: fileMatch\nfileMatchPattern: '*.py, *.ts'\n---\nx\n",
    }),
  ).toEqual([]);
  expect(lint({ ...files, ".claude/rules/a.md": "---\npaths: ['[a']\n---\nx\n" })[0]).toMatch(
    /matches nothing: its bracket/,
  );
});

test("rules without effect are named, but not what Cursor's editor writes", () => {
  expect(
    lint({
      "AGENTS.md": "## A\nx\n## C\ny\n",
      "AGENTS.override.md": "## B\nx\n",
      ".cursor/rules/a.mdc": "---\nglobs: **/*\nalwaysApply: true\n---\n# Always\n",
      ".cursor/rules/b.mdc": "---\nglobs: src/**\nalwaysApply: true\n---\n# Meant for src\n",
      ".cursorrules": "---\nglobs: *.x\n---\n## A\nx\n## B\ny\n",
    }),
  ).toEqual([
    ".cursor/rules/b.mdc:2 shadowed: The globs have no effect: alwaysApply is true, so the rule is always loaded.",
    ".cursorrules:2 shadowed: The globs have no effect: Cursor reads no front matter in .cursorrules, and always loads it.",
    "AGENTS.md:1 shadowed: Codex does not read this file: AGENTS.override.md replaces it.",
  ]);
});

test("links and imports that lead to no file are found, with the file that was probably meant", () => {
  const files = {
    "CLAUDE.md": "See @docs/gone.md, @docs/moved.md, @AGENTS.md and @acme/ui.\n",
    "docs/new/moved.md": "",
    "docs/my guide.md": "",
    "src/a.ts": "",
    "AGENTS.md":
      "[a](docs/new/moved.md#x) [b](docs/my%20guide.md) [c](https://x.org/y.md) [d](#e) [e](src) ![f](logo.png) `[g](g.md)`\n\n[h]: docs/h.md\n",
    ".cursor/rules/a.mdc":
      "---\nalwaysApply: true\n---\n[a](mdc:src/a.ts:10) [b](mdc:lib/a.ts) [c](../../src/a.ts) [d](path/to/x.ts) [e](mdc:src/{x}.ts)\n",
  };
  const found = findingsIn(files).map(({ path, line, column, rule, message, fix }) => [
    `${path}:${line}:${column} ${rule}`,
    message,
    fix?.text,
  ]);
  expect(found).toEqual([
    [
      ".cursor/rules/a.mdc:4:26 dangling-reference",
      "The link to mdc:lib/a.ts leads to no file of the project. Did you mean mdc:src/a.ts?",
      "mdc:src/a.ts",
    ],
    ["AGENTS.md:1:96 dangling-reference", "The link to logo.png leads to no file of the project.", undefined],
    ["AGENTS.md:3:6 dangling-reference", "The link to docs/h.md leads to no file of the project.", undefined],
    [
      "CLAUDE.md:1:6 import",
      "The import of docs/gone.md names a file that the project does not have.",
      undefined,
    ],
    [
      "CLAUDE.md:1:21 import",
      "The import of docs/moved.md names a file that the project does not have. Did you mean docs/new/moved.md?",
      "docs/new/moved.md",
    ],
  ]);
});

test("a list of ignored paths and rules leaves findings out", () => {
  const files = {
    "fixtures/a/CLAUDE.md": "[x](gone.md)\n",
    "docs/AGENTS.md": "[x](gone.md)\n",
    ".cursor/rules/b.mdc": "---\nglobs: src/**\nalwaysApply: true\n---\n# B\n",
  };
  const paths = (ignore: readonly string[]) => findingsIn(files, { ignore }).map(({ path }) => path);
  expect(paths([])).toEqual([".cursor/rules/b.mdc", "docs/AGENTS.md", "fixtures/a/CLAUDE.md"]);
  expect(paths(["fixtures"])).toEqual([".cursor/rules/b.mdc", "docs/AGENTS.md"]);
  expect(paths(["shadowed", "**/CLAUDE.md"])).toEqual(["docs/AGENTS.md"]);
  expect(paths(["globs_ignored", "docs/**: link_missing"])).toEqual(["fixtures/a/CLAUDE.md"]);
  expect(paths(["docs/AGENTS.md: drift"])).toHaveLength(3);
});

test("samples and an unknown set of files have no findings", () => {
  expect(lintGuidelines(sampleRecords(), { files: ["a.ts"] })).toEqual([]);
  const { records } = readGuidelines({ path: ".cursor/rules/a.mdc", text: "---\nglobs: *.x\n---\nx\n" });
  expect(lintGuidelines(records, { files: [] })).toEqual([]);
});

test("thousands of globs and files take little time", () => {
  const records = Array.from({ length: 3000 }, (_, index) => {
    const text = `---\nglobs: **/none${index}/*.ts, src/a${index}/**, *.x${index}\n---\nText ${index}\n`;
    return readGuidelines({ path: `.cursor/rules/r${index}.mdc`, text }).records;
  }).flat();
  const files = Array.from({ length: 10_000 }, (_, index) => `src/a${index % 100}/file${index}.ts`);
  const start = processorMs();
  expect(lintGuidelines(records, { files }).length).toBeGreaterThanOrEqual(3000);
  expect(processorMs() - start).toBeLessThan(2000);
});

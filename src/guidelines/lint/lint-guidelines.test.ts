import { expect, test } from "vitest";
import { processorMs } from "../../testing/processor-time.ts";
import { compareRecords } from "../guideline-record.ts";
import { guidelineAdapterFor, readGuidelines, sampleRecords } from "../read-guidelines.ts";
import { globDiagnostics, lintGuidelines } from "./lint-guidelines.ts";

function lint(files: Readonly<Record<string, string>>): string[] {
  const records = Object.entries(files)
    .filter(([path]) => guidelineAdapterFor(path) !== undefined)
    .flatMap(([path, text]) => readGuidelines({ path, text }).records)
    .sort(compareRecords);
  return lintGuidelines(records, Object.keys(files)).map(
    ({ rule, path, line, message }) => `${path}:${line} ${rule}: ${message}`,
  );
}

test("the same heading with different text in two sources is a contradiction, with both places", () => {
  expect(
    lint({
      "CLAUDE.md": "# T\n\n## Indent\nUse two spaces.\n\n## Same\nx\n",
      ".cursorrules": "## indent\nUse tabs.\n\n## Same\n x\n",
      "web/CLAUDE.md": "## Indent\nUse four spaces here.\n",
    }),
  ).toEqual([
    'CLAUDE.md:3 contradiction: "Indent" differs from "indent" in .cursorrules:1, and both apply to the same files.',
  ]);
});

test("the same text in two places is a duplicate", () => {
  const text = "Name a test after the behaviour that it guards.";
  expect(
    lint({ "AGENTS.md": `## Tests\n${text}\n`, ".kiro/steering/tests.md": `# Testing\n\n${text}\n` }),
  ).toEqual([
    'AGENTS.md:1 duplicate-guideline: "Tests" has the same text as "Testing" in .kiro/steering/tests.md:1.',
  ]);
});

test.each([
  ["*.ts", '"**/*.ts"'],
  ["web/", '"web/**"'],
  ["web", '"web/**"'],
  ["Dockerfile", '"**/Dockerfile"'],
  ["web/*", '"web/**"'],
  ["web/*.ts", '"web/**/*.ts"'],
  ["src/*.ts", '"**/src/*.ts"'],
  ["web\\src\\*.ts", '"web/src/*.ts"'],
  ["nothing/**", undefined],
])("the glob %s probably means %s", (glob, intended) => {
  const [line, ...others] = lint({
    ".cursor/rules/a.mdc": `---\nglobs: ${glob}\n---\nx\n`,
    "web/src/a.ts": "",
    "deep/Dockerfile": "",
  });
  expect(others).toEqual([]);
  expect(line).toContain(intended === undefined ? "matches no file." : `Did you mean ${intended}?`);
});

test("a glob that names its own folder again, a comma list and a broken one are explained", () => {
  const files = { "packages/api/src/a.ts": "", "a.py": "" };
  expect(
    lint({ ...files, "packages/api/.cursor/rules/a.mdc": "---\nglobs: packages/api/src/*.ts\n---\nx\n" }),
  ).toEqual([
    'packages/api/.cursor/rules/a.mdc:1 glob-no-match: The glob "packages/api/src/*.ts" matches no file below packages/api. Did you mean "src/*.ts"?',
  ]);
  expect(
    lint({
      ...files,
      ".kiro/steering/a.md": "---\ninclusion: fileMatch\nfileMatchPattern: '*.py, *.ts'\n---\nx\n",
    }),
  ).toEqual([
    '.kiro/steering/a.md:1 glob-no-match: The glob "*.py, *.ts" matches no file. Did you mean a list of "*.py", "*.ts"?',
  ]);
  expect(lint({ ...files, ".claude/rules/a.md": "---\npaths: ['[a']\n---\nx\n" })[0]).toMatch(
    /matches nothing: its bracket/,
  );
});

test("rules without effect and imports without a file are named", () => {
  expect(
    lint({
      "AGENTS.md": "## A\nx\n",
      "AGENTS.override.md": "## B\nx\n",
      "CLAUDE.md": "See @docs/gone.md, @AGENTS.md and @acme/ui.\n",
      ".cursor/rules/a.mdc": "---\nglobs: **\nalwaysApply: true\n---\n# Always\n",
    }),
  ).toEqual([
    ".cursor/rules/a.mdc:1 shadowed: The globs have no effect: alwaysApply is true, so the rule is always loaded.",
    'AGENTS.md:1 shadowed: "A" is never read: AGENTS.override.md replaces its file.',
    "CLAUDE.md:1 import: The import of docs/gone.md names a file that the project does not have.",
  ]);
});

test("one mistake in the front matter of a sectioned file is said once", () => {
  expect(
    lint({ ".cursorrules": "---\nglobs: *.x\n---\n## A\nx\n## B\ny\n", "CLAUDE.md": "x", "AGENTS.md": "y" }),
  ).toEqual([
    '.cursorrules:4 glob-no-match: The glob "*.x" matches no file.',
    ".cursorrules:4 shadowed: The globs have no effect: Cursor reads no front matter in .cursorrules, and always loads it.",
  ]);
});

test("samples and an unknown set of files have no findings", () => {
  expect(lintGuidelines(sampleRecords(), ["a.ts"])).toEqual([]);
  const { records } = readGuidelines({ path: ".cursor/rules/a.mdc", text: "---\nglobs: *.x\n---\nx\n" });
  expect(globDiagnostics(records, [])).toEqual([]);
});

test("thousands of globs and files take little time", () => {
  const records = Array.from({ length: 3000 }, (_, index) => {
    const text = `---\nglobs: **/none${index}/*.ts, src/a${index}/**, *.x${index}\n---\nText ${index}\n`;
    return readGuidelines({ path: `.cursor/rules/r${index}.mdc`, text }).records;
  }).flat();
  const files = Array.from({ length: 10_000 }, (_, index) => `src/a${index % 100}/file${index}.ts`);
  const start = processorMs();
  expect(globDiagnostics(records, files).length).toBeGreaterThan(6000);
  expect(processorMs() - start).toBeLessThan(2000);
});

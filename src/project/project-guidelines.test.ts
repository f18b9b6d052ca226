import { symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { createTemporaryRepository } from "../testing/temporary-repository.ts";
import { openProject } from "./open-project.ts";
import { readUserGuidelines } from "./project-guidelines.ts";
import { indexOf } from "./project-index.ts";

test("a tool's files of the home folder are read as it reads them, and others are left alone", async () => {
  await using home = await createTemporaryRepository({
    ".claude/CLAUDE.md": "## Mine\n\nx\n",
    ".claude/rules/deep/ts.md": "---\npaths: ['**/*.ts']\n---\n# Ts\n",
    ".claude/settings.json": "{}",
    ".codex/AGENTS.md": "# Codex\nx",
    ".codex/AGENTS.override.md": "# Override\nx",
    ".gemini/GEMINI.md": "\u0000\u0001",
    ".kiro/steering/x.md": "---\ninclusion: manual\n---\n# Steer\n",
  });
  symlinkSync("nowhere", join(home.root, ".kiro/steering/gone.md"));
  const read = (tool: Parameters<typeof readUserGuidelines>[0]) =>
    readUserGuidelines(tool, home.root).map(({ title, source_file, inclusion }) => [
      title,
      source_file,
      inclusion,
    ]);
  expect(read("claude")).toEqual([
    ["Mine", "~/.claude/CLAUDE.md", "always"],
    ["Ts", "~/.claude/rules/deep/ts.md", "pattern"],
  ]);
  expect(read("codex")).toEqual([["Override", "~/.codex/AGENTS.override.md", "always"]]);
  expect(read("kiro")).toEqual([["Steer", "~/.kiro/steering/x.md", "manual"]]);
  expect(read("gemini")).toHaveLength(1);
  expect(read("cursor")).toEqual([]);
  expect(read("cline")).toEqual([]);
});

test("a project keeps its list of guidelines and of files until one of them changes", async () => {
  await using repository = await createTemporaryRepository({
    "AGENTS.md": "## Money\n\nCount in cents.\n",
    "web/CLAUDE.md": "## Tests\n\nWrite them first.\n",
    "web/CLAUDE.local.md": "## Mine\n\nBe short.\n",
    ".gitignore": "*.local.md\n",
    ".kiro/specs/cart/requirements.md": "# Requirements\n",
  });
  const project = await openProject({ root: repository.root, indexFile: ":memory:" });
  const index = indexOf(project);
  const change = async (path: string, text: string) => {
    writeFileSync(join(repository.root, path), text);
    await project.refresh();
    return { records: index.guidelineRecords(), files: index.files() };
  };
  const ignored = (records: ReturnType<typeof index.guidelineRecords>) =>
    records.flatMap(({ source_file, is_ignored }) => (is_ignored === true ? source_file : []));
  const first = { records: index.guidelineRecords(), files: index.files(), generation: index.generation() };
  expect(ignored(first.records)).toEqual(["web/CLAUDE.local.md"]);

  const afterSpec = await change(".kiro/specs/cart/requirements.md", "# Requirements\n\n## Other\n");
  expect(index.generation()).not.toBe(first.generation);
  expect(afterSpec.records).toBe(first.records);
  expect(afterSpec.files).toBe(first.files);

  const afterRule = await change("AGENTS.md", "## Money\n\nCount in tenths of a cent.\n");
  expect(afterRule.records.map(({ content }) => content)).toContain("Count in tenths of a cent.");
  expect(afterRule.records.slice(1)).toEqual(first.records.slice(1));
  for (const [at, record] of afterRule.records.entries()) if (at > 0) expect(record).toBe(first.records[at]);
  expect(project.guidelines.explain("a.ts").applied[0]?.guideline.content).toBe("Count in tenths of a cent.");

  expect(ignored((await change(".gitignore", "*.txt\n")).records)).toEqual([]);
  expect((await change("notes.md", "")).files).toContain("notes.md");
  await project.close();
});

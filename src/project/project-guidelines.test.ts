import { symlinkSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { createTemporaryRepository } from "../testing/temporary-repository.ts";
import { readUserGuidelines } from "./project-guidelines.ts";

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

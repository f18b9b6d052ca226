import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { createTemporaryRepository } from "../../testing/temporary-repository.ts";
import { openProject } from "../open-project.ts";
import type { Project } from "../project.ts";

const rule = "## A rule\n\ntext\n";
const cursorRule = "---\nalwaysApply: true\n---\nUse tabs.\n";

const rulesIn = (project: Project): string[] =>
  project.guidelines
    .list({})
    .guidelines.filter(({ is_sample }) => !is_sample)
    .map(({ source_file, is_ignored }) => `${source_file}${is_ignored ? " ignored" : ""}`);

async function rulesOfFolder(root: string, indexFile = ":memory:"): Promise<string[]> {
  const project = await openProject({ root, indexFile });
  try {
    return rulesIn(project);
  } finally {
    await project.close();
  }
}

test("files that Git tracks are read although an ignore rule matches them", async () => {
  await using repository = await createTemporaryRepository({
    ".gitignore": "openspec/\n.cursor/\nbuild/\nspecs/\n",
    ".cursor/rules/a.mdc": cursorRule,
    "specs/001-cart/spec.md": "# Cart\n\n- **FR-001**: The system MUST keep it in `build/cart.js`.\n",
    "build/cart.js": "",
    "build/CLAUDE.md": rule,
    "build/other.js": "",
    "build/AGENTS.md": rule,
    "node_modules/p/CLAUDE.md": rule,
  });
  await repository.init();
  await repository.git("add", "-f", ".cursor", "specs", "build/cart.js", "build/CLAUDE.md", "node_modules");
  const project = await openProject({ root: repository.root, indexFile: ":memory:" });
  expect(rulesIn(project)).toEqual([".cursor/rules/a.mdc", "build/CLAUDE.md"]);
  const { specs } = project.specs.query({ framework: "fw_d" });
  expect(specs.map(({ title, metadata }) => [title.slice(0, 6), metadata.code_refs])).toEqual([
    ["FR-001", ["build/cart.js"]],
  ]);
  await project.close();
});

test.each(["with", "without"])(
  "files that a tool reads from the disk are read although they are ignored, %s Git",
  async (git) => {
    const ignored = {
      "CLAUDE.local.md": rule,
      "AGENTS.md": rule,
      "GEMINI.md": rule,
      ".cursorrules": rule,
      ".windsurfrules": rule,
      ".claude/CLAUDE.md": rule,
      ".claude/rules/deep/r.md": rule,
      ".cursor/rules/a.mdc": cursorRule,
      ".github/copilot-instructions.md": rule,
      ".github/instructions/ts.instructions.md": rule,
      ".windsurf/rules/w.md": rule,
      ".clinerules/c.md": rule,
      ".kiro/steering/s.md": rule,
      "web/CLAUDE.md": rule,
      "web/.cursor/rules/b.mdc": cursorRule,
    };
    const others = {
      "dist/CLAUDE.md": rule,
      "dist/.cursor/rules/a.mdc": cursorRule,
      ".claude/worktrees/one/CLAUDE.md": rule,
      ".cursor/cache/CLAUDE.md": rule,
      "node_modules/p/CLAUDE.md": rule,
    };
    await using repository = await createTemporaryRepository({
      ...ignored,
      ...others,
      "CLAUDE.md": rule,
      ".kiro/specs/cart/requirements.md": "# Requirements\n\n## Requirement 1: Keep\n\nText.\n",
      ".gitignore": ".*/\n/*.md\n!/CLAUDE.md\n.cursorrules\n.windsurfrules\ndist\nCLAUDE.md\n!/CLAUDE.md\n",
    });
    if (git === "with") await repository.init();
    const project = await openProject({ root: repository.root, indexFile: ":memory:" });
    expect(rulesIn(project).sort()).toEqual(
      ["CLAUDE.md", ...Object.keys(ignored).map((path) => `${path} ignored`)].sort(),
    );
    expect(project.specs.query({ framework: "fw_a" }).total_count).toBe(1);
    expect(
      project.guidelines.explain("web/x.ts", "fw_c").applied.map(({ guideline }) => guideline.source_file),
    ).toContain("CLAUDE.local.md");
    await project.close();
  },
);

test("an index follows what Git begins and ceases to track, and what is ignored", async () => {
  await using repository = await createTemporaryRepository({
    ".gitignore": "build/\n",
    "build/CLAUDE.md": rule,
    "pkg/AGENTS.md": rule,
  });
  const { root } = repository;
  await repository.init();
  await repository.git("add", ".");
  const indexFile = join(root, ".kit", "index.db");
  const rules = () => rulesOfFolder(root, indexFile);
  expect(await rules()).toEqual(["pkg/AGENTS.md"]);
  await repository.git("add", "-f", "build/CLAUDE.md");
  expect(await rules()).toEqual(["build/CLAUDE.md", "pkg/AGENTS.md"]);
  writeFileSync(join(root, ".gitignore"), "build/\npkg/\n");
  expect(await rules()).toEqual(["build/CLAUDE.md", "pkg/AGENTS.md"]);
  await repository.git("rm", "--quiet", "-r", "--cached", "build", "pkg");
  expect(await rules()).toEqual([]);
});

test("a watcher sees new ignored rules, and files that Git begins to track", async () => {
  await using repository = await createTemporaryRepository({
    ".gitignore": "build/\n.cursor/\n",
    "build/CLAUDE.md": rule,
  });
  const { root } = repository;
  await repository.init();
  const project = await openProject({ root, indexFile: ":memory:" });
  const watch = await project.watch();
  const until = (expected: string[]) =>
    expect.poll(() => rulesIn(project), { interval: 5 }).toEqual(expected);
  try {
    mkdirSync(join(root, ".cursor/rules"), { recursive: true });
    writeFileSync(join(root, ".cursor/rules/a.mdc"), cursorRule);
    await until([".cursor/rules/a.mdc ignored"]);
    await repository.git("add", "-f", "build/CLAUDE.md");
    await until([".cursor/rules/a.mdc ignored", "build/CLAUDE.md"]);
    rmSync(join(root, ".cursor"), { recursive: true });
    await until(["build/CLAUDE.md"]);
  } finally {
    await watch.close();
    await project.close();
  }
});

import { expect, test } from "vitest";
import type { ExplainTool } from "../../protocol/guideline-query.ts";
import { compareRecords } from "../guideline-record.ts";
import { createGuidelineMatcher } from "../match/match-guidelines.ts";
import { guidelineAdapterFor, readGuidelines, withSamples } from "../read-guidelines.ts";
import { resolveImport } from "./explain-by-table.ts";
import { explainFile } from "./explain-file.ts";

type Files = Readonly<Record<string, string>>;

function explain(files: Files, file: string, tool?: ExplainTool | "fw_c with AGENTS.md") {
  const claudeReadsAgents = tool === "fw_c with AGENTS.md";
  const read = Object.entries(files)
    .filter(([path]) => guidelineAdapterFor(path) !== undefined)
    .flatMap(([path, text]) => readGuidelines({ path, text }).records)
    .sort(compareRecords);
  const records = withSamples(read);
  const explanation = explainFile({
    records,
    matcher: createGuidelineMatcher(records),
    file,
    ...(tool !== undefined && { tool: tool === "fw_c with AGENTS.md" ? "fw_c" : tool }),
    readText: (path) => files[path],
    claudeReadsAgents,
  });
  return {
    applied: explanation.applied.map(({ guideline, reason, detail }) =>
      [guideline.title, reason, ...(detail === undefined ? [] : [detail])].join(" | "),
    ),
    shadowed: explanation.shadowed.map(
      ({ guideline, shadowed_by, rule }) => `${guideline.title} | ${shadowed_by} | ${rule}`,
    ),
  };
}

test("Claude Code reads from the root down, rules after files, and follows imports", () => {
  const files = {
    "CLAUDE.md": "# Root\nSee @docs/a.md\n",
    "CLAUDE.local.md": "# Local\nx",
    ".claude/rules/z.md": "# Z rule\nx",
    ".claude/rules/ts.md": "---\npaths: ['**/*.ts']\n---\n# Ts rule\n",
    ".claude/rules/py.md": "---\npaths: ['**/*.py']\n---\n# Py rule\n",
    "web/CLAUDE.md": "# Web\nx",
    "api/CLAUDE.md": "# Api\nx",
    "docs/a.md": "# A\n@b.md and `@no.md`\n",
    "docs/b.md": "# B\n@../CLAUDE.md\n",
    "docs/no.md": "# No\n",
    "AGENTS.md": "# Agents\nx",
  };
  expect(explain(files, "web/a.ts", "fw_c")).toEqual({
    applied: [
      "Root | always",
      "A | import | CLAUDE.md",
      "B | import | CLAUDE.md > docs/a.md",
      "Local | always",
      "Z rule | always",
      "Ts rule | pattern | **/*.ts",
      "Web | nested",
    ],
    shadowed: [
      "Agents | CLAUDE.md | Claude Code reads CLAUDE.md; it reads AGENTS.md where a CLAUDE.md imports it.",
    ],
  });
  expect(explain(files, "x", "fw_c with AGENTS.md").applied.slice(3)).toEqual([
    "Agents | always",
    "Local | always",
    "Z rule | always",
  ]);
});

test("Claude Code follows imports over four files, and no further", () => {
  const files: Record<string, string> = { "CLAUDE.md": "# Root\n@1.md" };
  for (let index = 1; index <= 6; index += 1) files[`${index}.md`] = `# File ${index}\n@${index + 1}.md`;
  const { applied, shadowed } = explain(files, "x", "fw_c");
  expect(applied.map((line) => line.split(" | ")[0])).toEqual([
    "Root",
    "File 1",
    "File 2",
    "File 3",
    "File 4",
  ]);
  expect(shadowed).toEqual(["File 5 | 4.md | Claude Code follows imports over at most four files."]);
});

test("an import of AGENTS.md brings its sections once", () => {
  const files = {
    "CLAUDE.md": "@AGENTS.md\n@AGENTS.md\n",
    "AGENTS.md": "## A\n@docs/c.md\n## B\nx\n",
    "docs/c.md": "# C\n",
  };
  expect(explain(files, "x", "fw_c")).toEqual({
    applied: [
      "CLAUDE.md | always",
      "A | import | CLAUDE.md",
      "C | import | CLAUDE.md > AGENTS.md",
      "B | import | CLAUDE.md",
    ],
    shadowed: [],
  });
});

test("Cursor's order is always, matching, legacy, then rules loaded on request", () => {
  const files = {
    ".cursorrules": "# Legacy\nx",
    ".cursor/rules/a-manual.mdc": "# Manual\nx",
    ".cursor/rules/b-agent.mdc": "---\ndescription: d\n---\n# Agent\nx",
    ".cursor/rules/c-glob.mdc": "---\nglobs: *.ts\n---\n# Glob\nx",
    ".cursor/rules/d-always.mdc": "---\nglobs: web/**\nalwaysApply: true\n---\n# Always\nx",
    "web/.cursor/rules/n.mdc": "---\nalwaysApply: true\n---\n# Nested\nx",
    "CLAUDE.md": "# Claude\nx",
  };
  expect(explain(files, "a.ts", "fw_b").applied).toEqual([
    "Always | always | (its pattern web/** is ignored)",
    "Glob | pattern | *.ts",
    "Legacy | always",
    "Agent | auto",
    "Manual | manual",
  ]);
  expect(explain(files, "web/a.ts", "fw_b").applied).toContain("Nested | nested");
});

test("Kiro includes referenced files", () => {
  const files = {
    ".kiro/steering/a.md": "---\ninclusion: manual\n---\n# Manual\n",
    ".kiro/steering/b.md":
      "---\ninclusion: fileMatch\nfileMatchPattern: '*.ts'\n---\n# Ts\n#[[file:docs/api.md]]",
    ".kiro/steering/c.md": "# Always\n",
    "docs/api.md": "# Api\nx",
  };
  expect(explain(files, "a.ts", "fw_a").applied).toEqual([
    "Always | always",
    "Ts | pattern | *.ts",
    "Api | import | .kiro/steering/b.md",
    "Manual | manual",
  ]);
});

test("AGENTS.md under both policies", () => {
  const files = {
    "AGENTS.md": "# Root\nx",
    "web/AGENTS.md": "# Web\nx",
    "web/app/AGENTS.md": "# App\nx",
    "web/app/AGENTS.override.md": "# Override\nx",
  };
  expect(explain(files, "web/app/a.ts", "agents-nearest")).toEqual({
    applied: ["Override | nested"],
    shadowed: [
      "App | web/app/AGENTS.override.md | AGENTS.override.md takes the place of AGENTS.md in its folder.",
      "Root | web/app/AGENTS.override.md | The AGENTS.md closest to the file wins.",
      "Web | web/app/AGENTS.override.md | The AGENTS.md closest to the file wins.",
    ],
  });
  expect(explain(files, "web/app/a.ts", "agents-all").applied).toEqual([
    "Root | always",
    "Web | nested",
    "Override | nested",
  ]);
  expect(explain(files, "web/a.ts", "agents").applied).toEqual(["Web | nested"]);
  expect(
    explain({ ...files, "AGENTS.md": `# Root\n${"x".repeat(40_000)}` }, "web/a.ts", "agents-all"),
  ).toMatchObject({
    applied: ["Root | always"],
    shadowed: ["Web | AGENTS.md | Codex stops reading after 32 KiB of instructions."],
  });
});

test("the AGENTS.md closest to a file is found by folders, not by the order of their names", () => {
  const files = { "0/1/AGENTS.md": "# Inner\nx", "0/AGENTS.md": "# Outer\nx", "AGENTS.md": "# Root\nx" };
  expect(explain(files, "0/1/a.ts", "agents-nearest").applied).toEqual(["Inner | nested"]);
  expect(explain(files, "0/1/a.ts", "agents-all").applied).toEqual([
    "Root | always",
    "Outer | nested",
    "Inner | nested",
  ]);
});

test("Codex's limit counts the bytes of files, and ends the reading before the next one", () => {
  const heading = "# Root\n";
  const read = (text: string) =>
    explain({ "AGENTS.md": text, "web/AGENTS.md": "# Web\nx" }, "web/a.ts", "agents-all").applied.length;
  expect(read(heading + "x".repeat(32 * 1024 - heading.length - 1))).toBe(2);
  expect(read(heading + "x".repeat(32 * 1024 - heading.length))).toBe(1);
  expect(read(heading + "é".repeat(16 * 1024))).toBe(1);
});

test("without a tool, all tools are explained and no guideline is listed twice", () => {
  const files = { "CLAUDE.md": "# C\n@AGENTS.md", "AGENTS.md": "# A\nx", ".kiro/steering/k.md": "# K\n" };
  expect(explain(files, "x")).toEqual({ applied: ["A | always", "C | always", "K | always"], shadowed: [] });
});

test("a project without guidelines is shown the samples, a tool is not", () => {
  expect(explain({}, "a.ts").applied.length).toBeGreaterThan(3);
  expect(explain({}, "a.ts", "agents").applied).toEqual([]);
  expect(explain({ "CLAUDE.md": "# C\nx" }, "../x").applied).toEqual([]);
});

test("an import cannot leave the project", () => {
  expect(resolveImport("../x.md", "docs")).toBe("x.md");
  expect(resolveImport("./a/../b.md", "docs")).toBe("docs/b.md");
  for (const path of ["../../x.md", "~/x.md", "/etc/passwd", "."])
    expect(resolveImport(path, "docs") ?? "docs").toBe("docs");
});

import { expect, test } from "vitest";
import { conversionFormats, explainTools } from "../../protocol/enums.ts";
import type { ExplainTool } from "../../protocol/guideline-query.ts";
import { conversionTargets } from "../convert/conversion-targets.ts";
import { convertGuideline } from "../convert/convert-guideline.ts";
import { explainFile } from "../explain/explain-file.ts";
import { compareRecords, toGuideline } from "../guideline-record.ts";
import { lintGuidelines } from "../lint/lint-guidelines.ts";
import { createGuidelineMatcher } from "../match/match-guidelines.ts";
import { readGuidelines } from "../read-guidelines.ts";
import { conversionFormatOf, sourceTypeOf, toolTable } from "./tool-table.ts";

type Files = Readonly<Record<string, string>>;

const read = (files: Files) =>
  Object.entries(files)
    .flatMap(([path, text]) => readGuidelines({ path, text }).records)
    .sort(compareRecords);

function explain(files: Files, tool: ExplainTool, file = "src/a.ts") {
  const records = read(files);
  return explainFile({
    records,
    matcher: createGuidelineMatcher(records),
    file,
    tool,
    readText: (path) => files[path],
  });
}

const titles = (files: Files, tool: ExplainTool, file?: string) =>
  explain(files, tool, file).applied.map(({ guideline, reason }) => `${guideline.title} ${reason}`);

test("every tool names its release, the vendor's page, and what it reads in which order", () => {
  expect(toolTable.map(({ name }) => name)).toEqual([
    "kiro",
    "cursor",
    "claude",
    "codex",
    "copilot",
    "gemini",
    "windsurf",
    "cline",
    "zed",
  ]);
  for (const { version, source, reads, order } of toolTable) {
    expect(version).toMatch(/\d/);
    expect(new URL(source).protocol).toBe("https:");
    expect(reads.length).toBeGreaterThan(0);
    expect(order).toMatch(/\.$/);
  }
});

test("AGENTS.md alone applies to every tool that reads it", () => {
  const files = { "AGENTS.md": "# Rules\nx", "web/AGENTS.md": "# Web\nx" };
  const applying = explainTools.filter((tool) => titles(files, tool).length > 0);
  expect(applying).toEqual(explainTools.filter((tool) => tool !== "gemini"));
  const both = ["Rules always", "Web nested"];
  const inWeb = (tool: ExplainTool) => titles(files, tool, "web/a.ts");
  for (const tool of ["fw_b", "fw_c", "codex", "windsurf", "cline"] as const)
    expect([tool, inWeb(tool)]).toEqual([tool, both]);
  // The root's file only, and the nearest one only.
  for (const tool of ["fw_a", "zed"] as const) expect([tool, inWeb(tool)]).toEqual([tool, ["Rules always"]]);
  expect(inWeb("copilot")).toEqual(["Web nested"]);
});

test("Claude Code leaves AGENTS.md alone where a CLAUDE.md is on the way, and only there", () => {
  const files = { "AGENTS.md": "# Agents\nx", "web/CLAUDE.md": "# Web\nx", ".claude/rules/r.md": "# R\nx" };
  expect(titles(files, "fw_c", "web/a.ts")).toEqual(["R always", "Web nested"]);
  expect(titles(files, "fw_c", "api/a.ts")).toEqual(["Agents always", "R always"]);
});

test("GitHub Copilot reads its instructions together, each for the files that it names", () => {
  const files = {
    ".github/copilot-instructions.md": "# All\nx",
    ".github/instructions/ts.instructions.md": '---\napplyTo: "**/*.ts,**/*.tsx"\n---\nTs rules.\n',
    ".github/instructions/deep/py.instructions.md": "---\napplyTo: '**/*.py'\n---\n# Py\n",
    ".github/instructions/every.instructions.md": "---\napplyTo: '*'\n---\n# Every\n",
    ".github/instructions/manual.instructions.md": "# Manual\n",
    ".github/instructions/asked.instructions.md": "---\ndescription: d\n---\n# Asked\n",
    "AGENTS.md": "# Agents\nx",
    "CLAUDE.md": "# Claude\nx",
  };
  expect(titles(files, "copilot")).toEqual([
    "All always",
    "Every always",
    "Ts pattern",
    "Agents always",
    "Asked auto",
    "Manual manual",
  ]);
  expect(
    explain(files, "copilot").shadowed.map(({ guideline, shadowed_by }) => [guideline.title, shadowed_by]),
  ).toEqual([["Claude", "AGENTS.md"]]);
  const { "AGENTS.md": _, ...without } = files;
  expect(titles(without, "copilot")).toContain("Claude always");
  expect(titles({ "pkg/CLAUDE.md": "# Pkg\nx" }, "copilot", "pkg/a.ts")).toEqual([]);
  expect(explain(files, "copilot").shadowed[0]?.rule).toBe(
    "Copilot reads CLAUDE.md or GEMINI.md in place of AGENTS.md.",
  );
  const foreign = { "CLAUDE.md": "# Claude\nx", "GEMINI.md": "# Gemini\nx" };
  expect(titles(foreign, "copilot")).toEqual(["Claude always"]);
});

test("Gemini CLI reads GEMINI.md from the root down and follows imports", () => {
  const files = {
    "GEMINI.md": "# Root\n@./docs/a.md\n",
    "web/GEMINI.md": "# Web\nx",
    "docs/a.md": "# A\nx",
    "AGENTS.md": "# No\n",
  };
  expect(titles(files, "gemini", "web/a.ts")).toEqual(["Root always", "A import", "Web nested"]);
});

test("Gemini CLI resolves imports relative to the importing file, over at most five files", () => {
  const files: Record<string, string> = { "web/GEMINI.md": "# Web\n@docs/1.md\n", "docs/1.md": "# No\n" };
  for (let hop = 1; hop <= 6; hop += 1) files[`web/docs/${hop}.md`] = `# File ${hop}\n@./${hop + 1}.md`;
  expect(titles(files, "gemini", "web/a.ts")).toEqual([
    "Web nested",
    ...[1, 2, 3, 4, 5].map((hop) => `File ${hop} import`),
  ]);
  expect(
    explain(files, "gemini", "web/a.ts").shadowed.map(({ guideline, rule }) => [guideline.title, rule]),
  ).toEqual([["File 6", "Gemini CLI follows imports over at most five files."]]);
});

test("no tool is shown the samples of a project without guidelines", () => {
  expect(explainTools.filter((tool) => titles({}, tool).length > 0)).toEqual([]);
});

test("Windsurf obeys triggers, and what it does not read of a long rule is said", () => {
  const files = {
    ".windsurf/rules/on.md": "---\ntrigger: always_on\n---\n# On\n",
    ".windsurf/rules/glob.md": "---\ntrigger: glob\nglobs: *.md, src/**/*.ts\n---\n# Glob\n",
    ".windsurf/rules/model.md": "---\ntrigger: model_decision\ndescription: d\n---\n# Model\n",
    ".windsurf/rules/hand.md": "---\ntrigger: manual\n---\n# Hand\n",
    "web/.windsurf/rules/web.md": "---\ntrigger: always_on\n---\n# Web\n",
    ".windsurfrules": "# Legacy\nx",
  };
  expect(titles(files, "windsurf")).toEqual([
    "Glob pattern",
    "On always",
    "Legacy always",
    "Model auto",
    "Hand manual",
  ]);
  expect(titles(files, "windsurf", "web/a.css")).toEqual([
    "On always",
    "Web nested",
    "Legacy always",
    "Model auto",
    "Hand manual",
  ]);
  const long = { ".windsurf/rules/long.md": `---\ntrigger: always_on\n---\n# Long\n${"x".repeat(12_000)}` };
  expect(explain(long, "windsurf").notes).toEqual([
    ".windsurf/rules/long.md has 12,034 characters; Windsurf reads the first 12,000.",
  ]);
  expect(lintGuidelines(read(long), { files: [] })).toMatchObject([
    { rule: "limit", code: "tool_limit", path: ".windsurf/rules/long.md" },
  ]);
  const unknown = readGuidelines({
    path: ".windsurf/rules/x.md",
    text: "---\ntrigger: sometimes\n---\n# X\n",
  });
  expect(unknown.diagnostics).toMatchObject([{ code: "trigger_unknown", line: 2 }]);
});

test("Cline reads its folder or its file, and the files of others", () => {
  const folder = {
    ".clinerules/01-a.md": "# A\n",
    ".clinerules/02-b.txt": "Plain text.",
    ".clinerules/03-c.md": "---\npaths:\n  - 'web/**'\n---\n# C\n",
    ".clinerules/workflows/release.md": "# Not a rule\n",
    ".windsurfrules": "# Wind\nx",
    "AGENTS.md": "# Agents\nx",
  };
  expect(titles(folder, "cline")).toEqual(["A always", "02 b always", "Wind always", "Agents always"]);
  expect(titles(folder, "cline", "web/a.ts")).toContain("C pattern");
  expect(titles({ ".clinerules": "# One\nx" }, "cline")).toEqual(["One always"]);
});

test("Zed reads the first file of its list", () => {
  const files = {
    ".rules": "# Rules\nx",
    "AGENT.md": "# Agent\nx",
    "AGENTS.md": "# Agents\nx",
    "GEMINI.md": "# Gemini\nx",
  };
  expect(titles(files, "zed")).toEqual(["Rules always"]);
  const rule = "Zed reads the first file of its list only.";
  expect(explain(files, "zed").shadowed).toMatchObject(
    ["Agent", "Agents", "Gemini"].map((title) => ({ guideline: { title }, shadowed_by: ".rules", rule })),
  );
  const { ".rules": _, ...rest } = files;
  expect(titles(rest, "zed")).toEqual(["Agent always"]);
  expect(titles({ "web/.rules": "# No\nx" }, "zed", "web/a.ts")).toEqual([]);
});

test("an explanation counts what it puts in front of a model", () => {
  const { applied, tokens } = explain({ "CLAUDE.md": `# Root\n${"word ".repeat(80)}` }, "fw_c");
  expect(applied.map((each) => each.tokens)).toEqual([tokens]);
  expect(tokens).toBeGreaterThan(95);
  expect(tokens).toBeLessThan(110);
});

test("every format converts into every other, and reads back as the same guideline", () => {
  const sources: Files = {
    ".github/instructions/a.instructions.md":
      "---\napplyTo: 'src/**/*.ts,web/*'\n---\n# A title\n\n- do: \"this\"\n",
    ".windsurf/rules/b.md": "---\ntrigger: always_on\n---\n# B\n\n```\n## no\n```\n",
    "web/GEMINI.md": "## C\n\ntext\n",
    ".clinerules": "## D\n\ntext\n",
    ".rules": "## E\n\n# h\n",
  };
  for (const record of read(sources)) {
    for (const format of conversionFormats) {
      const { content, filename } = convertGuideline(record, format);
      const target = conversionTargets[format];
      const path = target.kind === "section" ? target.file : `${target.folder}/${filename}`;
      const [again, ...others] = readGuidelines({ path, text: content }).records;
      expect(others).toEqual([]);
      expect([format, again?.title, again?.content]).toEqual([format, record.title, record.content]);
      if (
        record.scope === "" &&
        again !== undefined &&
        format !== "copilot" &&
        format !== "windsurf" &&
        format !== "cline"
      )
        expect(toGuideline(again).file_pattern).toBe(toGuideline(record).file_pattern);
    }
  }
  const [nested] = read({ "web/GEMINI.md": sources["web/GEMINI.md"] ?? "" });
  if (nested === undefined) throw new Error("There is no guideline.");
  expect(convertGuideline(nested, "copilot")).toMatchObject({
    filename: "c.instructions.md",
    losses: [],
    frontmatter: { applyTo: "web/**" },
  });
  expect(convertGuideline(nested, "windsurf")).toMatchObject({
    losses: [],
    frontmatter: { trigger: "glob", globs: "web/**" },
  });
  expect(convertGuideline(nested, "cline")).toMatchObject({ losses: [], frontmatter: { paths: ["web/**"] } });
});

test("a tool's name is accepted as its source type", () => {
  const given = ["claude", "Cursor", "kiro", "FW_A", "fw_c", "steering", "agents", "sample"];
  expect(given.map(sourceTypeOf)).toEqual([
    "fw_c",
    "fw_b",
    "steering",
    "steering",
    "fw_c",
    "steering",
    "agents",
    "sample",
  ]);
});

test("a name that is not a guideline source has no source type", () => {
  expect(["speckit", "fw_d", "custom", "docx", "__proto__", ""].map(sourceTypeOf)).toEqual(
    Array(6).fill(undefined),
  );
  expect(["agents", "sample", "docx"].map(conversionFormatOf)).toEqual(Array(3).fill(undefined));
});

import { expect, test } from "vitest";
import type { SpecBlock } from "../../protocol/spec-block.ts";
import { claudeAdapter } from "../adapters/claude/claude-adapter.ts";
import { kiroAdapter } from "../adapters/kiro/kiro-adapter.ts";
import { assembleBlocks } from "../model/assemble-blocks.ts";
import { exportSpecs, textOutsideBlocks } from "./export-specs.ts";

const section: SpecBlock = {
  id: "fw_c-style",
  path: "CLAUDE.md",
  framework: "fw_c",
  spec_type: "constraint",
  title: "Style",
  content: "Use tabs in `src/a.ts`.",
  tags: ["fw_c", "style"],
  lifecycle: "active",
  priority: "medium",
  metadata: { level: 2, code_refs: ["src/a.ts"] },
};

test("JSON and JSONL hold every block unchanged", () => {
  const [json] = exportSpecs([section], "json").files;
  expect(json?.path).toBe("specs.json");
  expect(JSON.parse(json?.content ?? "")).toEqual({ specs: [section] });
  const [lines] = exportSpecs([section, section], "jsonl").files;
  expect(
    lines?.content
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line)),
  ).toEqual([section, section]);
  expect(exportSpecs([], "jsonl")).toEqual({ files: [{ path: "specs.jsonl", content: "" }], losses: [] });
});

test("a framework's files have the paths of its blocks", () => {
  expect(exportSpecs([section], "fw_c")).toEqual({
    files: [{ path: "CLAUDE.md", content: "## Style\n\nUse tabs in `src/a.ts`.\n" }],
    losses: [],
  });
});

test("blocks of other frameworks, and of files outside the framework, are losses", () => {
  const { files, losses } = exportSpecs(
    [
      { ...section, id: "a", framework: "fw_b" },
      { ...section, id: "b", path: "specs.json" },
    ],
    "fw_c",
  );
  expect(files).toEqual([]);
  expect(losses).toEqual([
    "a is left out: it is a block of Cursor.",
    "b is left out: specs.json is not a file of Claude Code.",
  ]);
});

test("a loss of a format is found and reported once for each block", () => {
  const { losses } = exportSpecs(
    [
      { ...section, priority: "high", summary: "short", metadata: { ...section.metadata, owner: "Ann" } },
      { ...section, id: "fw_c-tests", title: "Tests", content: "## Fast", tags: ["fw_c", "tests"] },
      {
        ...section,
        id: "other",
        title: "Other",
        tags: ["fw_c", "other"],
        metadata: { level: 2, code_refs: ["b.ts"] },
      },
    ],
    "fw_c",
  );
  expect(losses).toEqual([
    "fw_c-style is read back with another summary, priority, metadata.",
    "fw_c-tests is read back with another content, code_refs.",
    "other is not read back from CLAUDE.md under its id.",
    "CLAUDE.md is read back with the id fw_c-fast, which the project does not have.",
    "CLAUDE.md is read back with the id fw_c-other, which the project does not have.",
  ]);
});

test("blocks in any order are written in the order of their file", () => {
  const text = "# A\na\n# B\nb\n# C\nc\n";
  const parsed = claudeAdapter.parse({ path: "CLAUDE.md", text });
  const { blocks } = assembleBlocks([{ path: "CLAUDE.md", parsed }]);
  const { files, losses } = exportSpecs([...blocks].reverse(), "fw_c");
  expect(losses).toEqual([]);
  expect(files[0]?.content).toBe("# A\n\na\n\n# B\n\nb\n\n# C\n\nc\n");
});

test("blocks of custom files are written if no tool reads their path", () => {
  const block: SpecBlock = {
    ...section,
    id: "x",
    framework: "custom",
    path: "docs/x.md",
    tags: [],
    metadata: { owner: "Ann" },
  };
  const { files, losses } = exportSpecs([block], "custom");
  expect(losses).toEqual([]);
  expect(files[0]?.content).toContain("owner: Ann");
});

const path = ".kiro/specs/auth/requirements.md";
const text = `# Requirements Document

## Introduction

Users log in.
They log out.

## Glossary

- User: a person

## Requirements

### Requirement 1

#### Acceptance Criteria

1. THE system SHALL log in
`;

function lossOf(source: string): string | undefined {
  const blocks = assembleBlocks([{ path, parsed: kiroAdapter.parse({ path, text: source }) }]).blocks;
  const written = exportSpecs(blocks, "fw_a").files[0]?.content ?? "";
  return textOutsideBlocks({ source: { path, text: source }, blocks, written });
}

test("text outside of blocks is listed with its lines and headings", () => {
  expect(lossOf(text)).toBe(
    `${path}: 3 lines outside of specs are left out: 5–6 (Introduction), 10 (Glossary).`,
  );
});

test("headings that the export writes anyway, comments and blank lines are no losses", () => {
  expect(
    lossOf(text.replace(/## Introduction[\s\S]*(?=## Requirements)/, "<!-- note -->\n\n")),
  ).toBeUndefined();
});

test("a file without any spec is lost whole, and said so", () => {
  expect(lossOf("# Notes\n\nOnly words.\n")).toBe(
    `${path}: no spec was read from it, so nothing of it is exported.`,
  );
});

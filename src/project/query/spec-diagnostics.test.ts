import { expect, test } from "vitest";
import type { SpecAdapter } from "../../specs/adapter.ts";
import { createTemporaryRepository } from "../../testing/temporary-repository.ts";
import { openProject } from "../open-project.ts";
import { indexOf } from "../project-index.ts";
import { specDiagnostics } from "./edges.ts";

const record = (id: string, fields: Readonly<Record<string, unknown>> = {}) => ({
  id,
  framework: "custom",
  spec_type: "task",
  title: "A title",
  content: "A text.",
  ...fields,
});

test("diagnostics of all causes come in path, then line order", async () => {
  await using repository = await createTemporaryRepository({
    "b.json": JSON.stringify([record("same"), record("own", { summary: "s".repeat(501) })], null, 2),
    "a.json": JSON.stringify([record("same")]),
    "c/CLAUDE.md": "## Text\n\nfine\n",
    ".kiro/specs/x/tasks.md": "# Plan\n\n- [ ] 1. Do it\n  - _Requirements: 9.1_\n",
  });
  const config = { specs: { custom: [{ include: "*.json" }] } };
  const project = await openProject({ root: repository.root, indexFile: ":memory:", config });
  const found = project.specs.diagnostics().map(({ rule, path, id, severity }) => [rule, path, id, severity]);
  expect(found).toEqual([
    ["dangling-reference", ".kiro/specs/x/tasks.md", "fw_a-x-tasks-1", "warning"],
    ["duplicate-id", "b.json", "same", "error"],
    ["summary-length", "b.json", "own", "error"],
  ]);
  expect((await project.refresh()).diagnostics).toBe(3);
  await project.close();
});

test("the problems of one file are those that the list of all has about it", async () => {
  const change = (name: string, requirement: string): Record<string, string> => ({
    [`openspec/changes/${name}/proposal.md`]: "# Why\n\nIt is needed.\n",
    [`openspec/changes/${name}/specs/cart/spec.md`]: `## MODIFIED Requirements\n\n### Requirement: ${requirement}\nThe cart SHALL hold items.\n\n#### Scenario: One\n- **WHEN** a\n- **THEN** b\n`,
  });
  await using repository = await createTemporaryRepository({
    "b.json": JSON.stringify([record("same"), record("own", { summary: "s".repeat(501) })], null, 2),
    "a.json": JSON.stringify([record("same")]),
    ".kiro/specs/x/tasks.md":
      "# Plan\n\n- [ ] 1. Do it\n  - _Requirements: 9.1_\n- [ ] 2. More\n  - _Requirements: 9.2_\n",
    "openspec/specs/cart/spec.md":
      "# Cart\n\n## Requirements\n\n### Requirement: Known\nThe cart SHALL hold items.\n\n#### Scenario: One\n- **WHEN** a\n- **THEN** b\n",
    ...change("known", "Known"),
    ...change("unknown", "Unknown"),
    "openspec/changes/empty/notes.md": "# Notes\n",
  });
  const config = { specs: { custom: [{ include: "*.json" }] } };
  const project = await openProject({ root: repository.root, indexFile: ":memory:", config });
  const all = project.specs.diagnostics();
  expect(new Set(all.map(({ rule }) => rule))).toEqual(
    new Set(["dangling-reference", "duplicate-id", "structure", "summary-length"]),
  );
  const index = indexOf(project);
  for (const file of [...project.files(), "openspec/changes/empty"])
    expect(index.read((database) => specDiagnostics(database, file))).toEqual(
      all.filter(({ path }) => path === file),
    );
  await project.close();
});

test("a user's adapter that throws becomes a diagnostic and stops nothing", async () => {
  await using repository = await createTemporaryRepository({ "bad.txt": "x", "CLAUDE.md": "## A\n\ntext\n" });
  const adapter: SpecAdapter = {
    name: "mine",
    framework: "custom",
    matches: (path) => path.endsWith(".txt"),
    parse() {
      throw new Error("not today");
    },
  };
  const project = await openProject({
    root: repository.root,
    indexFile: ":memory:",
    config: { specs: { adapters: [adapter] } },
  });
  expect(project.specs.diagnostics()).toEqual([
    {
      severity: "error",
      rule: "structure",
      code: "adapter_failed",
      message: 'The adapter "mine" failed on this file: not today',
      path: "bad.txt",
    },
  ]);
  expect(project.specs.get("fw_a")).toBeUndefined();
  expect(project.specs.get("fw_c-a")?.path).toBe("CLAUDE.md");
  await project.close();
});

test("unreadable files are reported for specs and guidelines alike", async () => {
  await using repository = await createTemporaryRepository({
    "CLAUDE.md/x.txt": "",
    "AGENTS.md": "# Ok\n\ntext\n",
  });
  const project = await openProject({ root: repository.root, indexFile: ":memory:" });
  const expected = [
    expect.objectContaining({ rule: "unreadable-file", path: "CLAUDE.md", code: "not_a_file" }),
  ];
  expect(project.specs.diagnostics()).toEqual(expected);
  expect(project.guidelines.diagnostics()).toEqual(expect.arrayContaining(expected));
  expect(project.guidelines.list({}).total_count).toBe(1);
  await project.close();
});

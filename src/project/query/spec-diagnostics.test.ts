import { expect, test } from "vitest";
import type { SpecAdapter } from "../../specs/adapter.ts";
import { createTemporaryRepository } from "../../testing/temporary-repository.ts";
import { openProject } from "../open-project.ts";

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

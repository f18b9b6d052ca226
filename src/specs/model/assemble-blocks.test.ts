import { expect, test } from "vitest";
import type { DraftLink, SpecDraft } from "../adapter.ts";
import { assembleBlocks } from "./assemble-blocks.ts";

function draft(base: string, parts: Partial<SpecDraft> = {}): SpecDraft {
  return {
    id: { kind: "base", value: base },
    framework: "custom",
    spec_type: "task",
    title: base,
    content: base,
    tags: [],
    lifecycle: "active",
    priority: "medium",
    metadata: {},
    span: { start_line: 1, end_line: 1 },
    links: [],
    mentions: [],
    ...parts,
  };
}

const link = (target: string): DraftLink => ({ kind: "implements", target, line: 1 });
const file = (path: string, ...drafts: SpecDraft[]) => ({ path, parsed: { drafts, diagnostics: [] } });

test("ids follow the order of paths, not the order of the files", () => {
  const files = [file("b/x.md", draft("a")), file("a/x.md", draft("a"), draft("c"))];
  const expected = [
    ["a", "a/x.md"],
    ["c", "a/x.md"],
    ["a-2", "b/x.md"],
  ];
  expect(assembleBlocks(files).blocks.map(({ id, path }) => [id, path])).toEqual(expected);
  expect(assembleBlocks([...files].reverse()).blocks.map(({ id, path }) => [id, path])).toEqual(expected);
});

test("a link means the target in the same folder, else the first of the project, and never itself", () => {
  const { blocks } = assembleBlocks([
    file("a/req.md", draft("req")),
    file("b/req.md", draft("req")),
    file("b/tasks.md", draft("task", { links: [link("req"), link("gone"), link("task")] })),
    file("c/tasks.md", draft("other", { links: [link("req"), link("req")] })),
  ]);
  expect(blocks.map(({ id, metadata }) => [id, metadata.related_specs])).toEqual([
    ["req", undefined],
    ["req-2", undefined],
    ["task", ["req-2"]],
    ["other", ["req"]],
  ]);
});

test("mentions of files that exist become references", () => {
  const mentions = [
    { path: "src/a.ts", line: 1 },
    { path: "src/gone.ts", line: 1 },
  ];
  const [block] = assembleBlocks(
    [file("a.md", draft("a", { mentions }))],
    (path) => path === "src/a.ts",
  ).blocks;
  expect(block?.metadata.code_refs).toEqual(["src/a.ts"]);
});

test("the result has the diagnostics of the parsers and those about ids", () => {
  const declared = draft("x", { id: { kind: "declared", value: "x" } });
  const problem = { severity: "warning", rule: "structure", message: "m", path: "a.md" } as const;
  const files = [{ path: "a.md", parsed: { drafts: [declared, declared], diagnostics: [problem] } }];
  expect(assembleBlocks(files).diagnostics.map(({ rule }) => rule)).toEqual(["structure", "duplicate-id"]);
});

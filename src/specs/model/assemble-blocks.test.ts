import fc from "fast-check";
import { expect, test } from "vitest";
import type { DraftId, DraftLink, SpecDraft } from "../adapter.ts";
import { assembleBlocks, assignIds, toSpecBlock } from "./assemble-blocks.ts";

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

const base = (value: string): DraftId => ({ kind: "base", value });
const declared = (value: string): DraftId => ({ kind: "declared", value });
const sequence = (prefix: string): DraftId => ({ kind: "sequence", prefix });

function idsOf(...ids: DraftId[]): readonly string[] {
  return assignIds(ids.map((id, index) => ({ id, path: "a.md", line: index + 1 }))).ids;
}

test("a base that occurs again gets -2, -3 in order", () => {
  expect(idsOf(base("x"), base("y"), base("x"), base("x"))).toEqual(["x", "y", "x-2", "x-3"]);
});

test("a suffix that is another block's base or declared id is skipped, wherever that block is", () => {
  expect(idsOf(base("x"), base("x"), base("x-2"))).toEqual(["x", "x-3", "x-2"]);
  expect(idsOf(base("x"), base("x"), declared("x-2"))).toEqual(["x", "x-3", "x-2"]);
  expect(idsOf(base("x"), declared("x"))).toEqual(["x-2", "x"]);
});

test("a sequence counts from zero per prefix", () => {
  expect(idsOf(sequence("r-"), sequence("s-"), sequence("r-"))).toEqual(["r-0", "s-0", "r-1"]);
});

test("a declared id is kept, and the second one is an error that names the first", () => {
  const { ids, diagnostics } = assignIds([
    { id: declared("x"), path: "a.md", line: 3 },
    { id: declared("x"), path: "b.md", line: 7 },
  ]);
  expect(ids).toEqual(["x", "x"]);
  expect(diagnostics).toEqual([
    {
      severity: "error",
      rule: "duplicate-id",
      message: 'The id "x" is already declared in a.md, line 3.',
      path: "b.md",
      line: 7,
      id: "x",
      field: "id",
    },
  ]);
});

test("ids are unique for any bases", () => {
  const name = fc.stringMatching(/^[ab](-[1-3]){0,3}$/);
  fc.assert(
    fc.property(fc.array(name, { maxLength: 40 }), (names) => {
      const ids = idsOf(...names.map(base));
      expect(new Set(ids).size).toBe(ids.length);
      for (const one of new Set(names)) expect(ids[names.indexOf(one)]).toBe(one);
    }),
  );
});

const plainDraft: SpecDraft = {
  id: { kind: "base", value: "a" },
  framework: "custom",
  spec_type: "design",
  title: "A",
  content: "a",
  tags: [],
  lifecycle: "active",
  priority: "medium",
  metadata: { code_refs: ["src/a.ts"] },
  span: { start_line: 1, end_line: 3 },
  links: [],
  mentions: [],
};

test("a block has the source lines of its draft, and no empty list of references", () => {
  const block = toSpecBlock(plainDraft, {
    id: "a-2",
    path: "a.md",
    related_specs: [],
    test_refs: ["a.test.ts"],
  });
  expect(block).toEqual({
    id: "a-2",
    path: "a.md",
    framework: "custom",
    spec_type: "design",
    title: "A",
    content: "a",
    tags: [],
    lifecycle: "active",
    priority: "medium",
    metadata: { code_refs: ["src/a.ts"], test_refs: ["a.test.ts"], source: { start_line: 1, end_line: 3 } },
  });
});

test("declared references come before found ones, each once", () => {
  const block = toSpecBlock(
    { ...plainDraft, created_at: "2026-01-01" },
    {
      id: "a",
      path: "a.md",
      code_refs: ["src/b.ts", "src/a.ts"],
      created_at: "2025-01-01",
      updated_at: "2026-02-02",
    },
  );
  expect(block.metadata.code_refs).toEqual(["src/a.ts", "src/b.ts"]);
  expect([block.created_at, block.updated_at]).toEqual(["2026-01-01", "2026-02-02"]);
});

test.each([
  [{}, "Git"],
  [{ author: " " }, "Git"],
  [{ author: null }, "Git"],
  [{ author: "Ann" }, "Ann"],
  [{ author: { toString: 1 } }, { toString: 1 }],
  [{ authors: ["Ann"] }, undefined],
])("an author that the file names goes before Git's: %j", (metadata, author) => {
  const block = toSpecBlock(
    { ...plainDraft, metadata: metadata as unknown as SpecDraft["metadata"] },
    { id: "a", path: "a.md", author: "Git" },
  );
  expect(block.metadata.author).toEqual(author);
});

import { expect, test } from "vitest";
import type { SpecDraft } from "../adapter.ts";
import { toSpecBlock } from "./assemble-blocks.ts";

const draft: SpecDraft = {
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
  const block = toSpecBlock(draft, { id: "a-2", path: "a.md", related_specs: [], test_refs: ["a.test.ts"] });
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
    { ...draft, created_at: "2026-01-01" },
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
    { ...draft, metadata: metadata as unknown as SpecDraft["metadata"] },
    { id: "a", path: "a.md", author: "Git" },
  );
  expect(block.metadata.author).toEqual(author);
});

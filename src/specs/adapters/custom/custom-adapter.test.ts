import { expect, test } from "vitest";
import { type CustomSource, createCustomAdapter } from "./custom-adapter.ts";

const read = (path: string, text: string, source: Partial<CustomSource> = {}) =>
  createCustomAdapter([{ include: "**", ...source }]).parse({ path, text });

const record = { id: "x", spec_type: "constraint", title: "T", content: "C" };

test("it reads what the globs of the config name, the first one's defaults counting", () => {
  const adapter = createCustomAdapter([
    { include: "docs/*.md", spec_type: "design", tags: ["adr"] },
    { include: "{docs,rules}/**", tags: ["other"] },
  ]);
  expect(["docs/a.md", "docs/b/c.yaml", "rules/.hidden/x.json"].every((path) => adapter.matches(path))).toBe(
    true,
  );
  expect(["a.md", "src/docs/a.md"].some((path) => adapter.matches(path))).toBe(false);
  const [draft] = adapter.parse({ path: "docs/a.md", text: "# A\n\nb\n" }).drafts;
  expect(draft).toMatchObject({ spec_type: "design", tags: ["adr"] });
});

test("a Markdown file is a block with the fields of its front matter", () => {
  const text = `---
id: limits
spec_type: constraint
title: Limits
tags: [a, b]
priority: high
lifecycle: deprecated
summary: Short
created_at: 2026-01-02
author: Ann
related_specs: [other]
code_refs: [src/x.ts]
---

# Heading

See \`src/a.ts\`.
`;
  const { drafts, diagnostics } = read("docs/a.md", text, { tags: ["doc"] });
  expect(diagnostics).toEqual([]);
  expect(drafts).toMatchObject([
    {
      id: { kind: "declared", value: "limits" },
      framework: "custom",
      spec_type: "constraint",
      title: "Limits",
      content: "# Heading\n\nSee `src/a.ts`.",
      summary: "Short",
      tags: ["doc", "a", "b"],
      lifecycle: "deprecated",
      priority: "high",
      created_at: "2026-01-02",
      metadata: { author: "Ann", related_specs: ["other"], code_refs: ["src/x.ts"] },
      span: { start_line: 15, end_line: 17 },
      links: [{ kind: "related", target: "other", line: 11 }],
      mentions: [{ path: "src/a.ts", line: 17 }],
    },
  ]);
});

test("without front matter, a Markdown file is named by its heading and its file", () => {
  expect(read("docs/Whole Cents.md", "# Money\n\nCents.\n").drafts).toMatchObject([
    { id: { kind: "base", value: "custom-whole-cents" }, spec_type: "requirement", title: "Money", tags: [] },
  ]);
  expect(read("a.txt", "plain\n").drafts).toMatchObject([{ title: "a", content: "plain" }]);
  expect(read("a.md", "\n\n")).toEqual({ drafts: [], diagnostics: [] });
});

test("a wrong field of front matter is reported with its line and left out, and the block loads", () => {
  const { drafts, diagnostics } = read(
    "a.md",
    `---\nid: a\npriority: urgent\nupdated_at: yesterday\nsummary: "${"s".repeat(501)}"\n---\ntext\n`,
  );
  expect(drafts).toMatchObject([{ id: { value: "a" }, priority: "medium", content: "text" }]);
  expect(drafts[0]?.summary).toBeUndefined();
  expect(drafts[0]?.updated_at).toBeUndefined();
  expect(diagnostics.map(({ rule, line, field }) => [rule, line, field])).toEqual([
    ["enum", 3, "priority"],
    ["timestamp", 4, "updated_at"],
    ["summary-length", 5, "summary"],
  ]);
});

test("front matter that is never closed, and a block without text, are reported", () => {
  expect(read("a.md", "---\nid: a\ntext\n").diagnostics).toMatchObject([{ rule: "front-matter", line: 1 }]);
  expect(read("a.md", "---\nid: a\n---\n")).toMatchObject({
    drafts: [],
    diagnostics: [{ rule: "required-field", field: "content" }],
  });
});

test("a data file holds records with ids; a malformed record does not affect the others", () => {
  const records = [
    record,
    { ...record, id: undefined },
    { ...record, id: "y", title: 7 },
    { ...record, id: "z", spec_type: "wish" },
    "text",
    { ...record, id: 12, tags: "one, two", lifecycle: "gone", owner: "Ann" },
  ];
  const text = records.map((each) => JSON.stringify(each)).join("\n");
  const { drafts, diagnostics } = read("specs.jsonl", text);
  expect(drafts).toMatchObject([
    { id: { kind: "declared", value: "x" }, spec_type: "constraint", span: { start_line: 1, end_line: 1 } },
    { id: { value: "12" }, tags: ["one", "two"], lifecycle: "active", metadata: { owner: "Ann" } },
  ]);
  expect(diagnostics.map(({ rule, line, field }) => [rule, line, field])).toEqual([
    ["required-field", 2, "id"],
    ["required-field", 3, "title"],
    ["enum", 4, "spec_type"],
    ["structure", 5, undefined],
    ["enum", 6, "lifecycle"],
  ]);
});

test("records without a type have the type of the configuration", () => {
  const { spec_type: _type, ...untyped } = record;
  expect(read("a.json", JSON.stringify(untyped)).diagnostics).toMatchObject([{ field: "spec_type" }]);
  expect(read("a.json", JSON.stringify(untyped), { spec_type: "design" }).drafts).toMatchObject([
    { spec_type: "design" },
  ]);
});

test("a record keeps its framework, and the path it came from as its origin", () => {
  const exported = {
    ...record,
    framework: "fw_a",
    path: ".kiro/specs/a/tasks.md",
    metadata: { source: { start_line: 9 }, n: 1 },
  };
  const [draft] = read("specs.json", JSON.stringify({ specs: [exported] })).drafts;
  expect(draft).toMatchObject({ framework: "fw_a", metadata: { n: 1, origin: ".kiro/specs/a/tasks.md" } });
  expect(draft?.metadata.source).toBeUndefined();
});

test("YAML records have their lines, and their contents name files", () => {
  const text = "- id: a\n  spec_type: task\n  title: T\n  content: |\n    See `src/a.ts`.\n- id: b\n";
  const { drafts, diagnostics } = read("x.yml", text);
  expect(drafts).toMatchObject([
    {
      content: "See `src/a.ts`.\n",
      span: { start_line: 1, end_line: 5 },
      mentions: [{ path: "src/a.ts", line: 4 }],
    },
  ]);
  expect(new Set(diagnostics.map(({ line }) => line))).toEqual(new Set([6]));
});

test("a file whose content does not match its extension is one diagnostic", () => {
  for (const path of ["a.json", "a.yaml"]) {
    const { drafts, diagnostics } = read(path, '{"a": [');
    expect([drafts.length, diagnostics.length]).toEqual([0, 1]);
  }
  expect(read("a.json", " \n")).toEqual({ drafts: [], diagnostics: [] });
});

test("its files are written so that they read back the same", () => {
  for (const path of ["a.json", "b.jsonl", "c.yaml"]) {
    const adapter = createCustomAdapter([{ include: "**" }]);
    const text = JSON.stringify({
      ...record,
      content: "a: b\n\n  - c\n",
      metadata: { n: [1, null, "x: y"] },
    });
    const { drafts } = adapter.parse({ path, text });
    const [draft] = drafts;
    if (draft === undefined) throw new Error("no draft");
    const { id, span: _span, links: _links, mentions: _mentions, ...fields } = draft;
    const written = adapter.write?.([{ ...fields, id: id.kind === "sequence" ? "" : id.value, path }]);
    const again = adapter.parse({ path, text: written?.files[0]?.content ?? "" }).drafts;
    expect(again).toMatchObject([{ ...fields, id }]);
  }
});

import { expect, test } from "vitest";
import { validateBlock, validateBlocks } from "./validate.ts";

const valid = {
  id: "a",
  path: "specs/a.md",
  framework: "fw_a",
  spec_type: "requirement",
  title: "A",
  content: "a",
};

function problemsOf(block: unknown): string[] {
  return validateBlock(block, "blocks[0]").map(({ rule, field }) => `${rule} ${field}`);
}

test("a block with the required fields is valid, and so is one with all of them", () => {
  expect(validateBlocks([valid])).toEqual([]);
  const complete = {
    ...valid,
    id: "b",
    summary: "s".repeat(500),
    tags: ["x"],
    lifecycle: "legacy",
    priority: "low",
    created_at: "2026-01-01",
    updated_at: "2026-01-01T10:00:00Z",
    metadata: {},
  };
  expect(validateBlocks([valid, complete])).toEqual([]);
});

test.each(["id", "path", "framework", "spec_type", "title", "content"])("%s is required", (field) => {
  for (const value of [undefined, "", "  ", null, 7, ["a"]]) {
    expect(problemsOf({ ...valid, [field]: value }), String(value)).toEqual([`required-field ${field}`]);
  }
});

test.each(["framework", "spec_type", "lifecycle", "priority"])("%s must be one of its values", (field) => {
  expect(problemsOf({ ...valid, [field]: "other" })).toEqual([`enum ${field}`]);
  expect(problemsOf({ ...valid, [field]: "Active" })).toEqual([`enum ${field}`]);
});

test("an optional enum of the wrong type breaks the enum rule", () => {
  expect(problemsOf({ ...valid, lifecycle: null, priority: 1 })).toEqual(["enum lifecycle", "enum priority"]);
});

test("timestamps are ISO 8601", () => {
  expect(problemsOf({ ...valid, created_at: "2024-13-45", updated_at: "yesterday" })).toEqual([
    "timestamp created_at",
    "timestamp updated_at",
  ]);
  expect(problemsOf({ ...valid, created_at: 1_700_000_000 })).toEqual(["timestamp created_at"]);
});

test("a summary has at most 500 characters", () => {
  expect(problemsOf({ ...valid, summary: "s".repeat(501) })).toEqual(["summary-length summary"]);
  expect(problemsOf({ ...valid, summary: 5 })).toEqual(["structure summary"]);
});

test("tags and metadata have their shape, and a block is an object", () => {
  expect(problemsOf({ ...valid, tags: ["a", 1] })).toEqual(["structure tags"]);
  expect(problemsOf({ ...valid, metadata: [] })).toEqual(["structure metadata"]);
  for (const block of [null, [], "a", 3]) expect(problemsOf(block)).toEqual(["structure undefined"]);
});

test("an id that occurs again is an error of the later block, which names the first", () => {
  expect(validateBlocks([valid, { ...valid, path: "specs/b.md" }])).toEqual([
    {
      severity: "error",
      rule: "duplicate-id",
      message: 'blocks[0] has the id "a" already.',
      path: "specs/b.md",
      id: "a",
      field: "id",
    },
  ]);
});

test("a diagnostic has the path and line of its block, or the block's place", () => {
  const block = {
    ...valid,
    priority: "x".repeat(100),
    metadata: { source: { start_line: 12, end_line: 14 } },
  };
  expect(validateBlock(block, "blocks[0]")).toEqual([
    {
      severity: "error",
      rule: "enum",
      message: `"priority" must be one of critical, high, medium, low, not "${"x".repeat(59)}…".`,
      path: "specs/a.md",
      line: 12,
      id: "a",
      field: "priority",
    },
  ]);
  expect(validateBlocks([valid, {}])[0]?.path).toBe("blocks[1]");
});

test("a record with a hostile prototype key is only data", () => {
  const block: unknown = JSON.parse('{"__proto__": {"id": "x", "title": "t"}, "constructor": 1}');
  expect(problemsOf(block)).toContain("required-field id");
});

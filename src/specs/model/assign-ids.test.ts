import fc from "fast-check";
import { expect, test } from "vitest";
import type { DraftId } from "../adapter.ts";
import { assignIds } from "./assemble-blocks.ts";

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

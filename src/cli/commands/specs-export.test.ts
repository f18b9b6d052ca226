import { expect, test } from "vitest";
import type { SpecBlock } from "../../protocol/spec-block.ts";
import { exportSpecs } from "../../specs/export/export-specs.ts";
import { toJsonLines, toJsonPieces } from "./specs-export.ts";

function createSpec(id: string): SpecBlock {
  return {
    id,
    path: "a.md",
    framework: "custom",
    spec_type: "design",
    title: 'With "quotes"\nand \u2028 breaks',
    content: "# A\n\ntext",
    tags: [],
    lifecycle: "active",
    priority: "medium",
    metadata: { related_specs: ["x"], nested: { empty: {} } },
  };
}

test.each([0, 1, 3])("the pieces of an export of %i specs join to its text", (number) => {
  const specs = Array.from({ length: number }, (_, index) => createSpec(`spec-${index}`));
  expect([...toJsonPieces(specs)].join("")).toBe(exportSpecs(specs, "json").files[0]?.content);
  expect([...toJsonLines(specs)].join("")).toBe(exportSpecs(specs, "jsonl").files[0]?.content);
});

import { expect, test } from "vitest";
import { conversionFormatOf, sourceTypeOf } from "./format-names.ts";

test("people may write a tool's name for its source type", () => {
  const given = ["claude", "Cursor", "kiro", "FW_A", "fw_c", "steering", "agents", "sample"];
  expect(given.map(sourceTypeOf)).toEqual([
    "fw_c",
    "fw_b",
    "steering",
    "steering",
    "fw_c",
    "steering",
    "agents",
    "sample",
  ]);
});

test("a name that is not a guideline source gives nothing", () => {
  expect(["speckit", "fw_d", "custom", "docx", "__proto__", ""].map(sourceTypeOf)).toEqual(
    Array(6).fill(undefined),
  );
  expect(["agents", "sample", "docx"].map(conversionFormatOf)).toEqual(Array(3).fill(undefined));
});

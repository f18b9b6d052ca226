import { expect, test } from "vitest";
import { previewChange } from "./call-change.ts";

const edit = (args: object) => ({ tool: "edit", args: { path: "a.md", ...args } });

test("a write replaces the whole file, also one that it makes shorter", () => {
  const call = { tool: "write", args: { path: "a.md", content: "new\n" } };
  expect(previewChange(call, "one\ntwo\n")).toEqual({ path: "a.md", before: "one\ntwo\n", after: "new\n" });
  expect(previewChange(call, "")?.before).toBe("");
});

test("an edit replaces one place, or all of them, and inserts dollar signs as they are", () => {
  expect(previewChange(edit({ old: "one", new: "$&" }), "one one")?.after).toBe("$& one");
  expect(previewChange(edit({ old: "one", new: "$1", all: true }), "one one")?.after).toBe("$1 $1");
});

test("an edit whose text is not in the file, and a call of another tool, have no change", () => {
  expect(previewChange(edit({ old: "three", new: "two" }), "one")).toBeUndefined();
  expect(previewChange(edit({ old: "", new: "two" }), "one")).toBeUndefined();
  expect(previewChange({ tool: "bash", args: { path: "a.md" } }, "one")).toBeUndefined();
  expect(previewChange({ tool: "write", args: "a.md" }, "one")).toBeUndefined();
});

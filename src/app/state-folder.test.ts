import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, expect, onTestFinished, test } from "vitest";
import { testFolder } from "../testing/test-folder.ts";
import { stateFolder } from "./state-folder.ts";

let root = "";
beforeEach(() => {
  root = testFolder(onTestFinished);
});

test("the folder is made once, and Git ignores what is in it unless its owner has said something else", () => {
  const folder = stateFolder(root);
  expect(readFileSync(join(folder, ".gitignore"), "utf8")).toBe("*\n");
  writeFileSync(join(folder, ".gitignore"), "*.db\n");
  expect(stateFolder(root)).toBe(folder);
  expect(readFileSync(join(folder, ".gitignore"), "utf8")).toBe("*.db\n");
});

test("where it cannot be made, the error says what works without it", () => {
  // A file in its place keeps everybody out, the superuser as well.
  writeFileSync(join(root, ".kit"), "");
  expect(() => stateFolder(root)).toThrow(
    expect.objectContaining({ code: "unavailable", hint: expect.stringContaining("KIT_STORE=memory") }),
  );
});

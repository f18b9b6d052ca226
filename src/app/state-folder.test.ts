import { mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { stateFolder } from "./state-folder.ts";

let root = "";
beforeEach(() => {
  root = realpathSync(mkdtempSync(join(tmpdir(), "kit-state-")));
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

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

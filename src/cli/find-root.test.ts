import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { testFolder } from "../testing/test-folder.ts";
import { findRoot, toProjectPath } from "./find-root.ts";

const folder = testFolder(afterAll);

function create(...paths: readonly string[]): void {
  for (const path of paths) {
    if (path.endsWith("/")) mkdirSync(join(folder, path), { recursive: true });
    else writeFileSync(join(folder, path), "");
  }
}

create(
  "repo/.git/",
  "repo/packages/api/src/",
  "repo/packages/web/src/",
  "repo/packages/web/kit.toml",
  "bare/src/",
);

test("the root is the nearest folder upward that has a configuration", () => {
  expect(findRoot(join(folder, "repo/packages/web/src"))).toBe(join(folder, "repo/packages/web"));
});

test("without a configuration, the root is that of the work tree, and without Git the folder itself", () => {
  expect(findRoot(join(folder, "repo/packages/api/src"))).toBe(join(folder, "repo"));
  expect(findRoot(join(folder, "bare/src"))).toBe(join(folder, "bare/src"));
});

test("a link to a folder is resolved to the folder", () => {
  symlinkSync(join(folder, "repo/packages"), join(folder, "link"));
  expect(findRoot(join(folder, "link"))).toBe(join(folder, "repo"));
});

test("paths are relative to the current folder in arguments, and to the root in storage", () => {
  const root = join(folder, "repo");
  const cwd = join(root, "packages/api");
  expect(toProjectPath("src/new.ts", { cwd, root })).toBe("packages/api/src/new.ts");
  expect(toProjectPath("../web/**/*.ts", { cwd, root })).toBe("packages/web/**/*.ts");
  expect(toProjectPath(".", { cwd: root, root })).toBe("");
  expect(toProjectPath(join(root, "a.ts"), { cwd: join(folder, "link/api"), root })).toBe("a.ts");
  expect(toProjectPath("..a.ts", { cwd: root, root })).toBe("..a.ts");
  expect(() => toProjectPath("", { cwd, root })).toThrow("A path is empty.");
  expect(() => toProjectPath("../../../x", { cwd, root })).toThrow("lies outside of the project");
});

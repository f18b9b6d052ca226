import { execFileSync } from "node:child_process";
import { existsSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { testFolder } from "../testing/test-folder.ts";
import { makeFolderSync } from "./replace-file.ts";

const root = testFolder(afterAll);

test("makeFolderSync creates missing parents, follows links, and accepts an existing folder", () => {
  symlinkSync(root, join(root, "link"));
  for (const path of ["a/b/c", "a/b/c", "link/d/e", "."]) makeFolderSync(join(root, path));
  expect(statSync(join(root, "d/e")).isDirectory()).toBe(true);
  makeFolderSync("/");
});

test("a path that cannot be a folder fails at once with a system error, and leaves nothing behind", () => {
  writeFileSync(join(root, "file"), "");
  execFileSync("mkfifo", [join(root, "pipe")]);
  symlinkSync("two", join(root, "one"));
  symlinkSync("one", join(root, "two"));
  symlinkSync("nowhere", join(root, "dangling"));
  for (const [path, code] of [
    ["file", "EEXIST"],
    ["file/below/it", "ENOTDIR"],
    ["pipe", "EEXIST"],
    ["pipe/below", "ENOTDIR"],
    ["one", "EEXIST"],
    ["one/below/it", "ELOOP"],
    ["dangling", "EEXIST"],
    ["x".repeat(256), "ENAMETOOLONG"],
    ["y/".repeat(2_100), "ENAMETOOLONG"],
  ] as const)
    expect(() => makeFolderSync(join(root, path)), path).toThrow(code);
  expect(existsSync(join(root, "y"))).toBe(false);
});

test.skipIf(!existsSync("/proc/self"))(
  "makeFolderSync ends on a file system that cannot create folders",
  () => {
    for (const path of ["/proc/x", "/proc/x/y/z", "/proc/self/x"])
      expect(() => makeFolderSync(path)).toThrow(/ENOENT|EACCES|EPERM/);
  },
);

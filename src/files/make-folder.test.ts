import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, realpathSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { makeFolderSync } from "./replace-file.ts";

const root = realpathSync(mkdtempSync(join(tmpdir(), "kit-folder-")));
afterAll(() => rmSync(root, { recursive: true, force: true }));

test("a folder is made with all that is missing above it, through links too, and twice is not a fault", () => {
  symlinkSync(root, join(root, "link"));
  for (const path of ["a/b/c", "a/b/c", "link/d/e", "."]) makeFolderSync(join(root, path));
  expect(statSync(join(root, "d/e")).isDirectory()).toBe(true);
  makeFolderSync("/");
});

test("a path that cannot be a folder is a system error at once, and nothing is left behind", () => {
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

test.skipIf(!existsSync("/proc/self"))("a file system that takes no folders ends the attempt", () => {
  for (const path of ["/proc/x", "/proc/x/y/z", "/proc/self/x"])
    expect(() => makeFolderSync(path)).toThrow(/ENOENT|EACCES|EPERM/);
});

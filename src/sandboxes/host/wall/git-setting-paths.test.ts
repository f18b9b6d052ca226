import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { testFolder } from "../../../testing/test-folder.ts";
import { readSettings, settingPaths } from "./git-setting-paths.ts";
import { openWalled, wallTest } from "./walled.suite.ts";

const folder = testFolder(afterAll);
let count = 0;

function createRepository(files: readonly string[], settings: Readonly<Record<string, string>>): string {
  count += 1;
  const root = join(folder, `repository-${count}`);
  execFileSync("git", ["init", "--quiet", root]);
  for (const file of files) write(root, file, "old");
  for (const [key, value] of Object.entries(settings))
    execFileSync("git", ["-C", root, "config", key, value]);
  return root;
}

function write(root: string, path: string, text: string): void {
  mkdirSync(dirname(join(root, path)), { recursive: true });
  writeFileSync(join(root, path), text);
}

const pathsOf = async (root: string): Promise<readonly string[]> => {
  await readSettings(root);
  return [...settingPaths(root)].sort();
};

test("the paths of settings are found however Git reads them", async () => {
  const root = createRepository(["monitor", "my tools/filter", "bin/top"], {
    "core.hooksPath": "githooks",
    "init.templateDir": "template",
    "interactive.diffFilter": "tools/filter --x",
    "uploadpack.packObjectsHook": "sh ./pack",
    "core.gitProxy": "./proxy for example.com",
    "core.fsmonitor": "sh monitor",
    "diff.x.textconv": "'my tools/filter' -a",
    "alias.x": "!$(git rev-parse --show-toplevel)/bin/top",
    "alias.y": "log --graph a/b",
    "user.name": "tools/user",
    "include.path": "../one.gitconfig",
  });
  write(root, "one.gitconfig", "[include]\n path = nested/two.gitconfig\n");
  write(root, "nested/two.gitconfig", "[pager]\n log = ./pager\n[include]\n path = three.gitconfig\n");
  const paths = await pathsOf(root);
  for (const path of [
    ...["githooks", "template", "tools/filter", "pack", "proxy", "monitor", "my tools/filter", "bin/top"],
    ...["one.gitconfig", "nested/two.gitconfig", "nested/three.gitconfig", "pager"],
  ])
    expect(paths).toContain(path);
  for (const path of ["a/b", "log", "tools/user", "sh"]) expect(paths).not.toContain(path);
});

test("changed settings are read again, also those of files that were missing, and others are not", async () => {
  const root = createRepository([], { "include.path": "../one.gitconfig" });
  expect(await pathsOf(root)).toContain("one.gitconfig");
  write(root, "one.gitconfig", "[core]\n hooksPath = one\n");
  expect(await pathsOf(root)).toContain("one");
  write(root, "one.gitconfig", "[core]\n hooksPath = two\n");
  expect(await pathsOf(root)).toContain("two");
  execFileSync("git", ["-C", root, "config", "core.hooksPath", "three"]);
  expect(await pathsOf(root)).toContain("three");
  await new Promise((next) => setTimeout(next, 100));
  await readSettings(root);
  const before = settingPaths(root);
  await readSettings(root);
  expect(settingPaths(root)).toBe(before);
  rmSync(join(root, ".git"), { recursive: true });
  expect(await pathsOf(root)).not.toContain("three");
});

test("settings behind a link are read again", async () => {
  const root = createRepository([], { "include.path": join(folder, "linked.gitconfig") });
  const target = join(folder, "target.gitconfig");
  symlinkSync(target, join(folder, "linked.gitconfig"));
  writeFileSync(target, "[core]\n hooksPath = one\n");
  expect(await pathsOf(root)).toContain("one");
  writeFileSync(target, "[core]\n hooksPath = two\n");
  expect(await pathsOf(root)).toContain("two");
});

wallTest(
  "a command does not change hooks in a folder with a plain name, also from a linked worktree",
  async () => {
    const root = createRepository(["githooks/pre-commit"], { "core.hooksPath": "githooks" });
    const git = (...args: readonly string[]): string =>
      execFileSync("git", ["-C", root, "-c", "user.name=a", "-c", "user.email=a@b.c", ...args], {
        encoding: "utf8",
      });
    git("add", ".");
    git("commit", "--quiet", "--no-verify", "--message=first");
    const linked = `${root}-linked`;
    git("worktree", "add", "--quiet", linked, "-b", "topic");
    for (const each of [root, linked]) {
      const { run } = await openWalled(folder, { root: each });
      await run("echo new > githooks/pre-commit; echo new > githooks/post-checkout; mv githooks old", {
        access: { write: true },
      });
      expect(readFileSync(join(each, "githooks/pre-commit"), "utf8")).toBe("old");
      expect(execFileSync("ls", [join(each, "githooks")], { encoding: "utf8" })).toBe("pre-commit\n");
    }
  },
);

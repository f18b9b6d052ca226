import { mkdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { createTemporaryRepository } from "../testing/temporary-repository.ts";
import { headCommitOf } from "./git-repository.ts";

test("the commit is read from the files of Git: a branch, a packed one, no branch, and a linked work tree", async () => {
  await using repository = await createTemporaryRepository({ "a/b.txt": "one\n", ".gitignore": "tree\n" });
  const { root, git } = repository;
  expect(headCommitOf(root)).toBeUndefined();
  await repository.init();
  expect(headCommitOf(root)).toBeUndefined();
  const first = await repository.commit("Begin", 1_700_000_000);
  expect([headCommitOf(root), headCommitOf(join(root, "a"))]).toEqual([first, first]);
  await git("pack-refs", "--all");
  expect(headCommitOf(root)).toBe(first);
  await git("worktree", "add", "--quiet", "-b", "other", "tree");
  await git("-C", "tree", "commit", "--quiet", "--allow-empty", "--message", "Next");
  expect(headCommitOf(join(root, "tree"))).toBe(await git("rev-parse", "other"));
  await git("-C", "tree", "checkout", "--quiet", "--detach", "main");
  expect([headCommitOf(join(root, "tree")), headCommitOf(root)]).toEqual([first, first]);
});

test("a .git that leads to a foreign repository, or names a file outside of it, tells no commit", async () => {
  await using repository = await createTemporaryRepository({ "secret/one": `${"a".repeat(40)}\n` });
  await repository.init();
  await repository.commit("Begin", 1_700_000_000);
  await using guest = await createTemporaryRepository({ ".git": `gitdir: ${repository.root}/.git\n` });
  expect(headCommitOf(guest.root)).toBeUndefined();
  await writeFile(join(guest.root, ".git"), `no pointer\ngitdir: ${repository.root}/.git\n`);
  expect(headCommitOf(guest.root)).toBeUndefined();
  await rm(join(guest.root, ".git"));
  await guest.init();
  await mkdir(join(guest.root, ".git/refs/x"));
  await writeFile(join(guest.root, ".git/HEAD"), `ref: refs/../../../${repository.root}/secret/one\n`);
  expect(headCommitOf(guest.root)).toBeUndefined();
  await symlink(join(repository.root, "secret/one"), join(guest.root, ".git/refs/x/link"));
  await writeFile(join(guest.root, ".git/HEAD"), "ref: refs/x/link\n");
  expect(headCommitOf(guest.root)).toBeUndefined();
  expect(await readFile(join(repository.root, "secret/one"), "utf8")).toHaveLength(41);
});

test("a list of packed branches with millions of lines, which a model can write, stops no server for seconds", async () => {
  await using repository = await createTemporaryRepository({});
  await repository.init();
  const git = join(repository.root, ".git");
  const commit = "b".repeat(40);
  await writeFile(join(git, "HEAD"), "ref: refs/heads/x\n");
  await writeFile(join(git, "packed-refs"), `${"\n".repeat(60 * 1024 * 1024)}${commit} refs/heads/x`);
  const before = performance.now();
  expect(headCommitOf(repository.root)).toBe(commit);
  expect(performance.now() - before).toBeLessThan(1_000);
});

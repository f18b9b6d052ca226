import { existsSync } from "node:fs";
import { chmod, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { createSpecRegistry } from "../../specs/registry.ts";
import { createTemporaryRepository, type TemporaryRepository } from "../../testing/temporary-repository.ts";
import { closeTask } from "./close-task.ts";
import { mergeWork } from "./merge-work.ts";
import { TaskBranch, toRefName } from "./task-branch.ts";
import { TaskWorkTree } from "./work-tree.ts";

const tasksPath = ".kiro/specs/cart/tasks.md";
const tasks = "# Tasks\n\n- [ ] 1. Totals\n  - [ ] 1.1 Add up\n  - [ ]* 1.2 Measure\n- [ ] 2. Print\n";
const files = {
  ".gitignore": ".kit\n",
  [tasksPath]: tasks,
  "src/a.mjs": "one\ntwo\nthree\nfour\nfive\n",
  "src/b.mjs": "b\n",
};
const identity = { name: "Ann", email: "ann@example.org" };
const task = { number: "1.1", title: "Add up", path: tasksPath, criteria: [] };

async function repositoryOf(): Promise<TemporaryRepository> {
  const repository = await createTemporaryRepository(files);
  await repository.init();
  await repository.commit("Begin", 1_700_000_000);
  return repository;
}

const close = (branch: TaskBranch, base: string, tree: string): Promise<string | undefined> =>
  closeTask(
    branch,
    {
      ...{
        task,
        feature: "cart",
        base,
        tree,
        identity,
        at: 1_700_000_100_000,
        runId: "run_1",
        isApproved: false,
      },
    },
    createSpecRegistry(),
  );

/** The states in which a killed `git worktree add` leaves its record: a file that is empty or not there. */
const halfMade = ["gitdir", "commondir", "HEAD"].flatMap((file) => [
  { file, end: "empty", spoil: (path: string) => writeFile(path, "") },
  { file, end: "missing", spoil: (path: string) => rm(path) },
]);

test.each(halfMade)(
  "a work tree is made anew after Git was killed with $file $end",
  async ({ file, spoil }) => {
    await using repository = await repositoryOf();
    const branch = await TaskBranch.open(repository.root, "cart");
    const base = await branch.begin();
    const workOf = (name: string) => new TaskWorkTree(branch, join(repository.root, ".kit/work", name));
    await workOf("cart.1").create(base);
    const record = join(repository.root, ".git/worktrees/cart.1");
    await spoil(join(record, file));
    await writeFile(join(record, "locked"), "initializing\n");
    // A task beside it is not held up, and the task itself begins again.
    for (const name of ["cart.2", "cart.1"]) {
      await workOf(name).create(base);
      expect(await readFile(join(workOf(name).root, "src/b.mjs"), "utf8")).toBe("b\n");
    }
    await Promise.all(["cart.1", "cart.2"].map((name) => workOf(name).remove()));
    expect(await repository.git("worktree", "list")).toMatch(/^[^\n]+\n?$/);
  },
);

test("work trees are linked at once, and a half-made one of the user is left alone and named", async () => {
  await using repository = await repositoryOf();
  const branch = await TaskBranch.open(repository.root, "cart");
  const base = await branch.begin();
  const workOf = (name: string) => new TaskWorkTree(branch, join(repository.root, ".kit/work", name));
  await Promise.all(Array.from({ length: 8 }, (_, index) => workOf(`cart.${index}`).create(base)));
  const own = join(repository.root, ".kit/own");
  await repository.git("worktree", "add", "--detach", own);
  await writeFile(join(repository.root, ".git/worktrees/own/commondir"), "");
  await expect(workOf("cart.9").create(base)).rejects.toThrow(/failed to read .*worktrees\/own\/commondir/);
  expect(existsSync(join(own, ".git"))).toBe(true);
});

test("a task is worked on in a linked work tree, and its commit has exactly that tree with the ticks", async () => {
  await using repository = await repositoryOf();
  await writeFile(join(repository.root, "src/b.mjs"), "what the user types\n");
  const branch = await TaskBranch.open(repository.root, "cart");
  const base = await branch.begin();
  const work = new TaskWorkTree(branch, join(repository.root, ".kit/work/cart.1"));
  await work.create(base);
  expect(await readFile(join(work.root, "src/b.mjs"), "utf8")).toBe("b\n");
  await writeFile(join(work.root, "src/a.mjs"), "changed\n");
  await writeFile(join(work.root, "new file.mjs"), "new\n");
  await rm(join(work.root, "src/b.mjs"));
  await writeFile(join(work.root, tasksPath), tasks.replaceAll("[ ]", "[x]"));
  expect(await work.restore(base, (path) => path.endsWith(".md"))).toEqual([tasksPath]);
  expect(await readFile(join(work.root, tasksPath), "utf8")).toBe(tasks);
  const tree = await work.snapshot();
  expect(await work.changed(base, tree)).toEqual(["new file.mjs", "src/a.mjs", "src/b.mjs"]);
  const commit = (await close(branch, base, tree)) ?? "";
  expect(await close(branch, base, tree)).toBe(commit);
  expect(await repository.git("rev-parse", "kit/cart")).toBe(commit);
  expect(await repository.git("log", "--format=%an %ae%n%B", "-1", commit)).toBe(
    "Ann ann@example.org\nAdd up\n\nKit-Task: cart/1.1\nKit-Run: run_1\n",
  );
  // The optional subtask does not keep the task above open.
  expect(await repository.git("show", `${commit}:${tasksPath}`)).toBe(
    tasks.replace("- [ ] 1. ", "- [x] 1. ").replace("- [ ] 1.1", "- [x] 1.1").trimEnd(),
  );
  expect(await repository.git("diff", "--name-status", base, commit)).toBe(
    `M\t${tasksPath}\nA\tnew file.mjs\nM\tsrc/a.mjs\nD\tsrc/b.mjs`,
  );
  // The user's checkout, index and branch are as before.
  expect(await repository.git("status", "--porcelain")).toBe(" M src/b.mjs");
  expect(await repository.git("rev-parse", "main")).toBe(base);
  await work.remove();
  expect(await repository.git("worktree", "list")).not.toContain("cart.1");
});

test("work on other lines is merged, and work on the same lines is a conflict that keeps the rest", async () => {
  await using repository = await repositoryOf();
  const branch = await TaskBranch.open(repository.root, "cart");
  const base = await branch.begin();
  const work = new TaskWorkTree(branch, join(repository.root, ".kit/work/cart.1"));
  const change = async (text: string, b: string): Promise<string> => {
    await work.create(base);
    await writeFile(join(work.root, "src/a.mjs"), text);
    await writeFile(join(work.root, "src/b.mjs"), b);
    return await work.snapshot();
  };
  const first = await change("ONE\ntwo\nthree\nfour\nfive\n", "b\n");
  const second = await change("one\ntwo\nthree\nfour\nFIVE\n", "B\n");
  const third = await change("EINS\ntwo\nthree\nfour\nfive\n", "B\n");
  const head = (await close(branch, base, first)) ?? "";
  expect(await close(branch, base, second)).toBeUndefined();
  const merged = await mergeWork(branch, { base, tree: second, head });
  expect(merged.conflicts).toEqual([]);
  await work.reset(head, merged.tree);
  expect(await readFile(join(work.root, "src/a.mjs"), "utf8")).toBe("ONE\ntwo\nthree\nfour\nFIVE\n");
  expect(await readFile(join(work.root, tasksPath), "utf8")).toContain("[x] 1.1");
  expect(await work.snapshot()).toBe(merged.tree);
  const clash = await mergeWork(branch, { base, tree: third, head });
  expect(clash.conflicts).toEqual(["src/a.mjs"]);
  await work.reset(head, clash.tree);
  expect(await readFile(join(work.root, "src/a.mjs"), "utf8")).toBe("ONE\ntwo\nthree\nfour\nfive\n");
  expect(await readFile(join(work.root, "src/b.mjs"), "utf8")).toBe("B\n");
});

test("no hook, filter or merge driver of the repository runs while kit makes, merges and commits", async () => {
  await using repository = await repositoryOf();
  const { root, git } = repository;
  const mark = join(root, "ran.log");
  const program = `sh -c 'echo ran >> ${mark}; cat'`;
  await repository.write(".gitattributes", "*.mjs filter=evil merge=evil diff=evil\n");
  await repository.commit("Attributes", 1_700_000_010);
  for (const [key, value] of [
    ["filter.evil.clean", program],
    ["filter.evil.smudge", program],
    ["filter.evil.process", program],
    ["merge.evil.driver", program],
    ["diff.evil.textconv", program],
    ["diff.external", program],
    ["core.fsmonitor", program],
  ] as const)
    await git("config", key, value);
  for (const hook of [
    "post-checkout",
    "reference-transaction",
    "post-commit",
    "pre-commit",
    "post-index-change",
  ]) {
    await repository.write(`.git/hooks/${hook}`, `#!/bin/sh\necho ${hook} >> ${mark}\n`);
    await chmod(join(root, ".git/hooks", hook), 0o755);
  }
  const branch = await TaskBranch.open(root, "cart");
  const base = await branch.begin();
  const work = new TaskWorkTree(branch, join(root, ".kit/work/cart.1"));
  await work.create(base);
  await writeFile(join(work.root, "src/a.mjs"), "one\ntwo\nthree\nfour\nFIVE\n");
  const second = await work.snapshot();
  await writeFile(join(work.root, "src/a.mjs"), "ONE\ntwo\nthree\nfour\nfive\n");
  await work.restore(base, (path) => path.endsWith(".md"));
  const head = (await close(branch, base, await work.snapshot())) ?? "";
  const merged = await mergeWork(branch, { base, tree: second, head });
  await work.reset(head, merged.tree);
  expect(await readFile(join(work.root, "src/a.mjs"), "utf8")).toBe("ONE\ntwo\nthree\nfour\nFIVE\n");
  expect(await branch.diff(base, merged.tree, 10_000)).toContain("+FIVE");
  await work.remove();
  expect(existsSync(mark) ? await readFile(mark, "utf8") : "").toBe("");
});

test("the branch follows HEAD until both have commits of their own", async () => {
  await using repository = await repositoryOf();
  const branch = await TaskBranch.open(repository.root, "cart");
  const first = await branch.begin();
  const second = await repository.commit("Second", 1_700_000_010);
  expect(await branch.peek()).toBe(second);
  expect(await branch.tip()).toBe(first);
  expect(await branch.begin()).toBe(second);
  const tree = await repository.git("rev-parse", "HEAD^{tree}");
  const own = await branch.commit({ tree, parent: second, message: "Own", identity, at: 1_700_000_020_000 });
  expect(await branch.begin()).toBe(own);
  await repository.commit("Third", 1_700_000_030);
  await expect(branch.begin()).rejects.toMatchObject({
    code: "conflict",
    message: "The branch kit/cart and your HEAD have both got commits of their own.",
  });
});

test("a folder without Git, and a repository without a commit, are said in a sentence", async () => {
  await using repository = await createTemporaryRepository(files);
  await expect(TaskBranch.open(repository.root, "cart")).rejects.toMatchObject({ code: "unavailable" });
  await repository.init();
  const branch = await TaskBranch.open(repository.root, "cart");
  await expect(branch.begin()).rejects.toThrow("has no commit that a task can begin with");
});

test("labels of features become names that Git allows for branches", () => {
  expect(["checkout", "team/check out", "..", "a..b~^:?*[\\", "@{", "-x", "日本"].map(toRefName)).toEqual([
    ...["checkout", "team/check-out", "feature", "a-b", "feature", "x", "日本"],
  ]);
});

import { join } from "node:path";
import { expect, test } from "vitest";
import {
  createTemporaryRepository,
  type TemporaryRepository,
} from "../../../testing/temporary-repository.ts";
import type { FileDates, FileDatesUpdate } from "../../store/date-rows.ts";
import { readFileDates } from "./file-dates.ts";
import { readGitState } from "./git-state.ts";

type Cache = { historyKey: string; readonly rows: Map<string, FileDates> };

async function read(root: string, cache?: Cache): Promise<FileDatesUpdate | undefined> {
  const state = await readGitState(root);
  const previous = cache && { historyKey: cache.historyKey, lookup: (path: string) => cache.rows.get(path) };
  return await readFileDates(previous === undefined ? { root, state } : { root, state, previous });
}

function toCache(update: FileDatesUpdate | undefined, before?: Cache): Cache {
  if (update === undefined) throw new Error("Git gave no dates.");
  const rows = new Map(update.isComplete ? [] : before?.rows);
  for (const path of update.removed) rows.delete(path);
  for (const [path, dates] of update.dates) rows.set(path, dates);
  return { historyKey: update.historyKey, rows };
}

const times = (update: FileDatesUpdate | undefined, path: string): readonly (number | undefined)[] => {
  const dates = update?.dates.get(path);
  return [dates?.first, dates?.last];
};

async function repositoryWith(files: Record<string, string>): Promise<TemporaryRepository> {
  const repository = await createTemporaryRepository(files);
  await repository.init();
  return repository;
}

test("a file has the dates of its first and last commit, the commit of the last and the author of the first", async () => {
  await using repository = await repositoryWith({ "a.md": "1", "b.md": "1" });
  await repository.commit("one", 1000);
  await repository.write("a.md", "2");
  await repository.git("config", "user.name", "Bob");
  const second = await repository.commit("two", 2000);
  const update = await read(repository.root);
  expect(update?.isComplete).toBe(true);
  expect(update?.dates.get("a.md")).toEqual({ first: 1000, last: 2000, commit: second, author: "Ann" });
  expect(times(update, "b.md")).toEqual([1000, 1000]);
});

const authorOf = (update: FileDatesUpdate | undefined, path: string): string | undefined =>
  update?.dates.get(path)?.author;

test("a renamed file keeps its first author, also on from the cache, and commits of one second keep their order", async () => {
  await using repository = await repositoryWith({ "a.md": "line\n".repeat(30) });
  await repository.commit("one", 1000);
  await repository.git("config", "user.name", "Bob");
  await repository.write("a.md", "line\n".repeat(31));
  await repository.commit("two", 1000);
  const cache = toCache(await read(repository.root));
  expect(cache.rows.get("a.md")?.author).toBe("Ann");
  await repository.git("mv", "a.md", "b.md");
  await repository.commit("three", 3000);
  await repository.write("a.md", "another");
  await repository.commit("four", 4000);
  const continued = await read(repository.root, cache);
  expect(continued?.isComplete).toBe(false);
  for (const update of [continued, await read(repository.root)])
    expect([authorOf(update, "b.md"), authorOf(update, "a.md")]).toEqual(["Ann", "Bob"]);
});

test("people have the names that .mailmap gives them, also once it changes, and in a folder of the work tree", async () => {
  await using repository = await repositoryWith({ "docs/a.md": "1", ".mailmap": "Anna <ann@example.org>\n" });
  await repository.commit("one", 1000);
  const root = join(repository.root, "docs");
  const update = await read(root);
  expect(authorOf(update, "a.md")).toBe("Anna");
  await repository.write(".mailmap", "Dr. Anna <ann@example.org>\n");
  await repository.commit("two", 2000);
  const renamed = await read(root, toCache(update));
  expect([renamed?.isComplete, authorOf(renamed, "a.md")]).toEqual([true, "Dr. Anna"]);
});

test.each([
  ["controls", "a name\twith\u001b[31m controls", "a name with [31m controls"],
  ["a long one", "x".repeat(5000), `${"x".repeat(99)}…`],
  ["an address", "Ann (ann@example.org)", "Ann"],
  ["nothing but an address", "ann@example.org", undefined],
  ["marks of direction", "\u202eAnn\u2066 \u{e0041}Lee", "Ann Lee"],
  ["brackets", "O'Neil > 0 \u540d\u524d", "O'Neil 0 \u540d\u524d"],
])("of a name with %s a clean one remains", async (_what, name, author) => {
  await using repository = await repositoryWith({ "a.md": "1", "b.md": "1" });
  await repository.git("config", "user.name", name);
  await repository.commit("one", 1000);
  const update = await read(repository.root);
  expect([times(update, "b.md"), authorOf(update, "a.md")]).toEqual([[1000, 1000], author]);
});

test("a commit whose author has no name leaves the file without an author", async () => {
  await using repository = await repositoryWith({ "a.md": "1" });
  await repository.git("add", "a.md");
  const tree = await repository.git("write-tree");
  const raw = `tree ${tree}\nauthor <ann@example.org> 1000 +0000\ncommitter Bob <bob@example.org> 1000 +0000\n\none\n`;
  await repository.write(".git/raw-commit", raw);
  const commit = await repository.git("hash-object", "-t", "commit", "-w", "--literally", ".git/raw-commit");
  await repository.git("update-ref", "HEAD", commit);
  expect((await read(repository.root))?.dates.get("a.md")).toEqual({ first: 1000, last: 1000, commit });
});

test("a renamed file keeps its first date, and so do two files that swap their names", async () => {
  const long = (name: string): string => `${name}\n`.repeat(30);
  await using repository = await repositoryWith({ "a.md": long("a"), "b.md": long("b"), "x.md": long("x") });
  await repository.commit("one", 1000);
  await repository.write("b.md", `${long("b")}more`);
  await repository.commit("two", 2000);
  await repository.git("mv", "a.md", "c.md");
  await repository.git("mv", "b.md", "a.md");
  await repository.git("mv", "c.md", "b.md");
  await repository.git("mv", "x.md", "docs-y.md");
  await repository.commit("swap", 3000);
  await repository.write("x.md", "a new file under the old name");
  await repository.commit("four", 4000);
  const update = await read(repository.root);
  expect(times(update, "a.md")).toEqual([1000, 3000]);
  expect(times(update, "docs-y.md")).toEqual([1000, 3000]);
  expect(times(update, "x.md")).toEqual([4000, 4000]);
});

test("a folder of the work tree has its own paths, with names of any kind", async () => {
  const name = 'packages/api/ünï "quoted"\n-rf.md';
  await using repository = await repositoryWith({ [name]: "1", "other.md": "1" });
  await repository.commit("one", 1000);
  const update = await read(join(repository.root, "packages/api"));
  expect([...(update?.dates.keys() ?? [])]).toEqual(['ünï "quoted"\n-rf.md']);
});

test("a change made in a merge itself and changes on both sides of it are seen", async () => {
  await using repository = await repositoryWith({ "a.md": "1", "b.md": "1", "kept.md": "1" });
  await repository.commit("one", 1000);
  await repository.git("switch", "--quiet", "--create", "side");
  await repository.write("b.md", "2");
  await repository.git("rm", "--quiet", "kept.md");
  await repository.commit("side", 2000);
  await repository.git("switch", "--quiet", "main");
  await repository.write("a.md", "2");
  await repository.commit("main", 3000);
  await repository.git("merge", "--quiet", "--no-commit", "side");
  await repository.write("made-in-merge.md", "1");
  await repository.write("kept.md", "1");
  await repository.commit("merge", 4000);
  const update = await read(repository.root);
  expect(times(update, "a.md")).toEqual([1000, 3000]);
  expect(times(update, "b.md")).toEqual([1000, 2000]);
  expect(times(update, "made-in-merge.md")).toEqual([4000, 4000]);
  expect(times(update, "kept.md")[0]).toBe(1000);
});

test("dates are continued from the cached head and equal those of a full pass", async () => {
  const long = "line\n".repeat(30);
  await using repository = await repositoryWith({ "a.md": long, "b.md": "1", "c.md": "1" });
  const steps: (() => Promise<unknown>)[] = [
    () => repository.write("b.md", "2"),
    () => repository.git("mv", "a.md", "renamed.md"),
    () => repository.git("rm", "--quiet", "c.md"),
    () => repository.write("a.md", "another file of the same name"),
    () => repository.write("c.md", "back again"),
    () => repository.git("mv", "renamed.md", "twice.md"),
    async () => {
      await repository.git("rm", "--quiet", "b.md");
      await repository.git("mv", "twice.md", "b.md");
    },
    () => repository.write("b.md", `${long}end`),
  ];
  await repository.commit("one", 1000);
  let cache = toCache(await read(repository.root));
  for (const [index, step] of steps.entries()) {
    await step();
    await repository.commit(`step ${index}`, 2000 + index * 100);
    const update = await read(repository.root, cache);
    expect(update?.isComplete).toBe(false);
    cache = toCache(update, cache);
    const complete = toCache(await read(repository.root));
    const existing = (await repository.git("ls-files")).split("\n");
    for (const path of existing)
      expect([path, cache.rows.get(path)]).toEqual([path, complete.rows.get(path)]);
  }
  expect(cache.rows.get("b.md")).toMatchObject({ first: 1000, last: 2700 });
  expect((await read(repository.root, cache))?.dates.size).toBe(0);
});

test("rewritten history causes a full pass", async () => {
  await using repository = await repositoryWith({ "a.md": "1" });
  await repository.commit("one", 1000);
  await repository.write("a.md", "2");
  await repository.commit("two", 2000);
  const cache = toCache(await read(repository.root));
  await repository.git("reset", "--quiet", "--hard", "HEAD~1");
  await repository.write("b.md", "1");
  await repository.commit("other two", 3000);
  const update = await read(repository.root, cache);
  expect(update?.isComplete).toBe(true);
  expect(times(update, "a.md")).toEqual([1000, 1000]);
});

test("a shallow clone leaves out dates that it cannot know, and finds them once it is deepened", async () => {
  await using repository = await repositoryWith({ "a.md": "1", "b.md": "1" });
  await repository.commit("one", 1000);
  await repository.write("a.md", "2");
  await repository.commit("two", 2000);
  await repository.write("a.md", "3");
  await repository.commit("three", 3000);
  await using clone = await createTemporaryRepository();
  await clone.git("clone", "--quiet", "--depth=2", `file://${repository.root}`, "copy");
  const root = join(clone.root, "copy");
  const update = await read(root);
  expect(times(update, "a.md")).toEqual([undefined, 3000]);
  expect(authorOf(update, "a.md")).toBeUndefined();
  expect(update?.dates.has("b.md")).toBe(false);
  await clone.git("-C", root, "fetch", "--quiet", "--unshallow");
  const deepened = await read(root, toCache(update));
  expect(deepened?.isComplete).toBe(true);
  expect(times(deepened, "a.md")).toEqual([1000, 3000]);
  expect(authorOf(deepened, "a.md")).toBe("Ann");
});

test("a project without a repository or a commit has no dates", async () => {
  await using repository = await createTemporaryRepository({ "a.md": "1" });
  expect(await readGitState(repository.root)).toEqual({ kind: "none", reason: "Not a Git repository." });
  expect(await read(repository.root)).toBeUndefined();
  await repository.init();
  expect(await readGitState(repository.root)).toMatchObject({ kind: "repository", historyKey: "" });
  expect(await read(repository.root)).toBeUndefined();
});

test("an abort ends Git and rejects with the reason of the signal", async () => {
  await using repository = await repositoryWith({ "a.md": "1" });
  const reason = new Error("enough");
  await expect(readGitState(repository.root, AbortSignal.abort(reason))).rejects.toBe(reason);
  const controller = new AbortController();
  const pending = readGitState(repository.root, controller.signal);
  controller.abort(reason);
  await expect(pending).rejects.toBe(reason);
});

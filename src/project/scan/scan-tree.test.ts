import { execFileSync } from "node:child_process";
import { chmodSync, renameSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { expect, test } from "vitest";
import { readSmallFile } from "../../files/git-folder.ts";
import { createIgnoreScope, loadOuterRules } from "../../files/ignore-scope.ts";
import { createTemporaryRepository } from "../../testing/temporary-repository.ts";
import { createIgnoreExceptions } from "./ignore-exceptions.ts";
import { type ScanTreeOptions, scanTree, type TreeChange } from "./scan-tree.ts";
import { createSourceCatalog } from "./source-catalog.ts";
import { type Folder, filesOf, setStamp, type Tree } from "./tree.ts";

const isSource = (path: string): boolean => path.endsWith(".md");

interface ScanOptions extends Partial<ScanTreeOptions> {
  readonly tracked?: readonly string[];
}

function scan(root: string, { tracked = [], ...options }: ScanOptions = {}): TreeChange {
  const readText = (path: string): string => readSmallFile(join(root, path)) ?? "";
  const scope = createIgnoreScope({ outer: loadOuterRules(root), readText });
  const exceptions = createIgnoreExceptions({ ...createSourceCatalog(), isSource }, tracked);
  const steps = scanTree({ root, previous: new Map(), scope, exceptions, isSource, ...options });
  for (;;) {
    const step = steps.next();
    if (step.done) return step.value;
  }
}

/** The tree after a pass, whose candidates get their stamps as if they had been read. */
async function treeOf(root: string, previous: Tree = new Map()): Promise<Tree> {
  // The next scan would look again at files that changed in the present tick of the clock.
  await setTimeout(30);
  const change = scan(root, { previous });
  for (const { path, folder, stampAt, problem } of change.candidates) {
    const stats = problem ? undefined : statSync(join(root, path), { throwIfNoEntry: false });
    if (stats !== undefined) setStamp(folder, stampAt, { stats, nowMs: Date.now() });
  }
  const tree = new Map<string, Folder>(previous);
  for (const path of change.removedFolders) tree.delete(path);
  for (const folder of change.folders) tree.set(folder.path, folder);
  return tree;
}

const candidatesOf = (change: TreeChange): string[] => change.candidates.map(({ path }) => path).sort();
const problemsOf = (change: TreeChange) =>
  change.candidates.flatMap(({ path, problem }) => (problem ? [[path, problem.code]] : []));

test("the first pass lists every file and takes those of adapters as sources", async () => {
  await using repository = await createTemporaryRepository({
    "a.md": "",
    "src/b.ts": "",
    ".kiro/specs/x/design.md": "",
    "node_modules/p/readme.md": "",
    ".kit/notes.md": "",
  });
  await repository.init();
  const change = scan(repository.root);
  expect(candidatesOf(change)).toEqual([".kiro/specs/x/design.md", "a.md"]);
  expect(filesOf(await treeOf(repository.root))).toEqual([".kiro/specs/x/design.md", "a.md", "src/b.ts"]);
});

test("the files that are not ignored are those that Git would add", async () => {
  await using repository = await createTemporaryRepository({
    ".gitignore":
      "*.log\n/build/\n!keep.log\ndocs/*\n!docs/kept/\n\\#hash\ntrailing \nsp\\ ace\n**/deep/**/x.md\n",
    "a.md": "",
    "b.log": "",
    "keep.log": "",
    "build/x.md": "",
    "src/build/x.md": "",
    "docs/a.md": "",
    "docs/kept/b.md": "",
    "#hash": "",
    trailing: "",
    "sp ace": "",
    "p/deep/q/r/x.md": "",
    "p/deep/x.md": "",
    "pkg/.gitignore": "*.md\n!important.md\n/only-here\n",
    "pkg/a.md": "",
    "pkg/important.md": "",
    "pkg/only-here": "",
    "pkg/sub/only-here": "",
    "pkg/sub/.gitignore": "!*.md\n",
    "pkg/sub/a.md": "",
    "pkg/sub/b.log": "",
    "crlf/.gitignore": "*.tmp\r\n",
    "crlf/a.tmp": "",
    "excluded.txt": "",
  });
  await repository.init();
  await repository.write(".git/info/exclude", "excluded.txt\n");
  const listed = await repository.git("ls-files", "-z", "--others", "--exclude-standard");
  expect(filesOf(await treeOf(repository.root))).toEqual(listed.split("\0").filter(Boolean).sort());
});

test("ignore files above a project that is part of a repository count", async () => {
  await using repository = await createTemporaryRepository({
    ".gitignore": "packages/api/secret.md\n*.log\n",
    "packages/.gitignore": "drafts/\n",
    "packages/api/secret.md": "",
    "packages/api/a.log": "",
    "packages/api/drafts/a.md": "",
    "packages/api/a.md": "",
  });
  await repository.init();
  expect(candidatesOf(scan(join(repository.root, "packages/api")))).toEqual(["a.md"]);
});

test("a folder that its repository ignores is seen when it is the project itself", async () => {
  await using repository = await createTemporaryRepository({
    ".gitignore": "/out/\n*.log\n",
    "out/.gitignore": "*.tmp.md\n",
    "out/project/a.md": "",
    "out/project/b.tmp.md": "",
  });
  await repository.init();
  expect(candidatesOf(scan(join(repository.root, "out/project")))).toEqual(["a.md", "b.tmp.md"]);
  expect(candidatesOf(scan(join(repository.root, "out")))).toEqual(["project/a.md"]);
});

test("a second pass over an unchanged tree lists nothing and finds nothing", async () => {
  await using repository = await createTemporaryRepository({ "a/b.md": "1", "a/c/d.md": "2", "e.txt": "" });
  const tree = await treeOf(repository.root);
  const second = scan(repository.root, { previous: tree });
  expect(second).toEqual({ folders: [], removedFolders: [], candidates: [], removed: [] });
});

test("changed, new, renamed and deleted sources and folders are found", async () => {
  await using repository = await createTemporaryRepository({
    "same.md": "1",
    "changed.md": "1",
    "renamed.md": "1",
    "gone/a.md": "1",
    "gone/deep/b.md": "1",
    "folder/c.md": "1",
  });
  const { root } = repository;
  const tree = await treeOf(root);
  writeFileSync(join(root, "changed.md"), "22");
  renameSync(join(root, "renamed.md"), join(root, "new-name.md"));
  rmSync(join(root, "gone"), { recursive: true });
  renameSync(join(root, "folder"), join(root, "moved"));
  await repository.write("new/deep/d.md", "1");
  const change = scan(root, { previous: tree });
  expect(candidatesOf(change)).toEqual(["changed.md", "moved/c.md", "new-name.md", "new/deep/d.md"]);
  expect(change.removed.filter((path) => !path.endsWith("/")).sort()).toEqual([
    "folder/c.md",
    "gone/a.md",
    "gone/deep/b.md",
    "renamed.md",
  ]);
  expect([...change.removedFolders].sort()).toEqual(["folder", "gone", "gone/deep"]);
});

test("only the requested folders are scanned, and new folders below them", async () => {
  await using repository = await createTemporaryRepository({ "a/x.md": "1", "b/y.md": "1" });
  const { root } = repository;
  const tree = await treeOf(root);
  writeFileSync(join(root, "a/x.md"), "22");
  writeFileSync(join(root, "b/y.md"), "22");
  await repository.write("a/new/deep/z.md", "1");
  expect(candidatesOf(scan(root, { previous: tree, folders: ["a"] }))).toEqual(["a/new/deep/z.md", "a/x.md"]);
});

test("an edit of an ignore file removes files and restores them", async () => {
  await using repository = await createTemporaryRepository({
    "a/b/x.md": "1",
    "a/y.md": "1",
    "a/.gitignore": "",
  });
  const { root } = repository;
  let tree = await treeOf(root);
  writeFileSync(join(root, "a/.gitignore"), "b/\n");
  const hidden = scan(root, { previous: tree });
  expect(hidden.removed).toContain("a/b/x.md");
  expect(candidatesOf(hidden)).toEqual([]);
  tree = await treeOf(root, tree);
  rmSync(join(root, "a/.gitignore"));
  const back = scan(root, { previous: tree });
  expect(candidatesOf(back)).toEqual(["a/b/x.md"]);
});

test("a new ignore file removes files in deeper folders", async () => {
  await using repository = await createTemporaryRepository({ "a/b/c/x.md": "1", "a/b/c/y.md": "1" });
  const { root } = repository;
  const tree = await treeOf(root);
  writeFileSync(join(root, "a/.gitignore"), "x.md\n");
  const change = scan(root, { previous: tree });
  expect(change.removed.filter((path) => !path.endsWith("/"))).toEqual(["a/b/c/x.md"]);
  expect(candidatesOf(change)).toEqual([]);
});

test("links to folders are not followed, so a cycle ends", async () => {
  await using repository = await createTemporaryRepository({ "a/x.md": "1" });
  const { root } = repository;
  symlinkSync("..", join(root, "a/up"));
  symlinkSync(root, join(root, "a/root"));
  symlinkSync("/", join(root, "a/system"));
  expect(candidatesOf(scan(root))).toEqual(["a/x.md"]);
});

test("a folder that is named like a source is a problem, and stops nothing", async () => {
  await using repository = await createTemporaryRepository({ "good.md": "1", "folder.md/inner.md": "1" });
  const { root } = repository;
  execFileSync("mkfifo", [join(root, "pipe.md")]);
  await repository.write("bad\nname.md", "1");
  const change = scan(root);
  expect(problemsOf(change).sort()).toEqual([
    ["bad\nname.md", "control_character"],
    ["folder.md", "not_a_file"],
    ["pipe.md", "not_a_file"],
  ]);
  expect(candidatesOf(change)).toContain("folder.md/inner.md");
  expect(candidatesOf(change)).toContain("good.md");
});

test.skipIf(process.getuid?.() === 0)(
  "a folder without permission is a problem until it has some",
  async () => {
    await using repository = await createTemporaryRepository({ "closed/a.md": "1", "b.md": "1" });
    const { root } = repository;
    chmodSync(join(root, "closed"), 0);
    const first = scan(root);
    expect(problemsOf(first)).toEqual([["closed/", "no_permission"]]);
    const tree = await treeOf(root);
    expect(scan(root, { previous: tree }).folders).toEqual([]);
    chmodSync(join(root, "closed"), 0o755);
    const second = scan(root, { previous: tree });
    expect(candidatesOf(second)).toEqual(["closed/a.md"]);
    expect(second.removed).toContain("closed/");
  },
);

test("a source that was read in the tick of the clock in which it changed is read again", async () => {
  await using repository = await createTemporaryRepository({ "a.md": "1" });
  const { root } = repository;
  const tree = await treeOf(root);
  const folder = tree.get("");
  const stats = statSync(join(root, "a.md"));
  if (folder === undefined) throw new Error("There is no root folder.");
  expect(candidatesOf(scan(root, { previous: tree }))).toEqual([]);
  setStamp(folder, 1, { stats, nowMs: stats.ctimeMs + 1 });
  expect(candidatesOf(scan(root, { previous: tree }))).toEqual(["a.md"]);
});

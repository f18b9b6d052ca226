import { execFileSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { beforeEach, expect, onTestFinished, test } from "vitest";
import { isCampaign } from "../../testing/campaign.suite.ts";
import { testFolder } from "../../testing/test-folder.ts";
import { runUnwalled } from "./run-unwalled.suite.ts";

/** `npm test` runs a third of the subcommands of Git. */
const some = <Item>(all: readonly Item[]): readonly Item[] =>
  all.filter((_, at) => isCampaign || at % 3 === 0);

let base: string;
let root: string;
let marker: string;

const git = (cwd: string, ...args: readonly string[]): string =>
  execFileSync("git", ["-c", "core.hooksPath=/dev/null", "-c", "protocol.file.allow=always", ...args], {
    cwd,
    encoding: "utf8",
    stdio: ["ignore", "pipe", "ignore"],
    env: {
      PATH: process.env.PATH,
      HOME: base,
      GIT_CONFIG_NOSYSTEM: "1",
      GIT_EDITOR: "true",
      ...Object.fromEntries(
        ["AUTHOR", "COMMITTER"].flatMap((role) => [
          [`GIT_${role}_NAME`, "Ann"],
          [`GIT_${role}_EMAIL`, "ann@example.org"],
        ]),
      ),
    },
  });

function makeRepository(at: string, text = "one\n"): void {
  mkdirSync(at, { recursive: true });
  git(at, "init", "-q", "-b", "main");
  for (const content of ["zero\n", text]) {
    writeFileSync(join(at, "a.txt"), content);
    git(at, "add", "-A");
    git(at, "commit", "-qm", content.trim());
  }
  git(at, "config", "user.name", "Ann");
  git(at, "config", "user.email", "ann@example.org");
}

/** Runs a command without isolation; returns what it printed, or the reason of its refusal. */
async function run(
  command: string,
  workspace = root,
): Promise<{ text: string; code: number | null } | string> {
  const result = await runUnwalled(workspace, command);
  if (typeof result === "string") return result;
  return { text: result.stdout + result.stderr, code: result.exit_code };
}

beforeEach(() => {
  base = testFolder(onTestFinished);
  root = join(base, "home/workspace");
  marker = join(base, "started");
  makeRepository(root);
});

test.each(
  some([
    "git status -v",
    "git status -vv",
    "git diff -p HEAD~1",
    "git commit -v --dry-run -a",
    "git commit --dry-run --verbose -a",
    "git range-diff HEAD~1..HEAD HEAD~1..topic",
    "git rebase --show-current-patch",
    "git stash show -p",
    "git stash list -p",
    "git log -p -L1,1:a.txt",
    "git log -G. -p",
    "git cherry topic",
    "git blame a.txt",
    "git commit -v --amend --no-edit",
    "git commit -qam x",
  ]),
)("%s starts no program for diffs", async (line) => {
  writeFileSync(join(root, ".gitattributes"), "*.txt diff=x\n");
  git(root, "branch", "topic", "HEAD~1");
  git(root, "checkout", "-q", "topic");
  writeFileSync(join(root, "a.txt"), "other\n");
  git(root, "commit", "-qam", "Other");
  writeFileSync(join(root, "a.txt"), "stashed\n");
  git(root, "stash", "-q");
  if (line.includes("rebase")) expect(() => git(root, "rebase", "-q", "main")).toThrow();
  else git(root, "checkout", "-q", "main");
  writeFileSync(join(root, "a.txt"), "staged\n");
  if (!line.includes("rebase")) git(root, "add", "a.txt");
  writeFileSync(join(root, "a.txt"), "in work\n");
  for (const key of ["diff.external", "diff.x.textconv", "diff.x.command"])
    git(root, "config", key, `touch '${marker}'; cat`);
  git(root, "config", "commit.verbose", "2");
  expect(await run(line)).toMatchObject({ code: expect.toBeOneOf([0, 1]) });
  expect(existsSync(marker)).toBe(false);
});

test.each(
  some([
    "git status",
    "git status --short -b",
    "git diff",
    "git diff --submodule",
    "git diff-files",
    "git diff-index HEAD",
    "git describe --always --dirty",
    "git log -p -1 -m",
    "git add -A",
    "git add lib",
    "git add deeper",
    "git commit -qam x",
    "git commit -m x --dry-run",
    "git stash",
    "git checkout -q HEAD~1",
    "git switch -q -d HEAD~1",
    "git reset --hard",
    "git reset -q",
    "git restore .",
    "git rm -q --cached lib",
    "git rm -q lib",
    "git mv lib moved",
    "git rebase HEAD~1",
    "git merge HEAD~1",
    "git revert --no-edit HEAD~1",
  ]),
)("%s starts nothing that the configuration of a nested repository names", async (line) => {
  const nested = ["lib", "deeper", "deeper/under"].map((name) => join(root, name));
  for (const folder of nested) {
    makeRepository(folder);
    writeFileSync(join(folder, ".gitattributes"), "*.txt filter=evil diff=evil\n");
  }
  git(join(root, "deeper"), "add", "under");
  git(join(root, "deeper"), "commit", "-qm", "Under");
  git(root, "add", "lib", "deeper");
  git(root, "commit", "-qm", "Links");
  const ignored = (name: string): string =>
    `[submodule "${name}"]\n\tpath = ${name}\n\turl = ./x\n\tignore = none\n`;
  writeFileSync(join(root, ".gitmodules"), ignored("lib") + ignored("deeper"));
  writeFileSync(join(root, "deeper/.gitmodules"), ignored("under"));
  for (const folder of nested) {
    for (const key of ["filter.evil.clean", "core.fsmonitor", "diff.evil.textconv"])
      git(folder, "config", key, `touch '${marker}'; cat`);
    // Git compares the contents of files of the same size.
    writeFileSync(join(folder, "a.txt"), "two\n");
  }
  await run(line);
  expect(existsSync(marker)).toBe(false);
});

/** A `.git` from an archive can name each of these; the form would show or change it. */
const leads: readonly (readonly [string, (git: string) => void, string])[] = [
  ["core.worktree", () => git(root, "config", "core.worktree", dirname(root)), "git ls-files -o"],
  ["core.worktree for writing", () => git(root, "config", "core.worktree", dirname(root)), "git add -A"],
  ["a .git file", (at) => leadTo(at, "file"), "git log -p"],
  ["a .git link", (at) => leadTo(at, "link"), "git log -p"],
  [
    "a commondir",
    (at) => writeFileSync(join(at, "commondir"), join(base, "home/other/.git")),
    "git log -p --all",
  ],
  [
    "alternates",
    (at) => writeFileSync(join(at, "objects/info/alternates"), `${join(base, "home/other/.git/objects")}\n`),
    `git show ${"OTHER"}`,
  ],
  [
    "relative alternates",
    (at) => writeFileSync(join(at, "objects/info/alternates"), "../../../other/.git/objects\n"),
    `git show ${"OTHER"}`,
  ],
  ["a link of objects", (at) => replaceByLink(join(at, "objects"), "other/.git/objects"), "git show OTHER"],
  [
    "a link of packs",
    (at) => replaceByLink(join(at, "objects/pack"), "other/.git/objects"),
    "git show OTHER",
  ],
  [
    "a message of a merge",
    (at) => replaceByLink(join(at, "MERGE_MSG"), "secret.txt"),
    "git commit --allow-empty --no-edit",
  ],
  ["exclude", (at) => replaceByLink(join(at, "info/exclude"), "secret.txt"), "git check-ignore -v private"],
  [
    "blame.ignoreRevsFile",
    () => git(root, "config", "blame.ignoreRevsFile", join(base, "home/secret.txt")),
    "git blame a.txt",
  ],
  [
    "core.excludesFile",
    () => git(root, "config", "core.excludesFile", join(base, "home/secret.txt")),
    "git check-ignore -v private",
  ],
  [
    "core.attributesFile",
    () => git(root, "config", "core.attributesFile", join(base, "home/secret.txt")),
    "git check-attr -a private",
  ],
  [
    "commit.template",
    () => git(root, "config", "commit.template", join(base, "home/secret.txt")),
    "git commit --allow-empty -m x -v --dry-run",
  ],
  [
    "mailmap.file",
    () => git(root, "config", "mailmap.file", join(base, "home/secret.txt")),
    "git log --format=%aN",
  ],
  [
    "include.path",
    () => git(root, "config", "include.path", join(base, "home/secret.cfg")),
    "git config --list",
  ],
  [
    "includeIf",
    () => git(root, "config", "includeIf.gitdir:/**.path", join(base, "home/secret.cfg")),
    "git config --get private.key",
  ],
  ["config.worktree", (at) => worktreeConfig(at), "git ls-files -o"],
  ["diff.orderFile", () => git(root, "config", "diff.orderFile", join(base, "home/secret.txt")), "git diff"],
];

function replaceByLink(path: string, target: string): void {
  rmSync(path, { recursive: true, force: true });
  symlinkSync(join(base, "home", target), path);
}

function leadTo(at: string, kind: "file" | "link"): void {
  rmSync(at, { recursive: true });
  const other = join(base, "home/other/.git");
  if (kind === "file") writeFileSync(at, `gitdir: ${other}\n`);
  else symlinkSync(other, at);
}

function worktreeConfig(at: string): void {
  git(root, "config", "extensions.worktreeConfig", "true");
  writeFileSync(join(at, "config.worktree"), `[core]\n\tworktree = ${dirname(root)}\n`);
}

test.each(leads)("%s does not lead out of the workspace", async (_name, prepare, line) => {
  writeFileSync(join(base, "home/secret.txt"), "private words here\n");
  writeFileSync(join(base, "home/secret.cfg"), "[private]\n\tkey = words\n");
  makeRepository(join(base, "home/other"), "private words of another repository\n");
  const other = git(join(base, "home/other"), "rev-parse", "HEAD").trim();
  prepare(join(root, ".git"));
  const result = await run(line.replace("OTHER", other));
  expect(typeof result === "string" ? "" : result.text).not.toMatch(/words|secret\.txt|other\//);
  const added = await run("git ls-files");
  if (typeof added !== "string") expect(added.text).not.toContain("secret");
});

test.each([
  "hook.x.command",
  "core.virtualFilesystem",
  "trailer.sign.command",
  "unknown.key",
  "diff.x.unknown",
])("a repository with the key %s is refused without a wall", async (key) => {
  git(root, "config", key, "x");
  expect(await run("git status")).toContain(key.toLowerCase());
});

test("ordinary keys, linked work trees, submodules and folders of a repository are accepted", async () => {
  for (const [key, value] of Object.entries({
    "alias.st": "status",
    "branch.main.remote": "origin",
    "branch.main.vscode-merge-base": "origin/main",
    "core.autocrlf": "false",
    "filter.lfs.clean": "git-lfs clean -- %f",
    "filter.lfs.process": "git-lfs filter-process",
    "filter.lfs.required": "true",
    "http.https://github.com/.extraheader": "AUTHORIZATION: basic x",
    "lfs.repositoryformatversion": "0",
    "merge.conflictstyle": "zdiff3",
    "mergetool.x.cmd": "x",
    "remote.origin.url": "https://example.org/x.git",
    "remote.origin.fetch": "+refs/heads/*:refs/remotes/origin/*",
  }))
    git(root, "config", key, value);
  mkdirSync(join(root, "packages/one"), { recursive: true });
  writeFileSync(join(root, "packages/one/b.txt"), "b\n");
  git(root, "worktree", "add", "-q", join(base, "linked"), "-b", "topic");
  const around = join(base, "super");
  makeRepository(around);
  git(around, "submodule", "add", "-q", root, "lib");
  git(around, "commit", "-qm", "Submodule");
  for (const workspace of [
    root,
    join(root, "packages/one"),
    join(base, "linked"),
    join(around, "lib"),
    around,
  ]) {
    writeFileSync(join(workspace, "new.txt"), "new\n");
    for (const line of ["git status --short", "git log -1 --format=%an", "git add -A", "git commit -qm New"])
      expect(await run(line, workspace), `${workspace}: ${line}`).toMatchObject({ code: 0 });
  }
  writeFileSync(join(around, "lib/c.txt"), "c\n");
  expect(await run("git -C lib status --short", around)).toMatchObject({ code: 0, text: "?? c.txt\n" });
  cpSync(join(base, "linked"), join(base, "copied"), { recursive: true });
  expect(await run("git log", join(base, "copied"))).toContain("leads out of the workspace");
});

test("a link in the logs may not lead to a protected file either", async () => {
  writeFileSync(join(root, "package.json"), "{}");
  rmSync(join(root, ".git/logs/HEAD"));
  symlinkSync("../../package.json", join(root, ".git/logs/HEAD"));
  expect(await run("git commit --allow-empty -qm x")).toMatch(/logs\/HEAD in .git/);
});

test.each([
  ["logs/HEAD", "git commit -qam 'x; touch y'"],
  ["logs/refs/heads/main", "git commit -qam x"],
  ["logs/HEAD", "git reflog"],
  ["refs/heads/own", "git branch own/topic"],
  ["refs/remotes/origin", "git log --all"],
])("a link at .git/%s leads %s out of the workspace", async (path, line) => {
  const outside = join(base, "outside");
  if (path.startsWith("logs")) writeFileSync(outside, "# mine\n");
  else mkdirSync(outside);
  const entry = join(root, ".git", path);
  rmSync(entry, { force: true });
  mkdirSync(dirname(entry), { recursive: true });
  symlinkSync(outside, entry);
  writeFileSync(join(root, "a.txt"), "changed\n");
  expect(await run(line)).toMatch(/leads out of the workspace/);
});

test.each(["git add -A", "git diff", "git commit -qam x"])(
  "kit looks for files of secrets before %s without the filters of the repository",
  async (line) => {
    writeFileSync(join(root, ".env"), "A=1\n");
    git(root, "add", "-A");
    git(root, "commit", "-qm", "Variables");
    writeFileSync(join(root, ".env"), "A=2\n");
    writeFileSync(join(root, ".gitattributes"), "* filter=x\n");
    git(root, "config", "filter.x.clean", `touch '${marker}'; cat`);
    await run(line);
    expect(existsSync(marker)).toBe(false);
  },
);

import { execFileSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readFileSync, symlinkSync, utimesSync, writeFileSync } from "node:fs";
import { glob } from "node:fs/promises";
import { join } from "node:path";
import { beforeEach, expect, onTestFinished, test, vi } from "vitest";
import { testFolder } from "../testing/test-folder.ts";
import { type GitArguments, type GitResult, runGit } from "./git.ts";

let folder: string;
let root: string;
let marker: string;

const gitIn = (cwd: string, ...args: readonly string[]): string =>
  execFileSync("git", ["-c", "user.name=Ann", "-c", "user.email=ann@example.org", ...args], {
    cwd,
    encoding: "utf8",
    env: { PATH: process.env.PATH, HOME: folder, GIT_CONFIG_NOSYSTEM: "1" },
    stdio: ["ignore", "pipe", "ignore"],
  });

function makeRepository(at: string, file = "a.txt"): void {
  mkdirSync(at, { recursive: true });
  gitIn(at, "init", "-q", "-b", "main");
  writeFileSync(join(at, file), "one\n");
  gitIn(at, "add", "-A");
  gitIn(at, "commit", "-qm", "One");
}

beforeEach(() => {
  folder = testFolder(onTestFinished);
  root = join(folder, "project");
  marker = join(folder, "started");
  makeRepository(root);
});

/** Each of these starts what a configuration of the repository may name. */
const calls: readonly GitArguments[] = [
  ["rev-parse", "--is-inside-work-tree", "HEAD^{commit}"],
  ["log", "-p", "--name-status", "--format=%H %G?"],
  ["diff", "HEAD"],
  ["diff", "-p", "--cached", "HEAD"],
  ["diff-tree", "-p", "HEAD~1", "HEAD"],
  ["ls-files", "--others", "--exclude-standard"],
  ["merge-base", "HEAD", "HEAD~1"],
];

test("starts no program that the configuration of a repository names", async () => {
  const run = `touch '${marker}'; cat`;
  const settings: Record<string, string> = {
    "core.fsmonitor": run,
    "core.hooksPath": "hooks",
    "core.pager": run,
    "core.sshCommand": run,
    "core.alternateRefsCommand": run,
    "diff.external": run,
    "diff.x.textconv": run,
    "diff.x.command": run,
    "filter.y.clean": run,
    "filter.y.smudge": run,
    "filter.y.required": "true",
    "gpg.program": run,
    "log.showSignature": "true",
    "pager.log": run,
  };
  writeFileSync(join(root, ".gitattributes"), "*.txt diff=x filter=y\n");
  writeFileSync(join(root, "a.txt"), "two\n");
  gitIn(root, "commit", "-qam", "Two");
  for (const [key, value] of Object.entries(settings)) gitIn(root, "config", key, value);
  mkdirSync(join(root, "hooks"));
  for (const hook of ["post-index-change", "reference-transaction"])
    writeFileSync(join(root, "hooks", hook), `#!/bin/sh\ntouch '${marker}'\n`, { mode: 0o755 });
  writeFileSync(join(root, "a.txt"), "three\n");
  for (const call of calls) expect((await runGit(call, { cwd: root })).status, call.join(" ")).toBe("ok");
  const patch = (await runGit(["diff"], { cwd: root })) as Extract<GitResult, { status: "ok" }>;
  gitIn(root, "-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "stash", "list");
  writeFileSync(join(root, "a.txt"), "two\n");
  expect(await runGit(["apply"], { cwd: root, input: String(patch.stdout) })).toMatchObject({ status: "ok" });
  expect(readFileSync(join(root, "a.txt"), "utf8")).toBe("three\n");
  expect(existsSync(marker)).toBe(false);
});

test("writes an index without a filter, also for a file that is as new as the index", async () => {
  writeFileSync(join(root, ".gitattributes"), "*.txt filter=y\n");
  gitIn(root, "config", "filter.y.clean", `touch '${marker}'; cat`);
  const index = join(folder, "index");
  for (const call of [
    ["read-tree", "HEAD"],
    ["add", "--all"],
    ["write-tree"],
    ["update-index", "--refresh"],
    ["checkout-index", "--all", "--force"],
    ["write-tree"],
  ] as const) {
    writeFileSync(join(root, "a.txt"), "two\n");
    // Git looks into a file whose time is not before that of the index.
    utimesSync(join(root, "a.txt"), new Date(), new Date(Date.now() + 60_000));
    expect((await runGit(call, { cwd: root, index })).status, call.join(" ")).toBe("ok");
    expect(existsSync(marker), call.join(" ")).toBe(false);
  }
});

test("starts no program that the configuration of a nested repository names", async () => {
  const nested = join(root, "lib");
  makeRepository(nested);
  writeFileSync(join(nested, ".gitattributes"), "* filter=evil\n");
  gitIn(nested, "config", "filter.evil.clean", `touch '${marker}'; cat`);
  gitIn(root, "add", "lib");
  gitIn(root, "commit", "-qm", "Link");
  // The setting of one submodule goes before the general one.
  writeFileSync(
    join(root, ".gitmodules"),
    '[submodule "lib"]\n\tpath = lib\n\turl = ./lib\n\tignore = none\n',
  );
  // Git compares the contents of files of the same size.
  writeFileSync(join(nested, "a.txt"), "two\n");
  for (const call of calls.filter(([name]) => name !== "merge-base" && name !== "diff-tree"))
    expect((await runGit(call, { cwd: root })).status, call.join(" ")).toBe("ok");
  expect(existsSync(marker)).toBe(false);
});

test("passes none of the variables of Git on", async () => {
  vi.stubEnv("GIT_DIR", "/nowhere");
  vi.stubEnv("GIT_EXTERNAL_DIFF", `touch ${marker}`);
  vi.stubEnv("GIT_CONFIG_PARAMETERS", "'core.fsmonitor=x'");
  try {
    writeFileSync(join(root, "a.txt"), "two\n");
    expect((await runGit(["diff"], { cwd: root })).status).toBe("ok");
    expect(existsSync(marker)).toBe(false);
  } finally {
    vi.unstubAllEnvs();
  }
});

test("keeps to the folder whose .git it is", async () => {
  makeRepository(join(folder, "other"), "private.txt");
  writeFileSync(join(folder, "home.txt"), "private\n");
  gitIn(root, "config", "core.worktree", folder);
  const listed = await runGit(["ls-files", "--others"], { cwd: root });
  expect(String((listed as { stdout: Buffer }).stdout)).toBe("");
  expect((await runGit(["diff", "--quiet"], { cwd: root })).status).toBe("ok");
});

test.each(["file", "link", "commondir", "worktree"])(
  "refuses a .git that leads elsewhere by a %s",
  async (kind) => {
    const other = join(folder, "other");
    makeRepository(other, "private.txt");
    const hostile = join(folder, "hostile");
    mkdirSync(hostile);
    if (kind === "file") writeFileSync(join(hostile, ".git"), `gitdir: ${other}/.git\n`);
    if (kind === "link") symlinkSync(join(other, ".git"), join(hostile, ".git"));
    if (kind === "commondir") {
      cpSync(join(root, ".git"), join(hostile, ".git"), { recursive: true });
      writeFileSync(join(hostile, ".git/commondir"), `${other}/.git\n`);
    }
    if (kind === "worktree") {
      gitIn(other, "worktree", "add", "-q", join(folder, "linked"), "-b", "topic");
      cpSync(join(folder, "linked/.git"), join(hostile, ".git"));
    }
    const result = await runGit(["log", "--name-status"], { cwd: hostile });
    expect(result).toMatchObject({ status: "failed", stderr: expect.stringContaining("does not know") });
  },
);

test("reads linked work trees, submodules and folders of a repository", async () => {
  const submodule = join(folder, "super");
  makeRepository(submodule);
  gitIn(submodule, "-c", "protocol.file.allow=always", "submodule", "add", "-q", root, "lib");
  gitIn(root, "worktree", "add", "-q", join(folder, "linked"), "-b", "topic");
  mkdirSync(join(root, "packages/one"), { recursive: true });
  symlinkSync(root, join(folder, "link"));
  for (const cwd of [
    join(submodule, "lib"),
    join(folder, "linked"),
    join(root, "packages/one"),
    join(folder, "link"),
  ])
    expect(await runGit(["rev-parse", "--is-inside-work-tree"], { cwd }), cwd).toMatchObject({
      status: "ok",
    });
});

test("is the only place that starts Git", async () => {
  const starts =
    /(?:spawn|exec|execFile|spawnSync|execSync|execFileSync)\(\s*["'`]git\b|program:\s*["'`]git["'`]/;
  const found: string[] = [];
  for await (const file of glob("src/**/*.ts")) {
    if (/\.(test|suite)\.ts$|\/testing\//.test(file)) continue;
    if (starts.test(readFileSync(file, "utf8"))) found.push(file);
  }
  expect(found).toEqual([join("src", "processes", "git.ts")]);
});

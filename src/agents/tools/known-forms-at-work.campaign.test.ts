import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { ExecResult } from "../../sandboxes/contract.ts";
import type { AgentPolicy } from "../define/agent-profile.ts";
import { checkCommand } from "../policy/check-command.ts";
import { attackedPrograms, type HostileForms } from "../policy/hostile-forms.suite.ts";
import { type HostileRepository, openHostileRepository } from "./hostile-repository.suite.ts";

const corpus: HostileForms = JSON.parse(
  readFileSync(join(import.meta.dirname, "../../../tests/security/known-forms.json"), "utf8"),
);
let repository: HostileRepository | undefined;
let base = "";
let root = "";
beforeAll(async () => {
  repository = await openHostileRepository();
  ({ base, root } = repository);
});
afterAll(() => repository?.close());

const git = (...args: readonly string[]): void => repository?.git(...args);
const contents = (): string | undefined => repository?.contents();

async function run(command: string, policy: AgentPolicy = {}, cwd?: string): Promise<ExecResult | string> {
  if (repository === undefined) throw new Error("There is no repository.");
  return await repository.run(
    command,
    { allowShell: true, allowedCommands: attackedPrograms(corpus), ...policy },
    cwd,
  );
}

test("the test repository runs its programs when Git is not restricted", () => {
  const plain = { cwd: root, env: { PATH: process.env.PATH, HOME: base }, stdio: "ignore" } as const;
  expect(() => execFileSync("git", ["diff"], plain)).toThrow();
  expect(readdirSync(root)).toContain("PWNED");
  rmSync(join(root, "PWNED"));
});

test("no attack of the corpus has an effect", async () => {
  const before = contents();
  for (const line of Object.values(corpus.attacks).flat()) {
    if (!checkCommand(line, { allowShell: true, allowedCommands: attackedPrograms(corpus) }).allowed)
      continue;
    expect(typeof (await run(line)), line).toBe("string");
  }
  expect(contents()).toBe(before);
});

describe("Git in a repository whose configuration names programs", () => {
  test.each([
    "git status",
    "git status -v",
    "git -C sub status --short",
    "git diff",
    "git diff HEAD~1 -- a.txt",
    "git diff --stat",
    "git log -3",
    "git log -p --format='%h %G? %GS' -2",
    "git log --oneline",
    "git show",
    "git show HEAD:a.txt",
    "git show HEAD~1 -- a.txt",
    "git blame a.txt",
    "git reflog -2",
    "git reflog show -p",
    "git whatchanged -p -1",
    "git diff-tree -p HEAD",
    "git diff-index -p HEAD",
    "git diff-files -p",
    "git grep alpha",
    "git ls-files -m",
    "git describe --always --dirty",
    "git branch -vv",
    "git for-each-ref --format='%(refname) %(contents:signature)'",
    "git shortlog -sn HEAD",
    "git cat-file -p HEAD:a.txt",
    "git rev-list --objects HEAD",
    "git check-attr -a a.txt",
    "git config --list",
    "git stash list",
    "timeout 5 git diff",
  ])("runs none of them for %s", async (line) => {
    const before = contents();
    expect(await run(line)).toMatchObject({ exit_code: 0 });
    expect(contents()).toBe(before);
  });

  test("runs none of them for subcommands that write, which still work", async () => {
    const policy = { allowWrite: true, allowedCommands: [] };
    const steps = [
      "git config user.name Ann",
      "git config user.email ann@example.org",
      "git add a.txt",
      "git commit -v -m 'Three'",
      "git stash push -m nothing",
      "git checkout -q -b other HEAD~1",
      "git switch -q main",
      "git tag -a v1 -m One",
      "git branch -m other another",
      "git mv b.txt d.txt",
      "git commit -qm Four",
      "git revert --no-edit HEAD",
      "git reset -q --hard HEAD~1",
      "git restore --source=HEAD~1 a.txt",
      "git restore a.txt",
      "git rebase HEAD~1",
    ];
    for (const line of steps) {
      const result = await run(line, policy);
      expect(result, line).toMatchObject({ exit_code: 0 });
      expect(readdirSync(root), line).not.toContain("PWNED");
    }
    expect(await run("git log --format=%an:%s -2")).toMatchObject({ stdout: "Ann:Four\nAnn:Three\n" });
  });

  test("refuses to fetch from a remote that runs a program", async () => {
    for (const line of ["git fetch origin", "git ls-remote origin"]) {
      const withName = { allowWrite: true, allowedCommands: [line.split(" ").slice(0, 2).join(" ")] };
      expect(await run(line, withName), line).toMatchObject({
        exit_code: expect.toSatisfy((code) => code > 0),
      });
    }
    expect(readdirSync(root)).not.toContain("PWNED");
  });

  test("refuses to merge if the configuration names a merge driver", async () => {
    git("config", "merge.z.driver", `touch '${root}/PWNED'`);
    expect(await run("git merge topic", { allowWrite: true, allowedCommands: ["git merge"] })).toContain(
      "merge.z.driver",
    );
    git("config", "--unset", "merge.z.driver");
  });
});

test("a command reads inside the workspace only, also through links and folders", async () => {
  for (const line of [
    "cat leads-out.txt",
    "git diff --no-index leads-out.txt a.txt",
    "git diff leads-out.txt a.txt",
    "cat sub/up/../outside.txt",
    "cat sub/up/../../outside.txt",
    "grep -r outside leads-out.txt",
    "sort a.txt leads-out.txt",
    "sed p leads-out.txt",
    "jq -R . leads-out.txt",
    "cat /proc/self/environ",
    `cat ${root}/../outside.txt`,
    "head -n1 sub/../../outside.txt",
  ])
    expect(await run(line), line).toContain("leads out of the workspace");
  for (const line of [
    "cat a.txt",
    "cat ./sub/c.txt",
    `cat ${root}/a.txt`,
    "cat sub/up/a.txt",
    "cmp a.txt /dev/null",
  ])
    expect(typeof (await run(line)), line).toBe("object");
  const from = (cwd: string, command: string): Promise<ExecResult | string> => run(command, {}, cwd);
  expect(await from("sub", "cat ../a.txt")).toMatchObject({ exit_code: 0 });
  expect(await from("sub/up", "cat a.txt")).toMatchObject({ exit_code: 0 });
  expect(await from("sub/up", "cat ../outside.txt")).toContain("leads out");
  expect(await from("sub", "cat ../../outside.txt")).toContain("leads out");
});

test("a command writes inside the workspace only, and to no protected file", async () => {
  const policy = { allowWrite: true, allowedCommands: [] };
  for (const line of [
    "cp a.txt e.txt",
    "mkdir -p new/folder",
    "mv e.txt new",
    "touch new/f",
    "rm -r new",
    "ln -s a.txt l",
  ])
    expect(await run(line, policy), line).toMatchObject({ exit_code: 0 });
  for (const [line, reason] of [
    ["cp a.txt kit.toml", "protected"],
    ["cp a.txt .git/hooks/pre-commit", "protected"],
    ["cp -r sub .git", "protected"],
    ["cp -r sub src", "protected"],
    ["mv sub src", "protected"],
    ["mv a.txt .kit", "protected"],
    ["rm -rf .git", "protected"],
    ["rm -rf .", "protected"],
    ["touch src/agents/a.ts", "protected"],
    ["mkdir .agents", "protected"],
    ["ln -s .git/config l2", "protected"],
    ["git mv a.txt kit.toml", "protected"],
    ["git rm -r src", "protected"],
    ["tee .kit/x", "protected"],
    ["cp a.txt package.json", "protected"],
    ["cat .env", "secrets"],
    ["grep KEY sub/up/.env.local", "secrets"],
    ["tar -cf .git/config a.txt", "protected"],
    ["chmod +x .git/hooks/x", "protected"],
    ["cp a.txt ../x", "leads out"],
    ["cp a.txt sub/up/../x", "leads out"],
    ["touch leads-out.txt", "leads out"],
    ["cp /etc/passwd x", "leads out"],
    ["ln -s /etc/passwd x", "leads out"],
    ["ln -s ../outside.txt x", "leads out"],
    ["ln -s a.txt sub/x", "another folder"],
  ] as const)
    expect(await run(line, policy), line).toContain(reason);
  expect(readFileSync(join(base, "outside.txt"), "utf8")).toBe("outside\n");
});

test("no part of a line runs if one part is refused", async () => {
  const policy = { allowWrite: true, allowCompoundCommands: true, allowedCommands: ["touch", "cat"] };
  expect(await run("touch half && cat ../outside.txt", policy)).toContain("leads out");
  expect(readdirSync(root)).not.toContain("half");
});

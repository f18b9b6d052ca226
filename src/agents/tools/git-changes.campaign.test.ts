import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { KitError } from "../../base/kit-error.ts";
import type { ExecResult, Sandbox } from "../../sandboxes/contract.ts";
import { local } from "../../sandboxes/local/local-sandbox.ts";
import { isCampaign } from "../../testing/campaign.suite.ts";
import { runCommand } from "./run-command.ts";

const root = realpathSync(mkdtempSync(join(tmpdir(), "kit-changes-")));
const client = {
  GIT_AUTHOR_NAME: "Ann",
  GIT_AUTHOR_EMAIL: "a@b.c",
  GIT_COMMITTER_NAME: "Ann",
  GIT_COMMITTER_EMAIL: "a@b.c",
};
const env = { PATH: process.env.PATH, HOME: root, GIT_CONFIG_NOSYSTEM: "1", ...client };
const git = (...args: readonly string[]): string =>
  execFileSync("git", [...args], { cwd: root, env, encoding: "utf8", stdio: "pipe" });

function commit(branch: string, files: Readonly<Record<string, string>>): void {
  git("checkout", "-q", "-b", branch, "main");
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(join(root, path, ".."), { recursive: true });
    writeFileSync(join(root, path), content);
  }
  git("add", "-A");
  git("commit", "-qm", branch);
}

let sandbox: Sandbox;
beforeAll(async () => {
  git("init", "-q", "-b", "main");
  mkdirSync(join(root, "sub"));
  for (const path of ["a.txt", "sub/b.txt", "tsconfig.json"]) writeFileSync(join(root, path), "one\n");
  git("add", "-A");
  git("commit", "-qm", "One");
  commit("good", { "good.txt": "good\n" });
  commit("evil", { "package.json": "{}\n" });
  commit("hook", { "sub/.husky/pre-commit": "#!/bin/sh\n" });
  git("tag", "evil", "good");
  git("update-ref", "refs/remotes/elsewhere/guessed", "refs/heads/hook");
  git("checkout", "-q", "main");
  git("config", "branch.main.remote", ".");
  git("config", "branch.main.merge", "refs/heads/hook");
  git("config", "user.name", "Ann");
  git("config", "user.email", "a@b.c");
  sandbox = await local({ root, isolation: "off" }).open({
    agent: "tester",
    instance_id: "1",
    session: "default",
  });
});
afterAll(async () => {
  await sandbox.close();
  rmSync(root, { recursive: true, force: true });
});

/** Runs a command; returns its result, or the reason for its refusal. */
async function run(command: string): Promise<ExecResult | string> {
  return await runCommand({
    command,
    sandbox,
    policy: {
      allowShell: true,
      allowWrite: true,
      allowedCommands: [command.replace(" -C sub", "").split(" ").slice(0, 2).join(" ")],
    },
    env: {},
    signal: AbortSignal.timeout(20_000),
    emit: () => undefined,
  }).catch((error: unknown) => {
    if (error instanceof KitError && error.code === "forbidden") return error.message;
    throw error;
  });
}

/** The state of the repository: its commit and branch, and the differences from them. */
const state = (): string => git("log", "-1", "--format=%H%d") + git("status", "--porcelain") + git("diff");

/** Every case in a campaign; one in `step` in `npm test`. */
function slice(lines: readonly string[], step: number): readonly string[] {
  return lines.filter((_, index) => isCampaign || index % step === 0);
}

/** Commands that restore files of another revision. */
const commands = [
  "git checkout refs/heads/evil",
  // Switches to the branch, although rev-parse prefers the tag of the same name.
  "git checkout evil",
  "git checkout -q -b new refs/heads/evil",
  "git checkout -bnew refs/heads/evil",
  "git checkout -qf refs/heads/evil",
  "git checkout refs/heads/evil -- package.json",
  "git checkout refs/heads/evil package.json",
  "git checkout refs/heads/evil -- .",
  "git checkout guessed",
  "git -C sub checkout hook",
  "git switch hook",
  "git switch -c new hook",
  "git switch guessed",
  "git switch --detach hook",
  "git switch --orphan none",
  "git restore --source=hook .",
  "git restore -s hook sub",
  "git restore -shook -W -S sub",
  "git restore -qshook .",
  "git checkout --conflict merge hook",
  "git checkout -qbnew hook",
  "git merge -m --continue hook",
  "git merge -m --abort",
  "git cherry-pick --skip hook",
  "git merge hook",
  "git merge -m HEAD",
  "git merge -q",
  "git merge FETCH_HEAD",
  "git merge -m main --no-ff hook",
  "git merge good hook",
  "git rebase hook",
  "git rebase",
  "git rebase -s ort",
  "git rebase --onto hook main",
  "git reset -q --hard hook",
  "git reset --keep hook",
  "git cherry-pick hook",
  "git cherry-pick main..hook",
  "git cherry-pick hook^!",
  "git cherry-pick ^main hook",
  "git cherry-pick -X theirs hook",
  "git pull origin hook",
  "git pull",
];

describe("a Git command that would restore protected files from a revision does not run", () => {
  let before = "";
  beforeAll(() => {
    before = state();
  });
  test.each(slice(commands, 3))("%s", async (command) => {
    const result = await run(command);
    expect(result).toEqual(expect.stringMatching(/is protected|Git does not say|what a pull brings/));
    expect(state()).toBe(before);
  });
});

test("uncommitted changes of a protected file are kept", async () => {
  writeFileSync(join(root, "tsconfig.json"), "changed\n");
  const before = state();
  const losing = [
    "git checkout .",
    "git checkout -- tsconfig.json",
    "git checkout -f",
    "git checkout --conflict=merge .",
    "git checkout --conflict merge .",
    "git checkout -q -m .",
    "git stash -m pop",
    "git stash push -m drop",
    "git restore .",
    "git reset -q --hard",
    "git stash",
    "git stash push -q",
  ];
  for (const command of slice(losing, 2)) expect(await run(command), command).toContain("protected");
  expect(state()).toBe(before);
  git("stash", "-q");
  const bringing = ["git stash pop", "git stash apply", "git stash apply stash@{0}", "git stash branch b"];
  for (const command of slice(bringing, 2)) expect(await run(command), command).toContain("protected");
  git("stash", "drop", "-q");
});

test("a Git command that changes no protected file runs", async () => {
  for (const command of [
    "git checkout -q good",
    "git switch -q main",
    "git merge -q -m Message good",
    "git reset -q --hard HEAD~1",
    "git cherry-pick good",
    "git revert --no-edit HEAD",
    "git checkout -q -b new",
    "git checkout good -- good.txt",
    "git reset -q --hard",
    "git rebase good",
    "git switch -q -c other",
  ])
    expect(await run(command), command).toMatchObject({ exit_code: 0 });
});

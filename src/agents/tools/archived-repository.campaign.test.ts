import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import type { ExecResult } from "../../sandboxes/contract.ts";
import { local } from "../../sandboxes/local/local-sandbox.ts";
import { testFolder } from "../../testing/test-folder.ts";
import { runCommand } from "./run-command.ts";

const base = testFolder(afterAll);
let count = 0;

/** A repository with a merge of conflicting changes, as an archive can contain it. */
function openRepository() {
  count += 1;
  const root = join(base, `ws-${count}`);
  const mark = join(base, `ran-${count}`);
  mkdirSync(root);
  const git = (...args: readonly string[]): string =>
    execFileSync("git", ["-c", "user.name=a", "-c", "user.email=a@b.c", ...args], {
      cwd: root,
      encoding: "utf8",
    }).trim();
  const commit = (content: string): void => {
    writeFileSync(join(root, "a.txt"), content);
    git("add", "a.txt");
    git("commit", "--quiet", "--message=x");
  };
  git("init", "--quiet", "--initial-branch=main");
  commit("one\n");
  git("checkout", "--quiet", "-b", "topic");
  commit("two\n");
  git("checkout", "--quiet", "main");
  commit("three\n");
  git("merge", "--quiet", "--strategy=ours", "--message=merge", "topic");
  const run = async (command: string): Promise<ExecResult> => {
    const sandbox = await local({ root, isolation: "off" }).open({
      agent: "tester",
      instance_id: "1",
      session: "default",
    });
    try {
      return await runCommand({
        command,
        sandbox,
        policy: { allowShell: true, allowWrite: true },
        env: {},
        signal: AbortSignal.timeout(20_000),
        emit: () => undefined,
        timeoutMs: 10_000,
      });
    } finally {
      await sandbox.close();
    }
  };
  return { root, mark, git, run };
}

test("Git does not merge again to show a merge, with the merge drivers of the repository", async () => {
  const { root, mark, git, run } = openRepository();
  git("config", "merge.z.driver", `touch '${mark}'`);
  git("config", "log.diffMerges", "remerge");
  writeFileSync(join(root, ".git/info/attributes"), "* merge=z\n");
  for (const line of ["git log -m -p -1", "git show -m HEAD", "git log -p --diff-merges=on -1"]) {
    expect((await run(line)).exit_code, line).toBe(0);
    expect(existsSync(mark), line).toBe(false);
  }
  for (const value of ["remerge", "r"])
    await expect(run(`git log -p --diff-merges=${value} -1`)).rejects.toThrow("--diff-merges");
  git("log", "-m", "-p", "-1");
  expect(existsSync(mark)).toBe(true);
});

test("Git does not go on with an operation of the repository whose steps run programs", async () => {
  const { root, mark, git, run } = openRepository();
  const state = (folder: string, files: Readonly<Record<string, string>>): void => {
    mkdirSync(join(root, ".git", folder));
    for (const [name, content] of Object.entries(files))
      writeFileSync(join(root, ".git", folder, name), content);
  };
  const steps = {
    onto: `${git("rev-parse", "topic")}\n`,
    "orig-head": `${git("rev-parse", "main")}\n`,
    "head-name": "refs/heads/main\n",
    msgnum: "1\n",
    end: "1\n",
    interactive: "",
    done: "",
  };
  state("rebase-merge", { ...steps, "git-rebase-todo": `exec touch '${mark}'\n` });
  git("checkout", "--quiet", "--detach");
  for (const line of ["git rebase --continue", "git rebase --skip"])
    await expect(run(line), line).rejects.toThrow("rebase-merge/git-rebase-todo");
  expect(existsSync(mark)).toBe(false);
  writeFileSync(join(root, ".git/rebase-merge/git-rebase-todo"), "noop\n");
  expect((await run("git rebase --continue")).exit_code).toBe(0);
  state("sequencer", { opts: `[options]\n\tstrategy = x/../../../run.sh\n` });
  await expect(run("git cherry-pick --continue")).rejects.toThrow("sequencer/opts");
});

test("Git goes on with an operation that has stopped at a conflict", async () => {
  for (const option of ["--merge", "--apply"]) {
    const { root, git, run } = openRepository();
    git("reset", "--quiet", "--hard", "HEAD~1");
    expect((await run(`git rebase ${option} topic`)).exit_code, option).toBe(1);
    writeFileSync(join(root, "a.txt"), "both\n");
    git("add", "a.txt");
    expect(await run("git rebase --continue"), option).toMatchObject({ exit_code: 0 });
    expect(git("show", "main:a.txt"), option).toBe("both");
  }
});

import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { KitError } from "../../base/kit-error.ts";
import type { ExecResult, Sandbox } from "../../sandboxes/contract.ts";
import { local } from "../../sandboxes/local/local-sandbox.ts";
import type { AgentPolicy } from "../define/agent-profile.ts";
import { runCommand } from "./run-command.ts";

/** A workspace whose repository configures a program wherever Git allows it, next to a file that must not change. */
export interface HostileRepository {
  readonly base: string;
  readonly root: string;
  readonly sandbox: Sandbox;
  git(...args: readonly string[]): void;
  /** The content of every file outside `.git` as one text, which a reading command must not change. */
  contents(): string;
  /** Runs a command; returns its result, or the reason for its refusal. */
  run(command: string, policy: AgentPolicy, cwd?: string): Promise<ExecResult | string>;
  close(): Promise<void>;
}

export async function openHostileRepository(): Promise<HostileRepository> {
  const base = realpathSync(mkdtempSync(join(tmpdir(), "kit-forms-")));
  const root = join(base, "workspace");
  const git = (...args: readonly string[]): void => {
    execFileSync("git", [...args], {
      cwd: root,
      env: {
        PATH: process.env.PATH,
        HOME: base,
        GIT_CONFIG_NOSYSTEM: "1",
        GIT_AUTHOR_NAME: "Ann",
        GIT_AUTHOR_EMAIL: "ann@example.org",
        GIT_COMMITTER_NAME: "Ann",
        GIT_COMMITTER_EMAIL: "ann@example.org",
      },
    });
  };
  mkdirSync(join(root, "sub"), { recursive: true });
  writeFileSync(join(base, "outside.txt"), "outside\n");
  const files = {
    "a.txt": "alpha\nbeta\n",
    "b.txt": "beta\nalpha\n",
    "a.json": '{"a":1}\n',
    "sub/c.txt": "gamma\n",
    "evil.sed": "1e touch PWNED\n",
    "evil.jq": "env\n",
    options: "-T\nx\n",
    sums: "d41d8cd98f00b204e9800998ecf8427e  /etc/passwd\n",
  };
  for (const [name, content] of Object.entries(files)) writeFileSync(join(root, name), content);
  symlinkSync("../outside.txt", join(root, "leads-out.txt"));
  symlinkSync("..", join(root, "sub/up"));
  writeFileSync(join(root, "evil.sh"), "#!/bin/sh\ntouch PWNED\n", { mode: 0o755 });
  git("init", "-q", "-b", "main");
  git("add", "a.txt", "b.txt", "sub");
  git("commit", "-qm", "One");
  writeFileSync(join(root, "a.txt"), "alpha\nchanged\n");
  git("commit", "-qam", "Two");
  git("branch", "topic", "HEAD~1");
  writeFileSync(join(root, "a.txt"), "alpha\nin work\n");
  writeFileSync(join(root, ".gitattributes"), "*.txt diff=x filter=y merge=z\n");
  const runs = `touch '${root}/PWNED'; cat`;
  const settings = {
    "alias.status": `!${runs}`,
    "alias.zz": `!${runs}`,
    "core.fsmonitor": runs,
    "core.hooksPath": "hooks",
    "core.pager": runs,
    "core.editor": runs,
    "core.sshCommand": runs,
    "core.gitProxy": `${root}/evil.sh`,
    "core.askPass": `${root}/evil.sh`,
    "core.attributesFile": `${root}/.gitattributes`,
    "core.alternateRefsCommand": runs,
    "credential.helper": `!${runs}`,
    "diff.external": runs,
    "diff.x.textconv": runs,
    "diff.submodule": "log",
    "filter.y.clean": runs,
    "filter.y.smudge": runs,
    "filter.y.required": "true",
    "format.pretty": "format:%h %G? %s",
    "gpg.program": `${root}/evil.sh`,
    "commit.gpgSign": "true",
    "log.showSignature": "true",
    "interactive.diffFilter": runs,
    "pager.log": runs,
    "pager.status": runs,
    "sequence.editor": runs,
    "status.submoduleSummary": "true",
    "tar.x.command": runs,
    "uploadpack.packObjectsHook": `${root}/evil.sh`,
    "remote.origin.url": `ext::${root}/evil.sh`,
  };
  for (const [key, value] of Object.entries(settings)) git("config", key, value);
  mkdirSync(join(root, "hooks"));
  for (const hook of "post-index-change pre-commit commit-msg prepare-commit-msg post-commit post-checkout post-merge pre-rebase post-rewrite reference-transaction pre-merge-commit pre-push applypatch-msg".split(
    " ",
  ))
    writeFileSync(join(root, "hooks", hook), `#!/bin/sh\ntouch '${root}/PWNED'\n`, { mode: 0o755 });
  const sandbox = await local({ root, isolation: "off" }).open({
    agent: "tester",
    instance_id: "1",
    session: "default",
  });
  return {
    base,
    root,
    sandbox,
    git,
    contents: () => hashOf(base),
    run: (command, policy, cwd) =>
      runCommand({
        command,
        sandbox,
        policy,
        env: {},
        signal: AbortSignal.timeout(20_000),
        emit: () => undefined,
        timeoutMs: 5_000,
        ...(cwd === undefined ? {} : { cwd }),
      }).catch((error: unknown) => {
        if (error instanceof KitError && error.code === "forbidden") return error.message;
        throw error;
      }),
    async close() {
      await sandbox.close();
      rmSync(base, { recursive: true, force: true });
    },
  };
}

function hashOf(base: string): string {
  const hash = createHash("sha256");
  const walk = (folder: string): void => {
    for (const entry of readdirSync(folder, { withFileTypes: true })) {
      if (entry.name === ".git") continue;
      const path = join(folder, entry.name);
      hash.update(`${path}\0`);
      if (entry.isDirectory()) walk(path);
      else if (entry.isFile()) hash.update(readFileSync(path));
    }
  };
  walk(base);
  return hash.digest("hex");
}

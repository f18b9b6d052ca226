import { execFileSync } from "node:child_process";
import { chmod, mkdir, mkdtemp, readdir, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  argvOf,
  commandOf,
  namedToday,
  readShellCases,
  type ShellCase,
  type ShellFixture,
} from "../../../tests/security/shell-cases.ts";
import { KitError } from "../../base/kit-error.ts";
import type { ExecRequest, ExecResult, Sandbox } from "../../sandboxes/contract.ts";
import { workspaceName } from "../../sandboxes/host/workspace-name.ts";
import { local } from "../../sandboxes/local/local-sandbox.ts";
import { virtual } from "../../sandboxes/virtual/virtual-sandbox.ts";
import type { AgentPolicy } from "../define/agent-profile.ts";
import { runCommand } from "./run-command.ts";

const { head, cases } = readShellCases();
const owner = { agent: "tester", instance_id: "1", session: "default" };

/** Both sandboxes have the same files, each in its own workspace. */
const subjects: readonly {
  readonly name: string;
  readonly folder: string;
  open(base: string): Promise<Sandbox>;
}[] = [
  {
    name: "local",
    folder: "workspace",
    open: (base) => local({ root: join(base, "workspace") }).open(owner),
  },
  { name: "virtual", folder: workspaceName(owner), open: (base) => virtual({ folder: base }).open(owner) },
];

describe.each(subjects)(
  "the command lines of tests/security/shell.json in a $name workspace",
  ({ folder, open }) => {
    let base = "";
    let sandbox: Sandbox | undefined;
    beforeAll(async () => {
      base = await realpath(await mkdtemp(join(tmpdir(), "kit-commands-")));
      await layOut(join(base, folder), head.fixture);
      sandbox = await open(base);
    });
    afterAll(async () => {
      await sandbox?.close();
      await rm(base, { recursive: true, force: true });
    });

    test.each(cases.map((item) => [item.id, item.why, item] as const))("%s: %s", async (_id, _why, item) => {
      if (sandbox === undefined) throw new Error("There is no sandbox.");
      const ran: ExecRequest["command"][] = [];
      const argv = argvOf(item);
      const outcome = await run(recording(sandbox, ran), item);
      if (item.expected !== "allow_or_deny") expect(outcome).toBe(item.expected);
      if (outcome === "deny") expect(ran).toEqual([]);
      else if (argv !== undefined) expect(ran).toEqual(argv);
      // No case should create one of these files, whether it is allowed or not.
      const found = await readdir(base, { recursive: true });
      expect(found.filter((path) => path.includes("PWNED"))).toEqual([]);
    });
  },
);

async function run(sandbox: Sandbox, item: ShellCase): Promise<"allow" | "deny"> {
  const { allow_shell, allowed_commands, allow_compound_commands } = item.policy;
  const policy: AgentPolicy = {
    allowedCommands: allowed_commands ?? [],
    ...(allow_shell === undefined ? {} : { allowShell: allow_shell }),
    ...(allow_compound_commands === undefined ? {} : { allowCompoundCommands: allow_compound_commands }),
    ...namedToday[item.id],
  };
  try {
    await runCommand({
      command: commandOf(item),
      sandbox,
      policy,
      env: {},
      signal: AbortSignal.timeout(100_000),
      emit: () => undefined,
    });
    return "allow";
  } catch (error) {
    if (error instanceof KitError && error.code === "forbidden") return "deny";
    throw error;
  }
}

/** The same sandbox, with a record of the commands that it runs. */
function recording(sandbox: Sandbox, ran: ExecRequest["command"][]): Sandbox {
  const exec = (request: ExecRequest): Promise<ExecResult> => {
    // Skip the Git commands that kit itself runs to prepare a command, and its options against files of secrets.
    const words = typeof request.command === "string" ? [request.command] : request.command;
    if (!words.some((word) => /^(config|diff-index|ls-files)$/.test(word)))
      ran.push(words.filter((word) => !word.startsWith("--glob=!.[eE]")));
    return sandbox.exec(request);
  };
  return { ...sandbox, exec };
}

async function layOut(workspace: string, fixture: ShellFixture): Promise<void> {
  const place = async (path: string, content: string, mode: number): Promise<void> => {
    const target = join(workspace, path);
    await mkdir(dirname(target), { recursive: true });
    await writeFile(target, content);
    await chmod(target, mode);
  };
  for (const [path, content] of Object.entries(fixture.files)) await place(path, content, 0o644);
  const git = (...args: readonly string[]): void => {
    const client = ["-c", "user.name=Ann", "-c", "user.email=ann@example.org"];
    execFileSync("git", [...client, ...args], {
      cwd: workspace,
      env: { PATH: process.env.PATH, HOME: dirname(workspace) },
    });
  };
  git("init", "--quiet");
  git("add", "a.txt", "README.md");
  git("commit", "--quiet", "--message", "One");
  for (const [path, content] of Object.entries({ ...fixture.executables, ...fixture.outside })) {
    await place(path, content, 0o755);
  }
}

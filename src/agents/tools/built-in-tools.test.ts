import { existsSync } from "node:fs";
import { chmod, mkdir, readFile, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import type { KitEvent } from "../../protocol/event.ts";
import type { SandboxFactory } from "../../sandboxes/contract.ts";
import { workspaceName } from "../../sandboxes/host/workspace-name.ts";
import { local } from "../../sandboxes/local/local-sandbox.ts";
import { virtual } from "../../sandboxes/virtual/virtual-sandbox.ts";
import { createScriptedModel, type ScriptedModel } from "../../testing/scripted-model.ts";
import { testFolder } from "../../testing/test-folder.ts";
import { createTestAgent } from "../../testing/test-runtime.ts";
import type { AgentProfile } from "../define/agent-profile.ts";
import type { Agent } from "../harness.ts";

let base = "";
let workspace = "";
beforeEach(() => {
  base = testFolder(onTestFinished);
});

const owner = { agent: "tester", instance_id: "1", session: "default" };

const sandboxes: readonly { readonly name: string; readonly create: () => SandboxFactory }[] = [
  { name: "local", create: () => local({ root: workspace }) },
  { name: "virtual", create: () => virtual({ folder: base }) },
];

interface Call {
  readonly name: string;
  readonly input: unknown;
}

interface Outcome {
  readonly text: string;
  readonly isError: boolean;
}

interface Run {
  readonly agent: Agent;
  readonly model: ScriptedModel;
  readonly events: readonly KitEvent[];
  /** Makes the calls in one turn and returns their results. */
  call(calls: readonly Call[], secrets?: readonly string[]): Promise<readonly Outcome[]>;
}

function start(sandbox: SandboxFactory, profile: AgentProfile): Run {
  let expected: readonly Call[] = [];
  const model = createScriptedModel((_call, index) =>
    index % 2 === 0
      ? { toolCalls: expected.map((call, position) => ({ ...call, id: `c${index}_${position}` })) }
      : { text: "Done." },
  );
  const events: KitEvent[] = [];
  const env = { TOKEN: "s3cret-t0ken-value", OTHER: "another-value" };
  const agent = createTestAgent(
    model,
    { ...profile, onEvent: (event) => events.push(event) },
    { sandbox, env },
  );
  return {
    agent,
    model,
    events,
    async call(calls, secrets = []) {
      expected = calls;
      const { messages } = await agent.session().prompt("go", { secrets });
      return messages.flatMap((message) =>
        message.role !== "tool"
          ? []
          : message.content.map((result) => ({
              text: result.content.map((part) => (part.type === "text" ? part.text : "")).join(""),
              isError: result.is_error,
            })),
      );
    },
  };
}

const toolNames = (run: Run): readonly string[] => (run.model.calls[0]?.tools ?? []).map(({ name }) => name);

describe.each(sandboxes)("the built-in tools in a $name sandbox", ({ create }) => {
  beforeEach(async () => {
    workspace = join(base, workspaceName(owner));
    await mkdir(workspace);
  });

  test("the tools write, read, edit, inspect and remove files", async () => {
    const run = start(create(), { allowWrite: true });
    const outcomes = await run.call([
      { name: "write", input: { path: "src/a.ts", content: "one\ntwo\nthree\n" } },
      { name: "mkdir", input: { path: "empty" } },
      { name: "read", input: { path: "src/a.ts" } },
      { name: "read", input: { path: "src/a.ts", offset: 2, limit: 1 } },
      { name: "edit", input: { path: "src/a.ts", old: "two", new: "2" } },
      { name: "stat", input: { path: "src/a.ts" } },
      { name: "exists", input: { path: "src/b.ts" } },
      { name: "read", input: { path: "." } },
      { name: "rm", input: { path: "empty", recursive: true } },
      { name: "exists", input: { path: "empty" } },
      { name: "write", input: { path: "src/c.ts", content: "one\ntwo" } },
      { name: "write", input: { path: "src/c.ts", content: "1\n" } },
      { name: "write", input: { path: "src/c.ts", content: "" } },
    ]);
    expect(outcomes.map(({ text }) => text)).toEqual([
      "Wrote 14 characters to src/a.ts.",
      "Created empty.",
      "1\tone\n2\ttwo\n3\tthree",
      expect.stringMatching(/^2\ttwo\n\[… lines 3 to 3 not shown/),
      "Replaced 1 place in src/a.ts.",
      expect.stringContaining('"kind":"file","size":12'),
      "false",
      "empty/\nsrc/",
      "Removed empty.",
      "false",
      "Wrote 7 characters to src/c.ts.",
      "Wrote 2 characters to src/c.ts, replacing 2 lines.",
      "Wrote 0 characters to src/c.ts, replacing 1 line.",
    ]);
    expect(outcomes.every(({ isError }) => !isError)).toBe(true);
    expect(await readFile(join(workspace, "src/a.ts"), "utf8")).toBe("one\n2\nthree\n");
  });

  test("the tools find files by pattern and by name", async () => {
    await writeFile(join(workspace, "a.ts"), "export const a = 1;\n");
    await writeFile(join(workspace, "b.md"), "# export\n");
    const [grep, filtered, glob, none, invalid] = await start(create(), {}).call([
      { name: "grep", input: { pattern: "^export|^# EXPORT", ignore_case: true } },
      { name: "grep", input: { pattern: "export", glob: "*.md", path: "." } },
      { name: "glob", input: { pattern: "**/*.{ts,md}" } },
      { name: "grep", input: { pattern: "nothing here" } },
      { name: "grep", input: { pattern: "(" } },
    ]);
    expect(grep?.text).toBe("a.ts:1:export const a = 1;\nb.md:1:# export");
    expect(filtered?.text).toBe("b.md:1:# export");
    expect(glob?.text).toBe("a.ts\nb.md");
    expect(none?.text).toBe("No line matches.");
    expect(invalid).toMatchObject({ isError: true, text: expect.stringContaining("not valid") });
  });

  test("a failure is a result that names the fault, with workspace paths", async () => {
    await writeFile(join(workspace, "a.bin"), new Uint8Array([1, 0, 2]));
    const outcomes = await start(create(), { allowWrite: true }).call([
      { name: "read", input: { path: "none.txt" } },
      { name: "read", input: { path: "../x" } },
      { name: "read", input: { path: `${base}/x` } },
      { name: "edit", input: { path: "a.bin", old: "q", new: "r" } },
      { name: "rm", input: { path: "." } },
      { name: "read", input: { path: "a.bin" } },
    ]);
    expect(outcomes.map(({ isError }) => isError)).toEqual([true, true, true, true, true, false]);
    expect(outcomes[0]?.text).toBe("none.txt does not exist.");
    expect(outcomes[5]?.text).toBe("A binary file of 3 bytes.");
    for (const { text } of outcomes) expect(text).not.toContain(base);
  });

  test("without allowWrite and allowShell only the tools that read are offered", async () => {
    const run = start(create(), {});
    const outcomes = await run.call([
      { name: "write", input: { path: "a.txt", content: "x" } },
      { name: "bash", input: { command: "touch b.txt" } },
    ]);
    expect([...toolNames(run)].sort()).toEqual(["exists", "glob", "grep", "read", "stat", "task"]);
    expect(outcomes.map(({ isError }) => isError)).toEqual([true, true]);
    expect(existsSync(join(workspace, "a.txt")) || existsSync(join(workspace, "b.txt"))).toBe(false);
  });

  test("protected paths are not changed, also through links", async () => {
    for (const folder of [".git/hooks", ".kit", "src/agents", "sub"]) {
      await mkdir(join(workspace, folder), { recursive: true });
    }
    await symlink(".git/hooks", join(workspace, "hooks"));
    await symlink(".", join(workspace, "sub/here"));
    await symlink("../.kit", join(workspace, "sub/state"));
    await symlink("kit.config.ts", join(workspace, "innocent.txt"));
    await symlink("..", join(workspace, "sub/up"));
    const paths = [
      ".git/hooks/pre-commit",
      "hooks/pre-commit",
      "sub/state/sessions.db",
      "sub/up/.kit/x",
      "sub/here/up/.GIT/config",
      "sub/../.kit/x",
      "innocent.txt",
      "kit.toml",
      "src/agents/evil.ts",
      ".agents/skills/x.md",
      `${workspace}/.kit/x`,
    ];
    const run = start(create(), { allowWrite: true });
    const outcomes = await run.call([
      ...paths.map((path) => ({ name: "write", input: { path, content: "x" } })),
      { name: "edit", input: { path: "hooks/x", old: "a", new: "b" } },
      { name: "mkdir", input: { path: "sub/up/.kit/below" } },
      { name: "rm", input: { path: "src", recursive: true } },
      { name: "rm", input: { path: "sub/up/.kit", recursive: true } },
    ]);
    for (const { text, isError } of outcomes) {
      expect(text).toContain("protected");
      expect(isError).toBe(true);
    }
    expect(existsSync(join(workspace, "kit.config.ts"))).toBe(false);
    const granted = start(create(), { allowWrite: true, allowProtectedPaths: [".git/hooks"] });
    const [written, refused] = await granted.call([
      { name: "write", input: { path: "hooks/pre-commit", content: "x" } },
      { name: "write", input: { path: ".git/config", content: "x" } },
    ]);
    expect([written?.isError, refused?.isError]).toEqual([false, true]);
    // The link itself is not a protected path.
    expect((await run.call([{ name: "rm", input: { path: "sub/state" } }]))[0]?.isError).toBe(false);
    expect(existsSync(join(workspace, ".kit"))).toBe(true);
  });

  test("the agents of another project in the workspace are protected, too", async () => {
    const run = start(create(), { allowWrite: true });
    const outcomes = await run.call(
      [
        "packages/api/kit.toml",
        "packages/api/.kit/x",
        "packages/api/.agents/roles/x.md",
        "sub/.git/config",
      ].map((path) => ({ name: "write", input: { path, content: "x" } })),
    );
    expect(outcomes.map(({ isError }) => isError)).toEqual([true, true, true, true]);
  });

  test("a command runs under the policy, and the model sees its failure", async () => {
    await writeFile(join(workspace, "a.txt"), "alpha\n");
    const run = start(create(), { allowShell: true, allowedCommands: ["cat", "ls", "false", "grep"] });
    const outcomes = await run.call([
      { name: "bash", input: { command: "cat a.txt" } },
      { name: "bash", input: { command: "cat a.txt; ls" } },
      { name: "bash", input: { command: "touch PWNED" } },
      { name: "bash", input: { command: "false" } },
      { name: "bash", input: { command: "cat none.txt" } },
      { name: "bash", input: { command: "ls", cwd: ".." } },
    ]);
    expect(outcomes[0]).toEqual({ text: "alpha", isError: false });
    expect(outcomes[1]).toMatchObject({
      isError: true,
      text: expect.stringContaining("more than one command"),
    });
    expect(outcomes[2]).toMatchObject({ isError: true, text: expect.stringContaining("not on the list") });
    expect(outcomes[3]).toEqual({ text: "Exit code 1.", isError: true });
    expect(outcomes[4]?.text).toMatch(/none\.txt.*\nExit code 1\.$/);
    expect(outcomes[5]).toMatchObject({ isError: true, text: expect.stringContaining("leads out") });
    expect(existsSync(join(workspace, "PWNED"))).toBe(false);
    expect(run.events.filter(({ type }) => type === "command_start").length).toBe(3);
  });

  test("allowed commands are joined and piped without a shell", async () => {
    await writeFile(join(workspace, "a.txt"), "alpha\nbeta\n");
    const run = start(create(), {
      allowShell: true,
      allowCompoundCommands: true,
      allowedCommands: ["cat", "grep", "echo", "false"],
    });
    const texts = async (command: string): Promise<Outcome | undefined> =>
      (await run.call([{ name: "bash", input: { command } }]))[0];
    expect((await texts("cat a.txt | grep beta && echo found"))?.text).toBe("beta\nfound");
    expect((await texts("false && echo no || echo yes; echo end"))?.text).toBe("yes\nend");
    expect((await texts("echo '$HOME' '`id`' | cat"))?.text).toBe("$HOME `id`");
    expect(await texts("cat a.txt | tee PWNED")).toMatchObject({ isError: true });
  });

  test("a long output is cut in the middle and marked", async () => {
    await writeFile(join(workspace, "big.txt"), `first\n${"x".repeat(99)}\n`.repeat(2_000).concat("last\n"));
    const run = start(create(), { allowShell: true });
    const [cut, dropped] = await run.call([
      { name: "bash", input: { command: "cat big.txt" } },
      { name: "bash", input: { command: "seq 1 400000" } },
    ]);
    expect(cut?.text.length).toBeLessThan(51_000);
    expect(cut?.text).toMatch(/^first\n.*characters cut …\].*last$/s);
    expect(dropped?.text).toMatch(/^1\n2\n.*characters cut …\].*\n400000$/s);
  });

  test("a command is stopped at its time limit", async () => {
    const run = start(create(), { allowShell: true });
    const [outcome] = await run.call([
      { name: "bash", input: { command: "sleep 3600", timeout_seconds: 1 } },
    ]);
    expect(outcome).toMatchObject({ isError: true, text: expect.stringContaining("time limit") });
  });

  test("aborting a session ends its command, and the next prompt works", async () => {
    const run = start(create(), { allowShell: true });
    const session = run.agent.session();
    const stop = run.agent.onEvent((event) => {
      if (event.type === "command_start") setTimeout(() => void session.abort(), 100);
    });
    await expect(run.call([{ name: "bash", input: { command: "sleep 3600" } }])).rejects.toMatchObject({
      code: "aborted",
    });
    stop();
    await run.agent
      .session()
      .prompt("again")
      .catch(() => undefined);
    expect((await session.history()).at(-1)?.role).toBe("assistant");
  });

  test("a secret is available only to the call that requested it, and masked wherever it appears", async () => {
    const run = start(create(), { allowShell: true });
    const command = "printenv TOKEN OTHER";
    const [granted] = await run.call([{ name: "bash", input: { command } }], ["TOKEN"]);
    expect(granted?.text).toBe("[secret]\nExit code 1.");
    const [after] = await run.call([{ name: "bash", input: { command } }]);
    expect(after).toEqual({ text: "Exit code 1.", isError: true });
    const output = await run.agent.session().shell("printenv TOKEN", { secrets: ["TOKEN"] });
    expect(output.stdout).toBe("[secret]\n");
    expect(JSON.stringify([run.events, await run.agent.session().history(), run.model.calls])).not.toContain(
      "s3cret-t0ken-value",
    );
  });

  test("no part of a secret remains where an output is cut", async () => {
    // The result keeps the first 35,000 characters of a long output: the secret begins 9 before that.
    const command = `printf '%034991d' 0; printf '%s' "$TOKEN"; printf '%090000d' 0`;
    const trusted = start(create(), { allowShell: true, allowCompoundCommands: true });
    const [outcome] = await trusted.call([{ name: "bash", input: { command } }], ["TOKEN"]);
    expect(outcome?.text).toContain("characters cut");
    expect(outcome?.text).not.toContain("s3cret");
  });

  test("the caller's direct use of the sandbox needs no policy and is not logged", async () => {
    const run = start(create(), {});
    const session = run.agent.session();
    const files = await session.fs();
    await files.writeFile(".agents/notes.txt", "mine");
    await files.upload("data.bin", new Uint8Array([1, 2]));
    expect(await files.readFile(".agents/notes.txt")).toBe("mine");
    expect((await files.exec({ command: ["cat", ".agents/notes.txt"] })).stdout).toBe("mine");
    expect(await session.history()).toEqual([]);
    expect(run.events).toEqual([]);
    await run.call([{ name: "read", input: { path: "data.bin" } }]);
    expect((await session.history()).map(({ role }) => role)).toEqual([
      "user",
      "assistant",
      "tool",
      "assistant",
    ]);
  });

  test("paths and commands are relative to the working folder, in tasks too", async () => {
    await mkdir(join(workspace, "packages/api/deep"), { recursive: true });
    await writeFile(join(workspace, "packages/api/a.txt"), "api");
    await writeFile(join(workspace, "packages/api/deep/b.txt"), "deep");
    const model = createScriptedModel([
      {
        toolCalls: [
          { name: "read", input: { path: "a.txt" } },
          { name: "task", id: "t", input: { prompt: "look", cwd: "deep" } },
        ],
      },
      { toolCalls: [{ name: "bash", input: { command: "cat b.txt" } }] },
      { text: "It says deep." },
      { text: "Done." },
    ]);
    const agent = createTestAgent(model, { cwd: "packages/api", allowShell: true }, { sandbox: create() });
    const { messages } = await agent.session().prompt("go");
    expect(JSON.stringify(messages)).toContain("1\\tapi");
    expect(JSON.stringify(model.calls.at(-2)?.prompt)).toContain("deep");
  });

  test("a program of the workspace runs only by its path", async () => {
    await writeFile(join(workspace, "git"), "#!/bin/sh\necho evil\n");
    await chmod(join(workspace, "git"), 0o755);
    const run = start(create(), { allowShell: true, allowedCommands: ["git", "./git"] });
    const [byName, byPath] = await run.call([
      { name: "bash", input: { command: "git --version" } },
      { name: "bash", input: { command: "./git" } },
    ]);
    expect(byName?.text).toMatch(/^git version/);
    expect(byPath?.text).toBe("evil");
  });
});

test("deleting a session deletes its workspace", async () => {
  const agent = createTestAgent(
    createScriptedModel([{ text: "a" }]),
    {},
    { sandbox: virtual({ folder: base }) },
  );
  const session = agent.session();
  await session.prompt("hi");
  await (await session.fs()).writeFile("a.txt", "private");
  await agent.sessions.delete("default");
  expect(existsSync(join(base, workspaceName(owner)))).toBe(false);
  expect(await (await agent.session().fs()).list()).toEqual([]);
});

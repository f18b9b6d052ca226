import { execFile, execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, expect, test } from "vitest";
import { createTemporaryRepository } from "../../testing/temporary-repository.ts";
import { kitCommandLine, runKit } from "../testing/run-kit.ts";

const project = await createTemporaryRepository({
  "kit.toml": "",
  "src/agents/desk.ts": "throw new Error('A shell runs no code of the project.');\n",
  "src/workflows/release.ts": "throw new Error('A shell runs no code of the project.');\n",
});
afterAll(() => project[Symbol.asyncDispose]());

async function complete(...words: readonly string[]): Promise<readonly string[]> {
  const { stdout, stderr, exitCode } = await runKit(["completion", "bash", "--", ...words], {
    cwd: project.root,
  });
  expect([stderr, exitCode]).toEqual(["", 0]);
  return stdout.split("\n").slice(0, -1);
}

test("commands, subcommands, options and the values of options complete", async () => {
  expect(await complete("sp")).toEqual(["specs"]);
  expect(await complete("specs", "li")).toEqual(["list"]);
  expect(await complete("specs", "list", "--fr")).toEqual(["--framework"]);
  expect(await complete("specs", "list", "-f", "k")).toEqual(["kiro"]);
  expect(await complete("guidelines", "sync", "--to", "cl")).toEqual(["claude", "cline"]);
  expect(await complete("runs", "list", "--status", "q")).toEqual(["queued"]);
  expect(await complete("add", "anth")).toEqual(["anthropic"]);
  expect(await complete("--json", "do")).toEqual(["doctor"]);
  expect(await complete("--cwd", "elsewhere", "do")).toEqual(["doctor"]);
  expect(await complete("doctor", "--js")).toEqual(["--json"]);
});

test("agents and workflows of the project complete by their names, and no code of it runs", async () => {
  expect(await complete("run", "")).toEqual(["release"]);
  expect(await complete("run", "--agent", "")).toEqual(["desk"]);
  expect(await complete("run", "--agent", "desk", "re")).toEqual(["release"]);
  expect(await complete("invoke", "")).toEqual(["desk", "release"]);
});

test("where a file or any text is meant, kit offers nothing and the shell completes files", async () => {
  expect(await complete("guidelines", "explain", "src")).toEqual([]);
  expect(await complete("specs", "list", "--path", "")).toEqual([]);
  expect(await complete("--cwd", "")).toEqual([]);
  expect(await complete("no-such-command", "")).toEqual([]);
});

const probes = {
  bash: `COMP_WORDS=(kit specs co); COMP_CWORD=2; _kit; printf '%s\\n' "\${COMPREPLY[@]}"`,
  fish: "complete -C 'kit specs co'",
} as const;

test.each(["bash", "fish"] as const)("%s completes a line with the script that kit prints", async (shell) => {
  try {
    execFileSync(shell, ["--version"], { stdio: "ignore" });
  } catch {
    return;
  }
  const [node = "", ...words] = kitCommandLine([]);
  const quoted = [node, ...words].map((word) => `'${word.replaceAll("'", `'\\''`)}'`).join(" ");
  writeFileSync(join(project.root, "kit"), `#!/bin/sh\nexec ${quoted} "$@"\n`, { mode: 0o755 });
  const { stdout: script } = await runKit(["completion", shell], { cwd: project.root });
  const { stdout } = await promisify(execFile)(shell, ["-c", `${script}\n${probes[shell]}`], {
    cwd: project.root,
    env: { ...process.env, PATH: `${project.root}:${process.env.PATH}`, HOME: project.root },
  });
  expect(stdout.split("\n")[0]?.split("\t")[0]).toBe("coverage");
});

test("an unknown shell is an error that names the known ones", async () => {
  const { exitCode, stderr } = await runKit(["completion", "csh"], { cwd: project.root });
  expect(exitCode).toBe(2);
  expect(stderr).toContain("bash, zsh and fish");
});

import { expect, test } from "vitest";
import { createServedProject, withoutKeys } from "../testing/agents-project.ts";
import { type RunResult, runKit } from "../testing/run-kit.ts";

const { project, server } = await createServedProject();

const local = ["--model", "local/m"] as const;
const run = (args: readonly string[]): Promise<RunResult> =>
  runKit(["run", ...args], { cwd: project.root, env: withoutKeys });
const call = (name: string, args: unknown) => ({
  toolCall: { id: "call_1", name, args: JSON.stringify(args) },
});

test("--allow-command allows only the named command", async () => {
  server.script([
    call("bash", { command: "ls kit.toml" }),
    call("bash", { command: "node --version" }),
    call("bash", { command: "cat kit.toml" }),
    { text: "Done." },
  ]);
  const lines = ["--allow-command", "ls", "--allow-command", "node --version"];
  const { stderr } = await run(["-p", "Run.", ...local, "-s", "line", ...lines, "--stream"]);
  // How long it took is said of a command that took long.
  expect(stderr.replace(/ \([\d.]+ s\)$/gm, "")).toContain("→ bash ls kit.toml\n  kit.toml\n");
  expect(stderr).toMatch(/→ bash node --version\n {2}v\d/);
  expect(stderr).toContain('✗ The command was not run: "cat" is not on the list');
  const { exitCode, stderr: refused } = await run(["-p", "Run.", ...local, "--allow-command", "npm"]);
  expect(exitCode).toBe(2);
  expect(refused).toContain('--allow-command: "npm" runs nothing');
});

import { afterAll, beforeAll, expect, test } from "vitest";
import type { GuidelineUsage } from "../../protocol/guideline-usage.ts";
import { createTemporaryRepository } from "../../testing/temporary-repository.ts";
import { withoutKeys } from "../testing/agents-project.ts";
import { type RunOptions, type RunResult, runKit } from "../testing/run-kit.ts";

const folder = await createTemporaryRepository({
  "package.json": '{"type": "module"}',
  "AGENTS.md":
    "# Shop\n\nBe brief.\n\n## Money\n\nAmounts are whole cents.\n\n## Tests\n\nBeside the file.\n",
  ".cursor/rules/a-rule-with-a-long-name-for-pages.mdc": "---\nglobs: web/**\n---\nOne heading per page.\n",
  "src/money.ts": "export const euro = 100;\n",
});
afterAll(() => folder[Symbol.asyncDispose]());
const kit = (args: readonly string[], options: Partial<RunOptions> = {}): Promise<RunResult> =>
  runKit(args, { cwd: folder.root, env: withoutKeys, ...options });

const question = "Which rules apply to src/money.ts?";
const noUsage = await kit(["guidelines", "usage"]);
beforeAll(async () => {
  await kit(["run", "--prompt", question, "--session", "with"]);
  await kit(["run", "--prompt", question, "--session", "free", "--omit-rule", "AGENTS.md#money"]);
});

test("the usage of rules fits into 80 columns, and lists the rules that no turn was shown", async () => {
  expect(noUsage).toMatchObject({
    exitCode: 0,
    stdout: "",
    stderr: expect.stringContaining("No turn since"),
  });
  const { stdout, exitCode } = await kit(["guidelines", "usage", "--since", "1d"], { columns: 80 });
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the colours of a terminal.
  const lines = stdout.replace(/\u001b\[[0-9;]*m/g, "").split("\n");
  expect([exitCode, Math.max(...lines.map((line) => line.trimEnd().length)) <= 80]).toEqual([0, true]);
  expect(lines.join("\n")).toMatch(/AGENTS\.md#tests +4 +\d+ +\d+\.\d%/);
  expect(lines.join("\n")).toMatch(/AGENTS\.md#money +2 /);
  expect(stdout).toContain("a-rule-with-a-long-name-for-pages.mdc");
});

test("with --json it prints the body of the route, and an agent without turns has no sums", async () => {
  const usage: GuidelineUsage = JSON.parse((await kit(["guidelines", "usage", "--json"])).stdout);
  expect(usage).toMatchObject({ sessions: 2, turns: 4 });
  const money = usage.rules.find(({ rule }) => rule === "AGENTS.md#money");
  expect(money).toMatchObject({ title: "Money", line: 5, turns: 2, sessions: 1, turns_left_out: 2 });
  const other = await kit(["guidelines", "usage", "--agent", "other", "--json"]);
  expect(JSON.parse(other.stdout)).toMatchObject({ sessions: 0, turns: 0 });
  expect(await kit(["guidelines", "usage", "--since", "soon"])).toMatchObject({ exitCode: 2 });
});

test("--omit-rule names the nearest rule for one that the project does not have", async () => {
  const refused = await kit(["run", "--prompt", question, "--omit-rule", "AGENTS.md#mony"]);
  expect([refused.exitCode, refused.stderr]).toEqual([
    2,
    expect.stringContaining("did you mean AGENTS.md#money?"),
  ]);
});

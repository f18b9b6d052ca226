import { beforeEach, expect, test } from "vitest";
import { createServedProject, withoutKeys } from "../testing/agents-project.ts";
import { type RunResult, runKit } from "../testing/run-kit.ts";

const { project, server } = await createServedProject();
beforeEach(() => server.script([]));

const local = ["--model", "local/m"] as const;

function run(args: readonly string[]): Promise<RunResult> {
  return runKit(["run", ...args], { cwd: project.root, env: withoutKeys });
}

test("a skill runs with its arguments", async () => {
  server.script([{ text: "It is about money." }]);
  const { stdout } = await run(["--skill", "explain", "--payload", '{"file": "src/money.ts"}', ...local]);
  expect(stdout).toBe("It is about money.\n");
  const prompt = JSON.stringify(server.requests[0]);
  expect(prompt).toContain("Explain the file to a colleague.");
  expect(prompt).toContain("src/money.ts");
});

test("a skill with an output schema prints the typed value, not the model's text", async () => {
  project.write(
    ".agents/skills/label.md",
    "---\noutput_schema: { type: object, properties: { label: { enum: [bug, idea] } }, required: [label] }\n---\nLabel it.\n",
  );
  const answer = { text: 'Here:\n```json\n{"label": "bug"}\n```' };
  server.script([{ text: "A problem." }, answer]);
  const { stdout } = await run(["--skill", "label", ...local]);
  expect(JSON.parse(stdout)).toEqual({ label: "bug" });
  server.script([answer]);
  const { result } = JSON.parse((await run(["--skill", "label", ...local, "--json"])).stdout);
  expect(result).toMatchObject({ text: answer.text, result: { label: "bug" } });
});

test("arguments that the skill does not accept are wrong usage", async () => {
  const { exitCode, stderr } = await run(["--skill", "explain", "--payload", '{"fiel": "x"}', ...local]);
  expect(exitCode).toBe(2);
  expect(stderr).toContain('The arguments do not match the input schema of the skill "explain"');
  expect(server.requests).toHaveLength(0);
});

import { afterAll, beforeAll, expect, test } from "vitest";
import { specRepository, tasksPath } from "../../app/spec-run/testing/spec-repository.ts";
import { campaignTest } from "../../testing/campaign.suite.ts";
import type { TemporaryRepository } from "../../testing/temporary-repository.ts";
import { type RunResult, runKit } from "../testing/run-kit.ts";

let repository: TemporaryRepository;
beforeAll(async () => {
  repository = await specRepository({}, ["honest"]);
});
afterAll(() => repository[Symbol.asyncDispose]());

const run = (...args: readonly string[]): Promise<RunResult> =>
  runKit(["run", ...args], { cwd: repository.root, env: { KIT_TRUST: "1" } });

test("a dry run lists the open tasks with their criteria, and changes nothing", async () => {
  const { exitCode, stdout, stderr } = await run("--spec", "cart", "--dry-run");
  expect([exitCode, stderr]).toEqual([
    0,
    expect.stringContaining("3 tasks, nothing was run. 1 without criteria: a person decides about each."),
  ]);
  expect(stdout.split("\n").map((line) => line.split("\t"))).toEqual([
    ["1.1", "Add up", "cart#1.1", `${tasksPath}:4`],
    ["1.2", "Discounts", "cart#1.2", `${tasksPath}:6`],
    ["2", "Tidy up", "", `${tasksPath}:8`],
    [""],
  ]);
  const json = await run("--spec", "cart", "--task", "3", "--dry-run", "--json");
  expect(JSON.parse(json.stdout)).toMatchObject({
    feature: "cart",
    tasks: [{ number: "3", title: "Measure" }],
  });
  expect(await repository.git("branch")).toBe("* main");
});

test("options that belong elsewhere, unknown features and unknown agents are named", async () => {
  for (const [args, message] of [
    [["--spec", "cart", "-p", "Hello"], "Give exactly one of: a workflow, --prompt, --skill, --spec."],
    [["-p", "Hello", "--task", "3"], "--task works with --spec only."],
    [["--spec", "cart", "--session", "a"], "--session does not work with --spec"],
    [["--spec", "cart", "--max-cost", "much"], '--max-cost takes US dollars, not "much".'],
    [["--spec", "basket", "--dry-run"], 'No feature "basket" has tasks'],
    [["--spec", "cart", "--task", "1", "--dry-run"], "is done when its subtasks are: name these."],
    [["--spec", "cart", "--agent", "missing"], 'There is no agent named "missing"'],
  ] as const) {
    const { exitCode, stderr } = await run(...args);
    expect([args, exitCode, stderr]).toEqual([args, expect.any(Number), expect.stringContaining(message)]);
    expect(exitCode).not.toBe(0);
  }
});

campaignTest(
  "a task that waits is answered from another terminal, and the same command goes on",
  async () => {
    const first = await run("--spec", "cart", "--agent", "honest", "--task", "1.1,2");
    expect([first.exitCode, first.stdout]).toEqual([
      3,
      expect.stringMatching(/^closed {3}1\.1 {2}Add up {2}\([0-9a-f]{10}\)\nwaiting {2}2 {2}Tidy up\n$/),
    ]);
    const [, runId = "", signal = ""] =
      /kit runs signal (run_\w+) '([^']+)' --payload/.exec(first.stderr) ?? [];
    expect(first.stderr).toContain("no-criteria");
    const answered = await runKit(["runs", "signal", runId, signal, "--payload", '{"approved": true}'], {
      cwd: repository.root,
    });
    expect(answered.stderr).toBe("Accepted.\n");
    const second = await run("--spec", "cart", "--agent", "honest", "--task", "1.1,2");
    expect([second.exitCode, second.stderr]).toEqual([
      0,
      expect.stringContaining(`Goes on with the run ${runId}`),
    ]);
    expect(second.stdout).toMatch(/\nclosed {3}2 {2}Tidy up {2}\([0-9a-f]{10}\)\n$/);
    expect(second.stderr).toContain("The commits are on kit/cart: git merge kit/cart");
    const json = await run("--spec", "cart", "--agent", "honest", "--json");
    expect(JSON.parse(json.stdout)).toMatchObject({ tasks: [{ task: "1.2", state: "closed" }] });
    await repository.git("merge", "--quiet", "--ff-only", "kit/cart");
  },
  240_000,
);

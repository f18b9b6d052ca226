import { existsSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { openProject } from "../../project/open-project.ts";
import type { KitEvent } from "../../protocol/event.ts";
import {
  decisionSignal,
  type SpecRunBody,
  type SpecRunResult,
  type SpecTaskProgress,
} from "../../protocol/spec-run.ts";
import { InMemorySessionStore } from "../../stores/memory/memory-store.ts";
import { campaignTest, longTest } from "../../testing/campaign.suite.ts";
import type { TemporaryRepository } from "../../testing/temporary-repository.ts";
import { loadConfig } from "../config/load-config.ts";
import { openProjectService } from "../service/open-project-service.ts";
import type { ProjectService } from "../service/service.ts";
import { type CoderMode, coder } from "./testing/coder.ts";
import { specRepository, tasks, tasksPath } from "./testing/spec-repository.ts";

const modes: readonly CoderMode[] = ["honest", "hurried", "empty", "idle", "ticking", "testing", "coding"];

interface Opened {
  readonly service: ProjectService;
  readonly states: string[];
  /** Runs to the end; `answer` decides about tasks that wait. */
  run(body: Partial<SpecRunBody>): Promise<SpecRunResult>;
}

interface OpenOptions {
  readonly answer?: (task: SpecTaskProgress) => { approved: boolean; comment?: string };
  readonly root?: string;
}

async function open(
  repository: TemporaryRepository,
  { answer, root = repository.root }: OpenOptions = {},
): Promise<Opened> {
  const loaded = await loadConfig({ cwd: root, environment: {} });
  const project = await openProject({ root, config: loaded.config, indexFile: ":memory:" });
  const states: string[] = [];
  const service = await openProjectService({
    ...{ project, loaded, isTerminal: true, store: new InMemorySessionStore() },
    modules: Object.fromEntries(
      modes.map((mode) => [`src/agents/${mode}.ts`, async () => ({ default: coder(mode) })]),
    ),
    observers: [
      (event: KitEvent) => {
        if (event.type !== "log") return;
        const task = (event.data as { spec_task?: SpecTaskProgress } | undefined)?.spec_task;
        if (task === undefined) return;
        states.push(`${task.task} ${task.state} ${task.attempt}`);
        const payload = task.state === "waiting" ? answer?.(task) : undefined;
        if (payload !== undefined)
          void service.engine.signal(event.run_id ?? "", {
            name: decisionSignal(task.task, task.verdict?.tree ?? ""),
            payload,
          });
      },
    ],
  });
  onTestFinished(async () => {
    await service.close({ timeoutMs: 0 });
    await project.close();
    await repository[Symbol.asyncDispose]();
  });
  return {
    service,
    states,
    async run(body) {
      return (await service.app.run("kit.spec", { payload: { feature: "cart", agent: "honest", ...body } }))
        .result as SpecRunResult;
    },
  };
}

const ends = ({ tasks: all }: SpecRunResult): readonly string[] =>
  all.map(({ task, state, attempt }) => `${task} ${state} ${attempt}`);

campaignTest(
  "each task is done in a work tree of its own, judged, ticked and committed, and the user's checkout stays",
  async () => {
    const repository = await specRepository();
    await writeFile(join(repository.root, "src/mine.mjs"), "what the user types\n");
    const { run, states } = await open(repository, { answer: () => ({ approved: true }) });
    const result = await run({});
    expect(ends(result)).toEqual(["1.1 closed 1", "1.2 closed 1", "2 closed 1"]);
    expect(result).toMatchObject({ branch: "kit/cart", cost: null });
    expect(states.filter((state) => state.startsWith("2 "))).toEqual([
      ...["2 working 0", "2 judging 1", "2 judging 1", "2 waiting 1", "2 closed 1"],
    ]);
    const { git } = repository;
    expect(await git("show", `kit/cart:${tasksPath}`)).toBe(
      tasks
        .replace("- [ ] 1. ", "- [x] 1. ")
        .replace("- [ ] 1.1", "- [x] 1.1")
        .replace("- [ ] 1.2", "- [x] 1.2")
        .replace("- [ ] 2. ", "- [x] 2. ")
        .trimEnd(),
    );
    expect(
      await git(
        "log",
        "--format=%s|%(trailers:key=Kit-Task,valueonly)|%(trailers:key=Kit-Approved,valueonly)",
        "main..kit/cart",
      ),
    ).toBe("Tidy up|cart/2\n|by a person\n\nDiscounts|cart/1.2\n|\nAdd up|cart/1.1\n|");
    for (const { commit = "", verdict } of result.tasks) {
      // The commit is the judged tree but for the ticks.
      expect(await git("diff", "--name-only", verdict?.tree ?? "", commit)).toBe(tasksPath);
    }
    expect(await git("status", "--porcelain")).toBe("?? src/mine.mjs");
    expect(await git("worktree", "list")).not.toContain(".kit");
    expect(await git("rev-parse", "main")).toBe(result.base);
  },
  120_000,
);

campaignTest(
  "a task whose change breaks a rule is not closed, and the agent reads which rule, and where",
  async () => {
    const repository = await specRepository({
      "AGENTS.md": "# Cart\n\n## Loops\n\nNo reduce.\n",
      "tools/no-reduce.sh": 'grep -nH reduce "$@" && exit 1\nexit 0\n',
      "kit.toml":
        '[specs.verify]\nfaults = 2\n[[guidelines.check]]\nrule = "AGENTS.md#loops"\nfiles = "src/*.mjs"\nrun = "sh tools/no-reduce.sh {files}"\n',
    });
    const { run } = await open(repository);
    expect(await run({ tasks: ["1.1"], attempts: 1 })).toMatchObject({
      tasks: [
        {
          state: "refused",
          reason: expect.stringMatching(
            /^- \[rule-broken\] AGENTS\.md#loops \("Loops"\) is broken in src\/cart\.mjs:2: return lines\.reduce.*\(src\/cart\.mjs:2\)$/,
          ),
        },
      ],
    });
    expect(ends(await run({ tasks: ["1.2"], attempts: 1 }))).toEqual(["1.2 closed 1"]);
  },
  120_000,
);

campaignTest(
  "a refusal is the next prompt, and a task whose tests assert nothing is not closed",
  async () => {
    const repository = await specRepository();
    const { run, states } = await open(repository);
    expect(ends(await run({ agent: "hurried", tasks: ["1.1"] }))).toEqual(["1.1 closed 2"]);
    expect(states).toContain("1.1 working 1");
    const result = await run({ agent: "empty", tasks: ["1.2"], attempts: 2 });
    expect(ends(result)).toEqual(["1.2 refused 2"]);
    const [task] = result.tasks;
    expect(task).toMatchObject({
      reason: expect.stringContaining("[asserts-nothing] The tests of cart#1.2 notice none of"),
      work_tree: expect.stringContaining(join(".kit", "work", "cart.1-2")),
    });
    expect(existsSync(join(task?.work_tree ?? "", "src/discount.test.mjs"))).toBe(true);
    expect(await repository.git("show", `kit/cart:${tasksPath}`)).toContain("- [ ] 1.2");
    // The next run of the feature begins with what is left, and with a work tree of its own.
    expect(ends(await run({ tasks: ["1.2"] }))).toEqual(["1.2 closed 1"]);
  },
  300_000,
);

longTest(
  "an agent that does nothing, or that only ticks the box, closes nothing",
  async () => {
    const repository = await specRepository();
    const { run } = await open(repository);
    for (const agent of ["idle", "ticking"] as const) {
      const result = await run({ agent, tasks: ["1.1"], attempts: 1 });
      expect(ends(result)).toEqual(["1.1 refused 1"]);
      expect(result.tasks[0]?.reason).toContain("[no-change]");
      expect(result.head).toBe(result.base);
    }
    expect(await repository.git("show", `kit/cart:${tasksPath}`)).toBe(tasks.trimEnd());
  },
  60_000,
);

campaignTest(
  "tasks at once change one file: the second is merged with the first and judged again",
  async () => {
    const repository = await specRepository();
    const { run } = await open(repository);
    const result = await run({ tasks: ["1.1", "1.2"], parallel: 2 });
    expect(ends(result)).toEqual(["1.1 closed 1", "1.2 closed 1"]);
    const text = await repository.git("show", "kit/cart:src/cart.mjs");
    expect(text).toContain("function sum");
    expect(text).toContain("function discount");
    expect(await repository.git("rev-list", "--count", "main..kit/cart")).toBe("2");
    for (const { commit = "", verdict } of result.tasks)
      expect(await repository.git("diff", "--name-only", verdict?.tree ?? "", commit)).toBe(tasksPath);
  },
  120_000,
);

longTest(
  "another agent writes the tests, and the first one cannot spoil them",
  async () => {
    const repository = await specRepository();
    const { run } = await open(repository);
    const result = await run({ agent: "coding", tests_by: "testing", tasks: ["1.1"] });
    expect(ends(result)).toEqual(["1.1 closed 1"]);
    expect(await repository.git("show", "kit/cart:src/sum.test.mjs")).toContain("price: 2");
  },
  60_000,
);

longTest(
  "a person's no with a comment is the next prompt, and a no without one ends the task",
  async () => {
    const repository = await specRepository();
    let asked = 0;
    const { run } = await open(repository, {
      answer({ diff }) {
        asked += 1;
        expect(diff).toContain("+export const tidied = true;");
        return asked === 1 ? { approved: false, comment: "Explain it." } : { approved: false };
      },
    });
    expect(ends(await run({ tasks: ["2"] }))).toEqual(["2 denied 2"]);
    expect(await repository.git("rev-list", "--count", "main..kit/cart")).toBe("0");
  },
  60_000,
);

test("a run without money, an unknown task, a second run and an unknown feature are refused in a sentence", async () => {
  const repository = await specRepository();
  const { run, service } = await open(repository);
  expect(ends(await run({ tasks: ["1.1"], max_cost: 0 }))).toEqual(["1.1 skipped 0"]);
  await expect(run({ tasks: ["7"] })).rejects.toMatchObject({
    code: "invalid_request",
    message: 'The feature "cart" has no task "7".',
  });
  await expect(run({ tasks: ["1"] })).rejects.toThrow("is done when its subtasks are");
  await expect(run({ feature: "basket" })).rejects.toMatchObject({
    message: 'No feature "basket" has tasks in the last commit.',
    hint: "These have open tasks: cart. A new spec must be committed first.",
  });
  await expect(run({ agent: "missing" })).rejects.toMatchObject({ code: "agent_not_found" });
  const waiting = await service.startRun("kit.spec", { feature: "cart", agent: "honest", tasks: ["2"] });
  await expect
    .poll(async () => (await service.engine.getRun(waiting.run_id))?.status, { timeout: 20_000 })
    .toBe("waiting");
  await expect(run({})).rejects.toMatchObject({
    code: "conflict",
    message: `Another run works on cart already: ${waiting.run_id}.`,
  });
  await service.engine.cancelRun(waiting.run_id);
}, 180_000);

longTest(
  "a project below the top of its repository is done there",
  async () => {
    const repository = await specRepository();
    const { root, git } = repository;
    await git("mv", "-k", "src", ".kiro", "inner-later").catch(() => undefined);
    const inner: Record<string, string> = {};
    for (const path of (await git("ls-files")).split("\n"))
      inner[`shop/${path}`] = await readFile(join(root, path), "utf8");
    for (const [path, text] of Object.entries(inner)) await repository.write(path, text);
    await git("rm", "-r", "-q", "--cached", "src", ".kiro");
    await repository.commit("Move", 1_700_000_100);
    const { run } = await open(repository, { root: join(root, "shop") });
    expect(ends(await run({ tasks: ["1.1"] }))).toEqual(["1.1 closed 1"]);
    expect(await git("show", `kit/cart:shop/${tasksPath}`)).toContain("- [x] 1.1");
  },
  60_000,
);

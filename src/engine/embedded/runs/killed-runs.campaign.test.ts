import { fork } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { setTimeout } from "node:timers/promises";
import { afterAll, expect, test } from "vitest";
import { campaignTest } from "../../../testing/campaign.suite.ts";
import { testFolder } from "../../../testing/test-folder.ts";
import { handlers } from "../../cases/engine-check.ts";
import { createEmbeddedEngine } from "../create-embedded-engine.ts";
import { type FlowPayload, followFamily, followFlow, type Member } from "./testing/run-flow.ts";

const root = testFolder(afterAll);

const rounds = Number(process.env.KIT_FAULT_ROUNDS ?? 4);
const script = new URL("testing/run-process.ts", import.meta.url);

interface RunFolder {
  readonly folder: string;
  readonly log: string;
}

function createRunFolder(name: string): RunFolder {
  const folder = join(root, name);
  const log = join(root, `${name}.log`);
  mkdirSync(folder);
  writeFileSync(log, "");
  return { folder, log };
}

/** Starts runs in the folder, before any process works there. */
async function startRuns(
  { folder }: RunFolder,
  payloads: readonly (FlowPayload | Member)[],
): Promise<readonly string[]> {
  const engine = createEmbeddedEngine({ folder });
  const ids: string[] = [];
  for (const payload of payloads) {
    const workflow = typeof payload === "string" ? "family" : "w";
    ids.push((await engine.startRun({ workflow, payload })).run_id);
  }
  await engine.drain();
  return ids;
}

/** Lets a process work until it has logged this many steps, or kills itself; the run can request the latter after `steps`. */
async function work(
  { folder, log }: RunFolder,
  life: { readonly noted?: number; readonly steps?: number },
): Promise<void> {
  const countNoted = (): number => readFileSync(log, "utf8").split("\n").length;
  const before = countNoted();
  const child = fork(script, [folder, log, String(life.steps ?? 0)], { execArgv: [] });
  const closed = once(child, "close");
  await Promise.race([once(child, "message"), closed]);
  if (life.noted !== undefined) {
    while (countNoted() < before + life.noted) await setTimeout(1);
    child.kill("SIGKILL");
  }
  await closed;
}

/** The keys of the steps that are recorded as done. */
function finished({ folder }: RunFolder): ReadonlySet<string> {
  const database = new DatabaseSync(join(folder, "engine.db"));
  const rows = database
    .prepare(
      `SELECT run_id || ':' || position AS step FROM run_journal JOIN runs ON id = run
       WHERE kind = 'step' AND state = 'done'`,
    )
    .all();
  database.close();
  return new Set(rows.map(({ step }) => String(step)));
}

function timesOf({ log }: RunFolder): ReadonlyMap<string, number> {
  const times = new Map<string, number>();
  for (const line of readFileSync(log, "utf8").trim().split("\n"))
    times.set(line, (times.get(line) ?? 0) + 1);
  return times;
}

test(`runs whose process is killed ${rounds} times do each finished step once, and all of them end`, async () => {
  const where = createRunFolder("load");
  const ids = await startRuns(
    where,
    Array.from({ length: 30 }, () => ({ steps: 40 })),
  );
  const stepTimes = new Map<string, number>();
  // Each unfinished step is logged once more, so the log gets this many lines.
  for (let round = 0; round < rounds && stepTimes.size < 30 * 40; round += 1) {
    await work(where, { noted: Math.min(40 + ((round * 37) % 90), 30 * 40 - stepTimes.size) });
    const times = timesOf(where);
    for (const step of finished(where)) if (!stepTimes.has(step)) stepTimes.set(step, times.get(step) ?? 0);
  }
  expect(stepTimes.size).toBeGreaterThan(0);
  const engine = createEmbeddedEngine({ folder: where.folder });
  // This process does the remaining steps: finished steps do not run again.
  const last = new Map<string, number>();
  const note = (number: number) => (step: { readonly idempotencyKey: string }) => {
    last.set(step.idempotencyKey, (last.get(step.idempotencyKey) ?? 0) + 1);
    return number;
  };
  await engine.start(handlers({ run: (context) => followFlow(context, 40, note) }));
  const expected = Array.from({ length: 40 }, (_, step) => step);
  for (const id of ids) {
    expect(await engine.awaitRun(id)).toMatchObject({ status: "completed", result: expected });
  }
  await engine.drain();
  const times = timesOf(where);
  for (const [step, before] of stepTimes) {
    expect([step, times.get(step), last.get(step)]).toEqual([step, before, undefined]);
  }
  for (const count of last.values()) expect(count).toBe(1);
});

test("a run that kills its process at the same place five times fails; the others continue", async () => {
  const where = createRunFolder("poison");
  const [bad = "", good = ""] = await startRuns(where, [{ steps: 1, dies: "at once" }, { steps: 9 }]);
  for (let life = 0; life < 5; life += 1) await work(where, {});
  const engine = createEmbeddedEngine({ folder: where.folder });
  await engine.start(handlers({ run: (context) => followFlow(context, 9, (number) => () => number) }));
  expect(await engine.awaitRun(bad)).toMatchObject({
    status: "failed",
    error: { type: "internal_error", message: expect.stringContaining("The process ended 5 times") },
  });
  expect((await engine.awaitRun(good))?.status).toBe("completed");
  await engine.drain();
});

campaignTest("a run that makes progress after each crash does not fail", async () => {
  const where = createRunFolder("slow");
  const [id = ""] = await startRuns(where, [{ steps: 8, dies: "one step further each time" }]);
  for (let steps = 1; steps < 8; steps += 1) await work(where, { steps });
  const engine = createEmbeddedEngine({ folder: where.folder });
  const attempts: number[] = [];
  await engine.start(
    handlers({
      run: (context) => {
        attempts.push(context.attempt);
        return followFlow(context, 8, (number) => () => number);
      },
    }),
  );
  expect((await engine.awaitRun(id))?.result).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
  expect(attempts).toEqual([2]);
  await engine.drain();
});

test("after three crashes, runs that wait for other runs, a signal or a person block none", async () => {
  const where = createRunFolder("family");
  const family: Member[] = ["signalled parent", "person", "grandparent", "parent", "parent", "parent", "kid"];
  const ids = await startRuns(where, family);
  // Each time, the process dies while all kids are in their step.
  for (let life = 0; life < 3; life += 1) await work(where, { noted: 6 });
  const engine = createEmbeddedEngine({ folder: where.folder });
  const decision = Promise.withResolvers<void>();
  const asked: string[] = [];
  await engine.start(
    handlers({
      run: (context, { payload }) =>
        followFamily(
          engine,
          { context, member: payload as Member },
          {
            step: () => "done",
            decide: async () => {
              asked.push(context.id);
              await decision.promise;
            },
          },
        ),
    }),
  );
  const [signalledParent = "", person = "", ...others] = ids;
  for (const id of others) expect(await engine.awaitRun(id)).toMatchObject({ status: "completed" });
  await expect.poll(() => asked).toEqual([person]);
  decision.resolve();
  expect((await engine.awaitRun(person))?.result).toBe("decided");
  const signalled = (await engine.getRun(signalledParent))?.waiting_for?.[0]?.run_id ?? "";
  await engine.signal(signalled, { name: "go" });
  expect((await engine.awaitRun(signalledParent))?.result).toBe(signalled);
  await engine.drain();
}, 30_000);

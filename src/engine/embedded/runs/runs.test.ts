import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { setImmediate, setTimeout } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { afterAll, afterEach, expect, test } from "vitest";
import type { RunStatus } from "../../../protocol/run.ts";
import { createManualClock, type ManualClock } from "../../../testing/manual-clock.ts";
import { handlers } from "../../cases/engine-check.ts";
import type { Engine, EngineHandlers } from "../../contract.ts";
import type { EngineLimits } from "../../shared/engine-base.ts";
import { createEmbeddedEngine } from "../create-embedded-engine.ts";

const root = mkdtempSync(join(tmpdir(), "kit-runs-"));
const opened: Engine[] = [];
afterEach(async () => {
  await Promise.all(opened.splice(0).map((engine) => engine.drain({ timeoutMs: 0 })));
});
afterAll(() => rmSync(root, { recursive: true }));

const day = 24 * 3_600_000;
/** Long enough that the days that pass in a test do not end the lease. */
const patient = { leaseMs: 10_000 * day, pollMs: 10_000 * day };

interface Subject {
  readonly engine: Engine;
  readonly clock: ManualClock;
}

async function begin(run: EngineHandlers["run"], limits: Partial<EngineLimits> = {}): Promise<Subject> {
  const clock = createManualClock();
  const engine = createEmbeddedEngine({ clock, limits: { ...patient, ...limits } });
  opened.push(engine);
  await engine.start(handlers({ run }));
  return { engine, clock };
}

/** Lets seconds pass until the run has a status. */
async function until({ engine, clock }: Subject, runId: string, status: RunStatus): Promise<void> {
  for (let turn = 0; turn < 10_000; turn += 1) {
    if ((await engine.getRun(runId))?.status === status) return;
    await (turn % 20 === 19 ? clock.advance(1_000) : setImmediate());
  }
  throw new Error(`The run did not become ${status}.`);
}

test("a run that only waits is suspended, and replays its recorded results when it resumes", async () => {
  const begun: string[] = [];
  const reasons: unknown[] = [];
  const subject = await begin(async (context) => {
    begun.push("begun");
    context.signal.addEventListener("abort", () => reasons.push(context.signal.reason.message));
    const first = await context.step("first", () => begun.push("first"));
    const approval = await context.waitFor("approval");
    return { first, approval };
  });
  const { engine } = subject;
  const { run_id } = await engine.startRun({ workflow: "w", payload: {} });
  await until(subject, run_id, "waiting");
  expect(reasons).toEqual([expect.stringContaining("The run is suspended.")]);
  await engine.signal(run_id, { name: "other" });
  expect((await engine.getRun(run_id))?.status).toBe("waiting");
  await engine.signal(run_id, { name: "approval", payload: "yes" });
  expect(await engine.awaitRun(run_id)).toMatchObject({
    status: "completed",
    result: { first: 2, approval: "yes" },
  });
  expect(begun).toEqual(["begun", "first", "begun"]);
});

test("later effects of a suspended execution are ignored", async () => {
  const outside = Promise.withResolvers<void>();
  const after: string[] = [];
  let attempts = 0;
  const subject = await begin(async (context) => {
    attempts += 1;
    if (attempts === 1) {
      void outside.promise.then(() => {
        after.push("outside");
        const event = { type: "log", level: "info", message: "late" } as const;
        const head = { timestamp: "", agent: "", instance_id: "", session: "", operation_id: "" };
        after.push(String(context.emit({ ...event, ...head })));
        void context.step("late", () => after.push("step")).then(() => after.push("told"));
        void context.sleep(0).then(() => after.push("slept"));
      });
    }
    return await context.waitFor("go");
  });
  const { engine } = subject;
  const { run_id } = await engine.startRun({ workflow: "w", payload: {} });
  await until(subject, run_id, "waiting");
  outside.resolve();
  await engine.signal(run_id, { name: "go", payload: 1 });
  const record = await engine.awaitRun(run_id);
  expect(record).toMatchObject({ status: "completed", result: 1, event_count: 0 });
  expect(after).toEqual(["outside", "undefined"]);
});

test("the memory of a waiting run can be collected", async () => {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  const held: WeakRef<object>[] = [];
  const subject = await begin(async (context) => {
    const large = { text: "x".repeat(1_000) };
    held.push(new WeakRef(large));
    await context.step("first", () => 1);
    await Promise.all([context.waitFor("never"), context.sleep(40 * day)]);
    return large.text.length;
  });
  const ids: string[] = [];
  for (let index = 0; index < 20; index += 1) {
    ids.push((await subject.engine.startRun({ workflow: "w", payload: {} })).run_id);
  }
  for (const id of ids) await until(subject, id, "waiting");
  let left = held;
  for (let turn = 0; turn < 20 && left.length > 0; turn += 1) {
    await setImmediate();
    collect();
    left = held.filter((reference) => reference.deref() !== undefined);
  }
  expect(left).toEqual([]);
});

test("a sleep of a month ends after a month, and not before", async () => {
  const subject = await begin(async (context) => {
    const before = await context.now();
    // Longer than the longest timer of Node.
    await context.sleep(30 * day);
    return (await context.now()) - before;
  });
  const { engine, clock } = subject;
  const { run_id } = await engine.startRun({ workflow: "w", payload: {} });
  await until(subject, run_id, "waiting");
  await clock.advance(29 * day);
  expect((await engine.getRun(run_id))?.status).toBe("waiting");
  await clock.advance(day);
  await until(subject, run_id, "completed");
  const slept = (await engine.getRun(run_id))?.result;
  expect(slept).toBeGreaterThanOrEqual(30 * day);
  expect(slept).toBeLessThan(30 * day + 60_000);
});

test("a signal that arrives after the timeout of its wait is for the next wait", async () => {
  const subject = await begin(async (context) => [
    (await context.waitFor("go", { timeoutMs: 5_000 })) ?? "late",
    await context.waitFor("go"),
  ]);
  const { engine, clock } = subject;
  const { run_id } = await engine.startRun({ workflow: "w", payload: {} });
  await until(subject, run_id, "waiting");
  await clock.advance(60_000);
  await engine.signal(run_id, { name: "go", payload: "after" });
  expect((await engine.awaitRun(run_id))?.result).toEqual(["late", "after"]);
});

test("a waiting run uses no slot, so the next run begins", async () => {
  const subject = await begin((context) => context.waitFor("go"), { running: 1 });
  const { engine } = subject;
  const first = await engine.startRun({ workflow: "w", payload: 1 });
  const second = await engine.startRun({ workflow: "w", payload: 2 });
  await until(subject, first.run_id, "waiting");
  await until(subject, second.run_id, "waiting");
  await engine.signal(first.run_id, { name: "go", payload: 1 });
  expect((await engine.awaitRun(first.run_id))?.result).toBe(1);
});

test("waiting runs do not block other work: they release their slots once other work wants them", async () => {
  const clock = createManualClock();
  const engine = createEmbeddedEngine({ clock, limits: { ...patient, running: 2 } });
  opened.push(engine);
  await engine.start(handlers({ run: (context) => context.waitFor("go"), dispatch: async () => "done" }));
  const runs = await Promise.all(
    Array.from({ length: 16 }, (_, payload) => engine.startRun({ workflow: "w", payload })),
  );
  const input = { agent: "a", instance_id: "i", session: "s", input: 1 };
  const { dispatch_id } = await engine.admit(input);
  const began = clock.now();
  for (let turn = 0; (await engine.getDispatch(dispatch_id))?.status !== "completed"; turn += 1) {
    if (clock.now() - began >= 1_000) throw new Error("No waiting run released its slot.");
    await (turn % 20 === 19 ? clock.advance(50) : setImmediate());
  }
  for (const { run_id } of runs) await engine.signal(run_id, { name: "go", payload: run_id });
  for (const { run_id } of runs) expect((await engine.awaitRun(run_id))?.result).toBe(run_id);
});

test("a suspended run is cancelled without resuming", async () => {
  let begun = 0;
  const subject = await begin(async (context) => {
    begun += 1;
    await context.sleep(day);
  });
  const { engine, clock } = subject;
  const { run_id } = await engine.startRun({ workflow: "w", payload: {} });
  await until(subject, run_id, "waiting");
  const ended = engine.awaitRun(run_id);
  expect(await engine.cancelRun(run_id)).toBe(true);
  expect((await ended)?.status).toBe("cancelled");
  await clock.advance(2 * day);
  expect(begun).toBe(1);
});

test("a cancelled run whose handler does not end is over a moment later", async () => {
  const begun = Promise.withResolvers<void>();
  const subject = await begin(async () => {
    begun.resolve();
    await new Promise(() => undefined);
  });
  const { engine } = subject;
  const { run_id } = await engine.startRun({ workflow: "w", payload: {} });
  await begun.promise;
  expect(await engine.cancelRun(run_id)).toBe(true);
  await until(subject, run_id, "cancelled");
});

test("ended runs are kept for the retention period, and then removed with their journal and events", async () => {
  const subject = await begin(
    async (context, { payload }) => {
      const head = { timestamp: "", agent: "", instance_id: "", session: "", operation_id: "" };
      context.emit({ type: "run_start", workflow: "w", ...head });
      await context.step("first", () => "x".repeat(10));
      if (payload === "wait") await context.waitFor("never");
      return 1;
    },
    { retentionMs: 7 * day },
  );
  const { engine, clock } = subject;
  const ended = await engine.startRun({ workflow: "w", payload: "end", idempotency_key: "k" });
  const waiting = await engine.startRun({ workflow: "w", payload: "wait" });
  await until(subject, ended.run_id, "completed");
  await until(subject, waiting.run_id, "waiting");
  await clock.advance(6 * day);
  expect((await engine.getRun(ended.run_id))?.status).toBe("completed");
  await clock.advance(2 * day);
  for (let turn = 0; turn < 50; turn += 1) await setImmediate();
  expect(await engine.getRun(ended.run_id)).toBeUndefined();
  expect(await engine.events.last(`run/${ended.run_id}`)).toBe(0);
  expect((await engine.getRun(waiting.run_id))?.status).toBe("waiting");
  const again = await engine.startRun({ workflow: "w", payload: "end", idempotency_key: "k" });
  expect(again.run_id).not.toBe(ended.run_id);
});

test("a missed schedule is made up for once, and each occurrence starts once", async () => {
  const folder = mkdtempSync(join(root, "schedule-"));
  const open = (startMs?: number): Subject => {
    const clock = createManualClock(startMs);
    const engine = createEmbeddedEngine({ folder, clock, limits: patient });
    opened.push(engine);
    return { engine, clock };
  };
  const first = open();
  const schedule = { name: "hourly", workflow: "w", cron: "0 * * * *" };
  expect(await first.engine.putSchedule(schedule)).toMatchObject({ next_at: "2026-11-21T11:00:00.000Z" });
  await first.engine.drain();

  const second = open(Date.parse("2026-11-21T15:30:00Z"));
  await second.engine.putSchedule(schedule);
  const keys: (string | undefined)[] = [];
  const run = async (_: unknown, { idempotency_key }: { readonly idempotency_key?: string }) =>
    void keys.push(idempotency_key);
  await second.engine.start(handlers({ run }));
  for (let turn = 0; turn < 50; turn += 1) await second.clock.advance(0);
  expect(keys).toEqual(["schedule:hourly:2026-11-21T11:00:00.000Z"]);
  const [record] = await second.engine.listSchedules();
  expect(record?.next_at).toBe("2026-11-21T16:00:00.000Z");
  expect((await second.engine.getRun(record?.last_run_id ?? ""))?.workflow).toBe("w");
  await second.clock.advance(3_600_000);
  for (let turn = 0; turn < 50; turn += 1) await second.clock.advance(0);
  expect(keys.slice(1)).toEqual(["schedule:hourly:2026-11-21T16:00:00.000Z"]);
  await second.engine.deleteSchedule("hourly");
  await second.clock.advance(day);
  expect(keys).toHaveLength(2);
});

test("a retry keeps a failure before a later end in a journal of a kit that did not record when calls were made", async () => {
  const folder = mkdtempSync(join(root, "old-"));
  const open = async (): Promise<Engine> => {
    const engine = createEmbeddedEngine({ folder });
    opened.push(engine);
    await engine.start(handlers({ run }));
    return engine;
  };
  const done: string[] = [];
  const run: EngineHandlers["run"] = async (context) => {
    const steps = ["fails", "works"].map((name) =>
      context.step(name, async () => {
        done.push(name);
        if (name === "fails") throw new TypeError("no");
        await setTimeout(20);
      }),
    );
    await Promise.allSettled(steps);
    await Promise.all(steps);
  };
  const first = await open();
  const { run_id } = await first.startRun({ workflow: "w", payload: {} });
  await first.awaitRun(run_id);
  await first.drain();
  const database = new DatabaseSync(join(folder, "engine.db"));
  expect(database.prepare("SELECT made_after FROM run_journal").all()).toEqual([
    { made_after: 0 },
    { made_after: 0 },
  ]);
  database.exec("UPDATE run_journal SET made_after = NULL");
  database.close();
  const second = await open();
  await second.retryRun(run_id);
  expect((await second.awaitRun(run_id))?.status).toBe("failed");
  expect(done).toEqual(["fails", "works"]);
});

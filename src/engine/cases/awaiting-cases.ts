import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import type { ContractCase } from "../../base/contract-case.ts";
import type { Engine, EngineHandlers, RunContext } from "../contract.ts";
import {
  type EngineCheck,
  type EngineSubject,
  gate,
  handlers,
  toCases,
  untilAborted,
} from "./engine-check.ts";

/** The promises about runs that wait for other runs. */
export function awaitingCases(subject: EngineSubject): readonly ContractCase[] {
  return toCases(subject, { fresh, lasting });
}

/** Starts a run for a run, once. */
async function startChild(
  engine: Engine,
  context: RunContext,
  request: { workflow: string; payload: unknown },
) {
  return await context.step("start", async ({ idempotencyKey }) => {
    const child = { ...request, parent_run_id: context.id, idempotency_key: idempotencyKey };
    return (await engine.startRun(child)).run_id;
  });
}

async function resultOf(engine: Engine, context: RunContext, runId: string): Promise<unknown> {
  return await context.stepAfter("result", async () => (await engine.getRun(runId))?.result ?? null, {
    run_id: runId,
  });
}

/** A run with a payload n starts a run with n - 1 and waits for it; the last run waits for a signal. */
function descending(engine: Engine, calls: number[] = []): EngineHandlers["run"] {
  return async (context, { workflow, payload }) => {
    calls.push(Number(payload));
    if (payload === 0) return await context.waitFor("go");
    const child = await startChild(engine, context, { workflow, payload: Number(payload) - 1 });
    return [await resultOf(engine, context, child)];
  };
}

/** A run that starts a run, and waits for it until a signal; the other run waits for a signal that does not come. */
function impatient(engine: Engine, patience: () => AbortSignal): EngineHandlers["run"] {
  return async (context, { workflow, payload }) => {
    if (payload === "child") return await context.waitFor("go");
    const child = await startChild(engine, context, { workflow, payload: "child" });
    const awaited = { run_id: child, signal: patience() };
    return await context.stepAfter("result", async () => "gave up", awaited);
  };
}

async function untilStatus(engine: Engine, runId: string, status: string): Promise<void> {
  while ((await engine.getRun(runId))?.status !== status) await sleep(10);
}

/** The ids of all runs, newest first, once the newest one waits for its signal. */
async function untilLastWaits(engine: Engine, count: number): Promise<readonly string[]> {
  for (;;) {
    const { items } = await engine.listRuns();
    if (items.length === count && items[0]?.waiting_for?.[0]?.signal !== undefined)
      return items.map(({ run_id }) => run_id);
    await sleep(10);
  }
}

/** The ids of the runs that wait for a signal, once there are this many. */
async function untilWaiting(engine: Engine, count: number): Promise<readonly string[]> {
  for (;;) {
    const { items } = await engine.listRuns();
    const waiting = items.filter(({ waiting_for }) => waiting_for?.[0]?.signal !== undefined);
    if (waiting.length === count) return waiting.map(({ run_id }) => run_id);
    await sleep(10);
  }
}

const fresh: Readonly<Record<string, EngineCheck>> = {
  "a run that waits for another run holds no slot, is suspended like a wait for a signal, and names the run":
    async (tools) => {
      const engine = await tools.create({ running: 1 });
      await engine.start(handlers({ run: descending(engine) }));
      const { run_id } = await engine.startRun({ workflow: "w", payload: 2 });
      const [last = "", middle = ""] = await untilLastWaits(engine, 3);
      for (const id of [last, middle, run_id]) await untilStatus(engine, id, "waiting");
      assert.deepEqual((await engine.getRun(run_id))?.waiting_for, [{ run_id: middle }]);
      assert.deepEqual((await engine.getRun(middle))?.waiting_for, [{ run_id: last }]);
      assert.equal((await engine.load()).running_runs, 0);
      await engine.signal(last, { name: "go", payload: "gone" });
      assert.deepEqual((await engine.awaitRun(run_id))?.result, [["gone"]]);
      assert.equal((await engine.getRun(run_id))?.waiting_for, undefined);
    },

  "a run that waits for several runs resumes with each end, whatever it is, and repeats no step": async (
    tools,
  ) => {
    const engine = await tools.create({ running: 2 });
    let starts = 0;
    await engine.start(
      handlers({
        run: async (context, { payload }) => {
          if (payload === "fails") throw new TypeError("no");
          if (payload !== "parent") return await context.waitFor("go");
          starts += 1;
          const payloads = ["completes", "fails", "is cancelled"];
          const ids = await Promise.all(
            payloads.map((each) => startChild(engine, context, { workflow: "child", payload: each })),
          );
          return await Promise.all(
            [...ids, "run_none"].map((id) =>
              context.stepAfter("end", async () => (await engine.getRun(id))?.status ?? "unknown", {
                run_id: id,
              }),
            ),
          );
        },
      }),
    );
    const { run_id } = await engine.startRun({ workflow: "parent", payload: "parent" });
    await untilStatus(engine, run_id, "waiting");
    const { items } = await engine.listRuns({ workflow: "child" });
    assert.equal(items.length, 3);
    const idOf = (payload: string): string => items.find((each) => each.payload === payload)?.run_id ?? "";
    await engine.signal(idOf("completes"), { name: "go" });
    await engine.awaitRun(idOf("completes"));
    assert.equal(await engine.cancelRun(idOf("is cancelled")), true);
    const { result } = (await engine.awaitRun(run_id)) ?? {};
    assert.deepEqual(result, ["completed", "failed", "cancelled", "unknown"]);
    assert.ok(starts > 1);
    assert.equal((await engine.listRuns({ workflow: "child" })).items.length, 3);
  },

  "the wait for another run can be given up, and a step can wait for a run in memory": async (tools) => {
    const engine = await tools.create({ running: 1 });
    const begun = gate();
    await engine.start(
      handlers({
        run: async (context, { payload }) => {
          if (payload === "child") return await context.waitFor("go");
          const child = await startChild(engine, context, { workflow: "w", payload: "child" });
          const leaving = new AbortController();
          const given = context.stepAfter("given up", async () => "given up", {
            run_id: child,
            signal: leaving.signal,
          });
          setTimeout(() => leaving.abort(), 20);
          const first = await given;
          const second = await context.step("inside", async () => {
            begun.open();
            return await resultOf(engine, context, child);
          });
          return [first, second];
        },
      }),
    );
    const { run_id } = await engine.startRun({ workflow: "w", payload: "parent" });
    await begun.opened;
    const { items } = await engine.listRuns();
    const child = items.find(({ payload }) => payload === "child")?.run_id ?? "";
    await untilStatus(engine, child, "waiting");
    await engine.signal(child, { name: "go", payload: 7 });
    assert.deepEqual((await engine.awaitRun(run_id))?.result, ["given up", 7]);
  },

  "the signal of a wait for another run ends it however late, and until then the run holds no slot": async (
    tools,
  ) => {
    const engine = await tools.create({ running: 1 });
    await engine.start(handlers({ run: impatient(engine, () => AbortSignal.timeout(1_500)) }));
    const { run_id } = await engine.startRun({ workflow: "w", payload: "parent" });
    const [child = ""] = await untilWaiting(engine, 1);
    assert.equal((await engine.awaitRun(run_id))?.result, "gave up");
    await untilStatus(engine, child, "waiting");
  },

  "cancelling a run that waits for another run cancels both": async (tools) => {
    const engine = await tools.create();
    const reasons: unknown[] = [];
    await engine.start(
      handlers({
        run: async (context, { payload }) => {
          if (payload === 0) return await context.step("long", untilAborted);
          const child = await startChild(engine, context, { workflow: "w", payload: 0 });
          return await resultOf(engine, context, child).catch((error) => reasons.push(error.code));
        },
      }),
    );
    for (const isSuspended of [false, true]) {
      const { run_id } = await engine.startRun({ workflow: "w", payload: 1 });
      while ((await engine.getRun(run_id))?.waiting_for === undefined) await sleep(5);
      if (isSuspended) await untilStatus(engine, run_id, "waiting");
      const [child] = (await engine.listRuns()).items;
      assert.equal(await engine.cancelRun(run_id), true);
      assert.equal((await engine.awaitRun(run_id))?.status, "cancelled");
      assert.equal((await engine.awaitRun(child?.run_id ?? ""))?.status, "cancelled");
    }
    assert.deepEqual(reasons, ["aborted"]);
  },
};

const lasting: Readonly<Record<string, EngineCheck>> = {
  "a run that waits for another run resumes after restarts, also if the other run ends meanwhile": async (
    tools,
  ) => {
    const first = await tools.create({ running: 1 });
    await first.start(handlers({ run: descending(first) }));
    const { run_id } = await first.startRun({ workflow: "w", payload: 2 });
    const [last = ""] = await untilLastWaits(first, 3);
    await first.drain();
    const idle = await tools.reopen({ running: 1 });
    await idle.signal(last, { name: "go", payload: "gone" });
    await idle.drain();
    const second = await tools.reopen({ running: 1 });
    await second.start(handlers({ run: descending(second) }));
    assert.deepEqual((await second.awaitRun(run_id))?.result, [["gone"]]);
  },

  "a wait for another run with a signal delays no stop, and has its signal again after a restart": async (
    tools,
  ) => {
    const first = await tools.create();
    await first.start(handlers({ run: impatient(first, () => AbortSignal.timeout(600_000)) }));
    const { run_id } = await first.startRun({ workflow: "w", payload: "parent" });
    await untilWaiting(first, 1);
    while ((await first.getRun(run_id))?.waiting_for === undefined) await sleep(5);
    const begunAt = performance.now();
    await first.drain({ timeoutMs: 30_000 });
    assert.ok(performance.now() - begunAt < 10_000);
    const second = await tools.reopen();
    assert.equal((await second.getRun(run_id))?.status, "queued");
    await second.start(handlers({ run: impatient(second, () => AbortSignal.timeout(50)) }));
    assert.equal((await second.awaitRun(run_id))?.result, "gave up");
  },

  "a stop fails no run that starts another run, or awaits one, just then": async (tools) => {
    const stopping = gate();
    const flow =
      (engine: Engine, begun: () => void): EngineHandlers["run"] =>
      async (context, { workflow, payload }) => {
        if (payload === "child") return await context.waitFor("go");
        if (payload === "starts") begun();
        if (payload === "starts") await stopping.opened;
        const child = await startChild(engine, context, { workflow, payload: "child" });
        if (payload === "awaits") begun();
        if (payload === "awaits") await stopping.opened;
        return await context.step("in memory", async () => (await engine.awaitRun(child))?.result);
      };
    const first = await tools.create();
    const begun = [gate(), gate()];
    let count = 0;
    await first.start(handlers({ run: flow(first, () => begun[count++]?.open()) }));
    const ids: string[] = [];
    for (const payload of ["starts", "awaits"])
      ids.push((await first.startRun({ workflow: "w", payload })).run_id);
    await Promise.all(begun.map(({ opened }) => opened));
    const drained = first.drain({ timeoutMs: 200 });
    stopping.open();
    await drained;
    const second = await tools.reopen();
    const statuses = await Promise.all(ids.map(async (id) => (await second.getRun(id))?.status));
    assert.deepEqual(statuses, ["queued", "queued"]);
    await second.start(handlers({ run: flow(second, () => undefined) }));
    for (const child of await untilWaiting(second, 2)) await second.signal(child, { name: "go", payload: 7 });
    for (const id of ids) assert.equal((await second.awaitRun(id))?.result, 7);
    assert.equal((await second.listRuns()).items.length, 4);
  },
};

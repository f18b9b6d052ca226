import assert from "node:assert/strict";
import type { ContractCase } from "../../base/contract-case.ts";
import { KitError } from "../../base/kit-error.ts";
import type { EngineHandlers } from "../contract.ts";
import {
  type EngineCheck,
  type EngineSubject,
  gate,
  handlers,
  toCases,
  untilAborted,
} from "./engine-check.ts";

/** The promises about the admission of runs, and about their ends. */
export function runCases(subject: EngineSubject): readonly ContractCase[] {
  return toCases(subject, { fresh: { ...admission, ...ends } });
}

type RunHandler = EngineHandlers["run"];

const admission: Readonly<Record<string, EngineCheck>> = {
  "a run waits until the engine is started, and ends with the result of its handler": async (tools) => {
    const engine = await tools.create();
    const { run_id, accepted_at } = await engine.startRun({ workflow: "greet", payload: { name: "Ada" } });
    assert.match(run_id, /^run_[0-9A-HJKMNP-TV-Z]{26}$/);
    assert.deepEqual(await engine.getRun(run_id), {
      run_id,
      workflow: "greet",
      status: "queued",
      payload: { name: "Ada" },
      accepted_at,
      event_count: 0,
    });
    const reported: unknown[] = [];
    await engine.start(
      handlers({
        run: async ({ id, attempt }, request) => {
          reported.push(id, attempt, request);
          return { greeting: "Hello" };
        },
      }),
    );
    const record = await engine.awaitRun(run_id);
    assert.deepEqual(reported, [run_id, 1, { workflow: "greet", payload: { name: "Ada" } }]);
    assert.equal(record?.status, "completed");
    assert.deepEqual(record?.result, { greeting: "Hello" });
    assert.ok(record?.started_at !== undefined && record.ended_at !== undefined);
    assert.equal(record.duration_ms, Date.parse(record.ended_at) - Date.parse(record.started_at));
    assert.equal(await engine.getRun("run_none"), undefined);
    assert.equal(await engine.awaitRun("run_none"), undefined);
  },

  "a record has the cause of its work, handlers do not get it, and an idempotency key ignores it": async (
    tools,
  ) => {
    const engine = await tools.create();
    const cause = { type: "webhook", webhook: "git\nhub", delivery_id: 'd"1\n☃' } as const;
    const trace = { traceparent: `00-${"a".repeat(32)}-${"b".repeat(16)}-01` };
    const session = { agent: "echo", instance_id: "a", session: "default" };
    const bare = await engine.startRun({ workflow: "w", payload: 1, cause });
    const traced = await engine.startRun({ workflow: "w", payload: 1, idempotency_key: "k", cause, trace });
    const input = await engine.admit({ ...session, input: "x", cause, trace });
    const again = { workflow: "w", payload: 1, idempotency_key: "k" };
    assert.deepEqual(await engine.startRun({ ...again, cause: { type: "run", run_id: "r" } }), traced);
    for (const { run_id } of [bare, traced]) assert.deepEqual((await engine.getRun(run_id))?.cause, cause);
    assert.deepEqual((await engine.listDispatches()).items[0]?.cause, cause);
    const requests: unknown[] = [];
    await engine.start(
      handlers({
        run: async (context, request) => {
          requests.push(request);
          return request.trace === undefined
            ? (await context.dispatch({ ...session, input: "y" })).dispatch_id
            : 0;
        },
        dispatch: async (_, request) => void requests.push(request),
      }),
    );
    const ended = await engine.awaitRun(bare.run_id);
    await engine.awaitRun(traced.run_id);
    await engine.awaitDispatch(input.dispatch_id);
    const begun = await engine.awaitDispatch(String(ended?.result));
    assert.deepEqual(begun?.cause, { type: "run", run_id: bare.run_id });
    assert.equal(JSON.stringify(requests).includes("cause"), false);
    assert.equal(JSON.stringify(requests).split(trace.traceparent).length, 3);
  },

  "the same idempotency key is the same run of a workflow; with another payload it is a conflict": async (
    tools,
  ) => {
    const engine = await tools.create();
    const request = { workflow: "pay", payload: { a: 1, b: 2 }, idempotency_key: "order-7" };
    const first = await engine.startRun(request);
    assert.deepEqual(await engine.startRun({ ...request, payload: { b: 2, a: 1 } }), first);
    await assert.rejects(engine.startRun({ ...request, payload: { a: 1 } }), { code: "conflict" });
    const other = await engine.startRun({ ...request, workflow: "refund" });
    assert.notEqual(other.run_id, first.run_id);
    let runs = 0;
    await engine.start(handlers({ run: async () => runs++ }));
    await engine.awaitRun(first.run_id);
    await engine.awaitRun(other.run_id);
    assert.deepEqual(await engine.startRun(request), first);
    assert.equal(runs, 2);
  },

  "a run above the limit of waiting runs is refused for now": async (tools) => {
    const engine = await tools.create({ waiting: 3 });
    for (let index = 0; index < 3; index += 1)
      await engine.startRun({ workflow: `w${index}`, payload: index });
    const complete = (error: unknown): boolean =>
      error instanceof KitError && error.code === "unavailable" && Number(error.meta?.retry_after_s) > 0;
    await assert.rejects(engine.startRun({ workflow: "w", payload: 4 }), complete);
    const [newest] = (await engine.listRuns()).items;
    assert.equal(await engine.cancelRun(newest?.run_id ?? ""), true);
    await engine.startRun({ workflow: "w", payload: 5 });
  },
};

const ends: Readonly<Record<string, EngineCheck>> = {
  "an error of the handler ends the run, and the record hides the text of a foreign error": async (tools) => {
    const engine = await tools.create();
    await engine.start(
      handlers({
        run: async (_, { payload }) => {
          if (payload === "known") throw new KitError({ code: "forbidden", message: "Not today." });
          if (payload === "odd") return new Set();
          throw new Error("/home/ada/secret");
        },
      }),
    );
    const errors: unknown[] = [];
    for (const payload of ["known", "foreign", "odd"]) {
      const { run_id } = await engine.startRun({ workflow: "flow", payload });
      const record = await engine.awaitRun(run_id);
      assert.equal(record?.status, "failed");
      errors.push(record?.error);
    }
    assert.deepEqual(errors, [
      { type: "forbidden", message: "Not today." },
      { type: "internal_error", message: 'The workflow "flow" failed.' },
      { type: "internal_error", message: "The result of the workflow is not JSON: it is a Set." },
    ]);
  },

  "a queued run is cancelled before it begins": async (tools) => {
    const engine = await tools.create();
    const { run_id } = await engine.startRun({ workflow: "w", payload: {} });
    assert.equal(await engine.cancelRun(run_id), true);
    assert.equal(await engine.cancelRun(run_id), false);
    assert.equal(await engine.cancelRun("run_none"), false);
    let begun = 0;
    await engine.start(handlers({ run: async () => begun++ }));
    const next = await engine.startRun({ workflow: "w", payload: {} });
    await engine.awaitRun(next.run_id);
    assert.equal(begun, 1);
    const record = await engine.awaitRun(run_id);
    assert.equal(record?.status, "cancelled");
    assert.equal(record?.started_at, undefined);
  },

  "a running run gets the signal when it is cancelled, wherever it is, and can clean up": async (tools) => {
    const engine = await tools.create();
    for (const blockedIn of ["step", "sleep", "wait"] as const) {
      const begun = gate();
      const reasons: unknown[] = [];
      const run: RunHandler = async (context) => {
        const work = {
          step: () => context.step("long", untilAborted),
          sleep: () => context.sleep(3_600_000),
          wait: () => context.waitFor("never"),
        };
        await context.step("ready", () => 1);
        begun.open();
        try {
          await work[blockedIn]();
        } catch (error) {
          reasons.push(error instanceof KitError ? error.code : error, context.signal.aborted);
        }
        return "ignored";
      };
      const runEngine = blockedIn === "step" ? engine : await tools.create();
      await runEngine.start(handlers({ run }));
      const { run_id } = await runEngine.startRun({ workflow: "w", payload: {} });
      await begun.opened;
      assert.equal(await runEngine.cancelRun(run_id), true);
      const record = await runEngine.awaitRun(run_id);
      assert.equal(record?.status, "cancelled");
      assert.equal(record?.result, undefined);
      assert.deepEqual(reasons, ["aborted", true]);
    }
  },

  "a run that is cancelled just as it begins does not continue": async (tools) => {
    const engine = await tools.create();
    const run: RunHandler = async (context) => await context.step("long", untilAborted);
    await engine.start(handlers({ run }));
    for (let turn = 0; turn < 10; turn += 1) {
      const { run_id } = await engine.startRun({ workflow: "w", payload: {} });
      for (let tick = 0; tick < turn; tick += 1) await Promise.resolve();
      assert.equal(await engine.cancelRun(run_id), true);
      assert.equal((await engine.awaitRun(run_id))?.status, "cancelled");
    }
  },

  "a caller that waits for a run's end can leave": async (tools) => {
    const engine = await tools.create();
    const { run_id } = await engine.startRun({ workflow: "w", payload: {} });
    const leaving = new AbortController();
    const waiting = engine.awaitRun(run_id, { signal: leaving.signal });
    leaving.abort(new Error("left"));
    await assert.rejects(waiting, { message: "left" });
  },
};

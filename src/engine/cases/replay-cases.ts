import assert from "node:assert/strict";
import type { ContractCase } from "../../base/contract-case.ts";
import { KitError } from "../../base/kit-error.ts";
import type { RunRecord } from "../../protocol/run.ts";
import type { Engine, EngineHandlers, RunContext } from "../contract.ts";
import {
  type EngineCheck,
  type EngineSubject,
  type EngineTools,
  gate,
  handlers,
  toCases,
  untilAborted,
} from "./engine-check.ts";

/** The promises about runs that another process resumes. */
export function replayCases(subject: EngineSubject): readonly ContractCase[] {
  return toCases(subject, { fresh: {}, lasting });
}

export type Run = EngineHandlers["run"];

/** Starts a run, waits until its handler asks to be interrupted, then reopens the engine. */
export async function interrupt(
  tools: EngineTools,
  run: (context: RunContext, stop: () => Promise<never>) => Promise<unknown>,
): Promise<{ readonly engine: Engine; readonly runId: string }> {
  const first = await tools.create();
  const reached = gate();
  await first.start(
    handlers({
      run: (context) =>
        run(context, () => {
          reached.open();
          return untilAborted(context);
        }),
    }),
  );
  const { run_id } = await first.startRun({ workflow: "flow", payload: {} });
  await reached.opened;
  await first.drain({ timeoutMs: 0 });
  return { engine: await tools.reopen(), runId: run_id };
}

export async function finish(engine: Engine, runId: string, run: Run): Promise<RunRecord> {
  await engine.start(handlers({ run }));
  const record = await engine.awaitRun(runId);
  assert.ok(record !== undefined);
  return record;
}

const lasting: Readonly<Record<string, EngineCheck>> = {
  "a run continues after its last finished step, and gets the results of the earlier steps": async (
    tools,
  ) => {
    const done: string[] = [];
    const flow = async (context: RunContext, third: () => Promise<unknown>): Promise<unknown> => {
      const first = await context.step("first", () => {
        done.push("first");
        return { n: 1, gone: undefined };
      });
      const second = await context
        .step("second", () => {
          done.push("second");
          throw new KitError({ code: "forbidden", message: "No.", hint: "Ask.", meta: { by: "Ada" } });
        })
        .catch(({ code, message, hint, meta }: KitError) => ({ code, message, hint, meta }));
      const nothing = await context.step("nothing", () => void done.push("nothing"));
      const time = await context.now();
      const id = await context.uuid();
      await context.step("third", third);
      return { first, second, isNothing: nothing === undefined, time, id };
    };
    let before: { time: number; id: string } | undefined;
    const { engine, runId } = await interrupt(tools, async (context, stop) => {
      const { now, uuid } = context;
      const seen = { time: 0, id: "" };
      const spied: RunContext = {
        ...context,
        now: async () => {
          seen.time = await now();
          return seen.time;
        },
        uuid: async () => {
          seen.id = await uuid();
          before = seen;
          return seen.id;
        },
      };
      return await flow(spied, stop);
    });
    assert.equal((await engine.getRun(runId))?.status, "queued");
    const record = await finish(engine, runId, (context) => {
      assert.equal(context.attempt, 1);
      return flow(context, async () => done.push("third"));
    });
    assert.deepEqual(done, ["first", "second", "nothing", "third"]);
    assert.deepEqual(record.result, {
      first: { n: 1 },
      second: { code: "forbidden", message: "No.", hint: "Ask.", meta: { by: "Ada" } },
      isNothing: true,
      ...before,
    });
  },

  "what a step's work asks of the run belongs to the step: it takes no position, and its keys stay the same":
    async (tools) => {
      const keys: string[] = [];
      const flow = async (context: RunContext, last: () => Promise<unknown>): Promise<unknown> => {
        const outer = await context.step("outer", async () => {
          const inner = await context.step("inner", ({ idempotencyKey }) => {
            keys.push(idempotencyKey);
            return 1;
          });
          const [now, id] = [await context.now(), await context.uuid()];
          await context.sleep(1);
          const refused = await context.waitFor("word").catch(({ message }: Error) => message);
          return { inner, isTime: now > 0, isId: id.length === 36, refused };
        });
        const again = await context.step("again", () => "again");
        const cut = await context.step("cut", async () => {
          await context.step("inner", ({ idempotencyKey }) => keys.push(idempotencyKey));
          return await last();
        });
        return { outer, again, cut };
      };
      const { engine, runId } = await interrupt(tools, flow);
      const { status, result } = await finish(engine, runId, (context) => flow(context, async () => "done"));
      assert.equal(status, "completed");
      assert.deepEqual(result, {
        outer: {
          inner: 1,
          isTime: true,
          isId: true,
          refused:
            'A step cannot wait for the signal "word": the wait would be lost if the process ends. Call waitFor outside the step.',
        },
        again: "again",
        cut: "done",
      });
      // The second step was begun twice, and the first one once.
      assert.deepEqual(keys, [`${runId}:1:1:1`, `${runId}:3:1:1`, `${runId}:3:1:1`]);
    },

  "parallel branches keep their positions, in whatever order they end": async (tools) => {
    const finished: string[] = [];
    // The branches end in turns, each after as many ticks as its code needs.
    const branch = async (context: RunContext, name: string, ticks: number): Promise<string[]> => {
      const lines: string[] = [];
      for (let round = 0; round < 3; round += 1) {
        for (let tick = 0; tick < ticks; tick += 1) await Promise.resolve();
        const work = async ({ idempotencyKey }: { readonly idempotencyKey: string }) => {
          await new Promise((resolve) => setTimeout(resolve, (ticks * 7) % 5));
          finished.push(`${name}${round}`);
          return `${name}${round}@${idempotencyKey.split(":")[1]}`;
        };
        lines.push(await context.step(`${name}${round}`, work));
      }
      return lines;
    };
    const flow = async (context: RunContext): Promise<string[][]> =>
      await Promise.all([branch(context, "a", 9), branch(context, "b", 0), branch(context, "c", 4)]);
    let before: string[][] = [];
    const { engine, runId } = await interrupt(tools, async (context, stop) => {
      before = await flow(context);
      return await stop();
    });
    const record = await finish(engine, runId, flow);
    assert.equal(record.error, undefined);
    assert.deepEqual(record.result, before);
    assert.equal(finished.length, 9);
  },

  "a replay repeats which of two calls ended first": async (tools) => {
    const race = async (context: RunContext): Promise<unknown> =>
      await Promise.race([
        // Longer than a store on another machine needs to record the step.
        context.sleep(500).then(() => "time"),
        context.step("quick", () => 1).then(() => "step"),
        context.waitFor("signal").then(() => "signal"),
      ]);
    const { engine, runId } = await interrupt(tools, async (context, stop) => {
      assert.equal(await race(context), "step");
      await context.sleep(30);
      return await stop();
    });
    await engine.signal(runId, { name: "signal" });
    const record = await finish(engine, runId, async (context) => {
      const first = await race(context);
      await context.sleep(30);
      return first;
    });
    assert.equal(record.result, "step");
  },

  "waits resume: a sleep ends at its time, and a signal that arrived while no worker ran is delivered":
    async (tools) => {
      const flow = async (context: RunContext): Promise<unknown> => {
        const [, signal, late] = await Promise.all([
          context.sleep(30),
          context.waitFor("approval"),
          context.waitFor("never", { timeoutMs: 30 }),
        ]);
        return { signal, isLate: late === undefined };
      };
      const { engine, runId } = await interrupt(tools, async (context, stop) => {
        void flow(context);
        // Once a later position is recorded, the earlier ones are too.
        await context.step("begun", () => 1);
        return await stop();
      });
      await engine.signal(runId, { name: "approval", payload: "yes" });
      const record = await finish(engine, runId, async (context) => {
        const waiting = flow(context);
        await context.step("begun", () => 2);
        return await waiting;
      });
      assert.deepEqual(record.result, { signal: "yes", isLate: true });
    },

  "a handler that finds no run_start in the stream can emit it in a replay": async (tools) => {
    const head = { timestamp: "2026-11-21T10:00:00.000Z", agent: "", session: "" };
    const start = (context: RunContext): number | undefined => {
      const { id } = context;
      return context.emit({
        type: "run_start",
        workflow: "w",
        ...head,
        instance_id: id,
        operation_id: id,
        run_id: id,
      });
    };
    const { engine, runId } = await interrupt(tools, async (context, stop) => {
      await context.step("one", () => 1);
      return await stop();
    });
    const reported: unknown[] = [];
    await finish(engine, runId, async (context) => {
      reported.push(start(context));
      await context.step("one", () => 1);
    });
    assert.equal(typeof reported[0], "number");
    const [event] = await engine.events.read(`run/${runId}`, { types: ["run_start"] });
    assert.equal(event?.index, reported[0]);
  },

  "a replay does not emit earlier events again": async (tools) => {
    const print = (context: RunContext, message: string): number | undefined =>
      context.emit({
        type: "log",
        level: "info",
        message,
        timestamp: "2026-11-21T10:00:00.000Z",
        agent: "",
        instance_id: context.id,
        session: "",
        operation_id: context.id,
        run_id: context.id,
      });
    const { engine, runId } = await interrupt(tools, async (context, stop) => {
      print(context, "begin");
      await context.step("one", () => 1);
      print(context, "between");
      await context.step("two", () => 2);
      return await stop();
    });
    const reported: unknown[] = [];
    const record = await finish(engine, runId, async (context) => {
      reported.push(print(context, "begin"));
      await context.step("one", () => 1);
      reported.push(print(context, "between"));
      await context.step("two", () => 2);
      reported.push(print(context, "end"));
    });
    assert.deepEqual(reported.slice(0, 2), [undefined, undefined]);
    assert.equal(record.event_count, 3);
    const events = await engine.events.read(`run/${runId}`);
    assert.deepEqual(
      events.map((event) => (event.type === "log" ? event.message : "")),
      ["begin", "between", "end"],
    );
  },

  "a dispatch of a run is admitted once": async (tools) => {
    const target = { agent: "reviewer", instance_id: "pr-7", session: "default", input: "look" };
    let before: unknown;
    const { engine, runId } = await interrupt(tools, async (context, stop) => {
      before = await context.dispatch(target);
      return await stop();
    });
    const record = await finish(engine, runId, (context) => context.dispatch(target));
    assert.deepEqual(record.result, before);
    assert.equal((await engine.listDispatches()).items.length, 1);
  },

  "a cancelled run is not resumed": async (tools) => {
    const { engine, runId } = await interrupt(tools, async (context, stop) => {
      await context.step("one", () => 1);
      return await stop();
    });
    assert.equal(await engine.cancelRun(runId), true);
    let again = 0;
    const record = await finish(engine, runId, async () => again++);
    assert.equal(record.status, "cancelled");
    assert.equal(again, 0);
  },
};

import assert from "node:assert/strict";
import { setTimeout } from "node:timers/promises";
import type { ContractCase } from "../../base/contract-case.ts";
import { KitError } from "../../base/kit-error.ts";
import type { RunRecord } from "../../protocol/run.ts";
import type { Engine, EngineHandlers, RunContext } from "../contract.ts";
import {
  type EngineCheck,
  type EngineSubject,
  gate,
  handlers,
  sessionKey as key,
  toCases,
  untilAborted,
} from "./engine-check.ts";

/** The promises about the calls of a run's context: steps, dispatches, events, waits. */
export function stepCases(subject: EngineSubject): readonly ContractCase[] {
  return toCases(subject, { fresh: { ...steps, ...waits } });
}

/** Starts a run with a handler, and returns its record once it has ended. */
async function runWith(
  engine: Engine,
  run: EngineHandlers["run"],
  payload: unknown = {},
): Promise<RunRecord> {
  await engine.start(handlers({ run }));
  const { run_id } = await engine.startRun({ workflow: "flow", payload });
  const record = await engine.awaitRun(run_id);
  assert.ok(record !== undefined);
  return record;
}

const steps: Readonly<Record<string, EngineCheck>> = {
  "a step returns the result of its work, which gets a key of its own": async (tools) => {
    const engine = await tools.create();
    const { run_id, result } = await runWith(engine, async (context) => {
      const reported = await context.step("first", ({ idempotencyKey, attempt }) => ({
        idempotencyKey,
        attempt,
      }));
      const nothing = await context.step("second", () => undefined);
      const both = await Promise.all([
        context.step("left", async ({ idempotencyKey }) => idempotencyKey),
        context.step("right", async ({ idempotencyKey }) => idempotencyKey),
      ]);
      return { reported, isNothing: nothing === undefined, both };
    });
    assert.deepEqual(result, {
      reported: { idempotencyKey: `${run_id}:1`, attempt: 1 },
      isNothing: true,
      both: [`${run_id}:3`, `${run_id}:4`],
    });
  },

  "the journal lists a run's steps, sleeps and waits with their results, in pages": async (tools) => {
    const engine = await tools.create();
    if (engine.readJournal === undefined) return;
    const schema = { type: "object" };
    await engine.start(
      handlers({
        run: async (context) => {
          await context.step("first", () => ({ read: 3 }));
          await context.step("large", () => "x".repeat(100_000));
          await context
            .step("broken", () => {
              throw new KitError({ code: "model_error", message: "It is down." });
            })
            .catch(() => undefined);
          await context.sleep(1);
          return await context.waitFor("go", { schema });
        },
      }),
    );
    const { run_id } = await engine.startRun({ workflow: "flow", payload: {} });
    const read = async (after = 0, limit = 100) =>
      (await engine.readJournal?.(run_id, { after, limit })) ?? [];
    while ((await read()).length < 5) await setTimeout(5);
    const entries = await read();
    assert.deepEqual(
      entries.map(({ position, kind, name, state }) => [position, kind, name, state]),
      [
        [1, "step", "first", "done"],
        [2, "step", "large", "done"],
        [3, "step", "broken", "failed"],
        [4, "sleep", undefined, "done"],
        [5, "wait", "go", "pending"],
      ],
    );
    assert.deepEqual(entries[0]?.value, { read: 3 });
    assert.equal(entries[1]?.value, undefined);
    assert.ok((entries[1]?.value_omitted ?? 0) > 100_000);
    assert.deepEqual(entries[2]?.error, { type: "model_error", message: "It is down." });
    assert.deepEqual(entries[4]?.schema, schema);
    assert.deepEqual(
      (await read(1, 2)).map(({ position }) => position),
      [2, 3],
    );
    await engine.signal(run_id, { name: "go", payload: { version: 2 } });
    await engine.awaitRun(run_id);
    assert.deepEqual((await read(4))[0]?.value, { version: 2 });
    assert.equal(await engine.readJournal("run_none", { after: 0, limit: 1 }), undefined);
  },

  "a step is attempted as often as its options say; the run can catch its last error": async (tools) => {
    const engine = await tools.create();
    const attempts: number[] = [];
    const { result } = await runWith(engine, async (context) => {
      const third = await context.step(
        "shaky",
        ({ attempt }) => {
          attempts.push(attempt);
          if (attempt < 3) throw new Error("not yet");
          return "there";
        },
        { attempts: 3, backoffMs: 1 },
      );
      const refused = await context
        .step("refused", () => {
          throw new KitError({ code: "forbidden", message: "Not today.", meta: { until: "tomorrow" } });
        })
        .catch((error: KitError) => [error.code, error.message, error.meta]);
      const foreign = await context
        .step("foreign", () => Promise.reject(new TypeError("/home/ada/secret")))
        .catch((error: KitError) => [error.code, error.message]);
      return { third, refused, foreign };
    });
    assert.deepEqual(attempts, [1, 2, 3]);
    assert.deepEqual(result, {
      third: "there",
      refused: ["forbidden", "Not today.", { until: "tomorrow" }],
      foreign: ["internal_error", 'The step "foreign" failed.'],
    });
  },

  "a step that takes too long fails, and its signal fires": async (tools) => {
    const engine = await tools.create();
    const reasons: unknown[] = [];
    const { status, error } = await runWith(engine, async (context) => {
      await context.step(
        "slow",
        async ({ signal }) => {
          await untilAborted({ signal }).catch((reason: KitError) => reasons.push(reason.code));
          return "too late";
        },
        { timeoutMs: 5 },
      );
    });
    assert.equal(status, "failed");
    assert.equal(error?.type, "unavailable");
    assert.match(error?.message ?? "", /"slow" did not end within 5 ms/);
    assert.deepEqual(reasons, ["unavailable"]);
  },

  "a value that is not JSON is refused, and the error names the step and the property": async (tools) => {
    const engine = await tools.create();
    const { result } = await runWith(engine, async (context) => {
      const refused = (value: unknown): Promise<unknown> =>
        context.step("odd", () => value).catch((error: KitError) => [error.code, error.message]);
      return [
        await refused({ list: [1, { when: new Date() }] }),
        await refused(new Map()),
        await refused(1n),
      ];
    });
    assert.deepEqual(result, [
      ["internal_error", 'The result of step "odd" is not JSON: list[1].when is a Date.'],
      ["internal_error", 'The result of step "odd" is not JSON: it is a Map.'],
      ["internal_error", 'The result of step "odd" is not JSON: it is a bigint.'],
    ]);
  },

  "an invalid name or time is refused": async (tools) => {
    const engine = await tools.create();
    const { result } = await runWith(engine, async (context) => {
      const calls = [
        context.step("", () => 1),
        context.step("a", () => 1, { attempts: 0 }),
        context.step("a", () => 1, { timeoutMs: -1 }),
        context.sleep(Number.NaN),
        context.waitFor("", {}),
        context.waitFor("a", { timeoutMs: Number.POSITIVE_INFINITY }),
      ];
      return await Promise.all(calls.map((call) => call.catch((error: KitError) => error.code)));
    });
    assert.deepEqual(
      result,
      Array.from({ length: 6 }, () => "internal_error"),
    );
  },

  "a run dispatches an input once": async (tools) => {
    const engine = await tools.create();
    const { result } = await runWith(
      engine,
      async (context) => await context.dispatch({ ...key, input: "look" }),
    );
    const { dispatch_id } = result as { readonly dispatch_id: string };
    const record = await engine.awaitDispatch(dispatch_id);
    assert.equal(record?.input, "look");
    assert.equal((await engine.listDispatches()).items.length, 1);
  },

  "events of a run are numbered from 1 and counted, and their stream ends with the run": async (tools) => {
    const engine = await tools.create();
    const { run_id, event_count } = await runWith(engine, async (context) => {
      assert.equal(context.emit(eventOf(context, "one")), 1);
      await context.step("s", () => void context.emit(eventOf(context, "two")));
      assert.equal(context.emit(eventOf(context, "three")), 3);
    });
    assert.equal(event_count, 3);
    const messages: unknown[] = [];
    for await (const received of engine.events.subscribe(`run/${run_id}`)) {
      messages.push([received.index, received.type === "log" ? received.message : ""]);
    }
    assert.deepEqual(messages, [
      [1, "one"],
      [2, "two"],
      [3, "three"],
    ]);
  },

  "an event of a run is counted once, also while it is written": async (tools) => {
    const engine = await tools.create();
    const counted: unknown[] = [];
    const expected: number[] = [];
    await runWith(engine, async (context) => {
      for (let number = 1; number <= 20; number += 1) {
        context.emit(eventOf(context, `${number}`));
        const reading = Array.from({ length: 5 }, () => engine.getRun(context.id));
        await engine.events.flush();
        for (const record of await Promise.all(reading)) {
          counted.push(record?.event_count);
          expected.push(number);
        }
      }
    });
    assert.deepEqual(counted, expected);
  },
};

const waits: Readonly<Record<string, EngineCheck>> = {
  "early signals are kept in order, and signals with the same key are delivered once": async (tools) => {
    const engine = await tools.create();
    const { run_id } = await engine.startRun({ workflow: "w", payload: {} });
    await engine.signal(run_id, { name: "note", payload: 1, idempotency_key: "a" });
    await engine.signal(run_id, { name: "note", payload: 2 });
    await engine.signal(run_id, { name: "note", payload: 1, idempotency_key: "a" });
    await engine.signal(run_id, { name: "other" });
    await engine.start(
      handlers({
        run: async (context) => [
          await context.waitFor("note"),
          await Promise.all([context.waitFor("other"), context.waitFor("note"), context.waitFor("note")]),
        ],
      }),
    );
    await engine.signal(run_id, { name: "note", payload: { last: true } });
    const record = await engine.awaitRun(run_id);
    assert.deepEqual(record?.result, [1, [null, 2, { last: true }]]);
    await assert.rejects(engine.signal(run_id, { name: "note" }), { code: "conflict" });
    await assert.rejects(engine.signal("run_none", { name: "note" }), { code: "run_not_found" });
  },

  "a wait ends after its timeout, and time passes during a sleep": async (tools) => {
    const engine = await tools.create();
    const { result } = await runWith(engine, async (context) => {
      const before = await context.now();
      await context.sleep(15);
      const after = await context.now();
      const never = await context.waitFor("never", { timeoutMs: 5 });
      const first = await Promise.race([context.sleep(60_000), context.sleep(1).then(() => "short")]);
      return { slept: after - before >= 14, isNothing: never === undefined, first };
    });
    assert.deepEqual(result, { slept: true, isNothing: true, first: "short" });
  },

  "a run's record has the signal that it waits for, and the deadline": async (tools) => {
    const engine = await tools.create();
    const begun = gate();
    await engine.start(
      handlers({
        run: async (context) => {
          const waits = [
            context.waitFor("approval"),
            context.sleep(3_600_000),
            context.waitFor("word", { timeoutMs: 60_000 }),
            // Later than any date.
            context.waitFor("forever", { timeoutMs: 8.64e15 }),
          ];
          // Its end is written after all earlier begins.
          await context.step("behind them", () => 1);
          begun.open();
          return await Promise.race([waits[0], Promise.all(waits)]);
        },
      }),
    );
    const before = Date.now();
    const { run_id } = await engine.startRun({ workflow: "w", payload: {} });
    await begun.opened;
    const waits = (await engine.getRun(run_id))?.waiting_for ?? [];
    assert.deepEqual(
      waits.map(({ signal }) => signal),
      ["approval", undefined, "word", "forever"],
    );
    const times = waits.map(({ until }) => (until === undefined ? undefined : Date.parse(until) - before));
    const [none, hour, minute, never] = times;
    assert.deepEqual([none, never], [undefined, undefined]);
    assert.ok(hour !== undefined && hour >= 3_599_000 && minute !== undefined && minute >= 59_000);
    assert.ok(minute < hour);
    const [listed] = (await engine.listRuns()).items;
    assert.deepEqual(listed?.waiting_for, waits);
    await engine.signal(run_id, { name: "approval", payload: "yes" });
    const ended = await engine.awaitRun(run_id);
    assert.deepEqual([ended?.result, ended?.waiting_for], ["yes", undefined]);
  },

  "a waiting run gets a signal": async (tools) => {
    const engine = await tools.create();
    const waiting = gate();
    await engine.start(
      handlers({
        run: async (context) => {
          await context.step("ready", () => waiting.open());
          return await context.waitFor("approval");
        },
      }),
    );
    const { run_id } = await engine.startRun({ workflow: "w", payload: {} });
    await waiting.opened;
    await engine.signal(run_id, { name: "approval", payload: "yes" });
    assert.equal((await engine.awaitRun(run_id))?.result, "yes");
  },
};

function eventOf({ id }: RunContext, message: string) {
  return {
    type: "log",
    level: "info",
    message,
    timestamp: "2026-11-21T10:00:00.000Z",
    agent: "",
    instance_id: id,
    session: "",
    operation_id: id,
    run_id: id,
  } as const;
}

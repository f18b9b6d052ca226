import assert from "node:assert/strict";
import type { ContractCase } from "../../base/contract-case.ts";
import { KitError } from "../../base/kit-error.ts";
import {
  type EngineCheck,
  type EngineSubject,
  gate,
  handlers,
  sessionKey as key,
  toCases,
  untilAborted,
} from "./engine-check.ts";

const other = { ...key, instance_id: "pr-8" };
const echo = handlers({ dispatch: async (_, { input }) => ({ echo: input }) });

/** The promises about inputs: admission, order, attempts, ends. */
export function dispatchCases(subject: EngineSubject): readonly ContractCase[] {
  return toCases(subject, { fresh, lasting });
}

const fresh: Readonly<Record<string, EngineCheck>> = {
  "an input waits until the engine is started, and ends with the result of its handler": async (tools) => {
    const engine = await tools.create();
    const { dispatch_id, accepted_at } = await engine.admit({ ...key, input: { text: "hello" } });
    const waiting = await engine.getDispatch(dispatch_id);
    assert.deepEqual(waiting, {
      ...key,
      dispatch_id,
      accepted_at,
      status: "queued",
      input: { text: "hello" },
      attempts: 0,
    });
    await engine.start(echo);
    const record = await engine.awaitDispatch(dispatch_id);
    assert.equal(record?.status, "completed");
    assert.deepEqual(record?.result, { echo: { text: "hello" } });
    assert.equal(record?.attempts, 1);
    assert.ok(record?.started_at !== undefined && record.ended_at !== undefined);
    assert.equal(await engine.getDispatch("dispatch_none"), undefined);
    assert.equal(await engine.awaitDispatch("dispatch_none"), undefined);
  },

  "the process that does the work knows which inputs can join the work of a session, by their principal":
    async (tools) => {
      const engine = await tools.create();
      if (engine.waitingInputs === undefined) return;
      const [begun, release] = [gate(), gate()];
      await engine.admit({ ...key, input: 1 });
      // It waits while no process works, and its size makes no difference.
      const second = await engine.admit({ ...key, input: "2".repeat(100_000), joins: true });
      await engine.start(
        handlers({
          dispatch: async () => {
            begun.open();
            await release.opened;
          },
        }),
      );
      await begun.opened;
      await engine.admit({ ...key, input: "joins" });
      const trace = { traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01" };
      const third = await engine.admit({ ...key, input: 3, joins: true, trace });
      await engine.admit({ ...other, input: 4, joins: true });
      const foreign = await engine.admit({ ...key, input: 5, joins: true, principal: "p" });
      // The news of an input can take a moment.
      const expected = [second.dispatch_id, third.dispatch_id];
      const foreigner = { ...key, principal: "p" };
      for (let round = 0; round < 200 && engine.waitingInputs(foreigner).length < 1; round += 1)
        await new Promise((resolve) => setTimeout(resolve, 10));
      assert.deepEqual(engine.waitingInputs(key), expected);
      assert.deepEqual(engine.waitingInputs(foreigner), [foreign.dispatch_id]);
      release.open();
      for (const id of [...expected, foreign.dispatch_id]) await engine.awaitDispatch(id);
      assert.deepEqual(engine.waitingInputs(key), []);
    },

  "payloads of any size are read back unchanged": async (tools) => {
    const engine = await tools.create();
    await engine.start(echo);
    const large = "é🦊\u2028\n".repeat(100_000);
    for (const input of [null, "", 0, false, [], {}, "blob:00", { a: [1, { b: null }] }, large, { large }]) {
      const { dispatch_id } = await engine.admit({ ...key, input });
      const record = await engine.awaitDispatch(dispatch_id);
      assert.deepEqual(record?.input, input);
      assert.deepEqual(record?.result, { echo: input });
    }
  },

  "an input that is not JSON is refused": async (tools) => {
    const engine = await tools.create();
    const circle: unknown[] = [];
    circle.push(circle);
    for (const input of [{ at: new Date() }, { size: 1n }, [Number.NaN], { run: () => 1 }, circle]) {
      await assert.rejects(engine.admit({ ...key, input }), { code: "invalid_request" });
    }
    assert.deepEqual((await engine.listDispatches()).items, []);
  },

  "a handler gets the input's key and the number of the attempt": async (tools) => {
    const engine = await tools.create({ backoffMs: 1 });
    const reported: unknown[] = [];
    let fence = 0;
    await engine.start(
      handlers({
        dispatch: async (context, request) => {
          reported.push([context.id, context.attempt, request]);
          fence = context.fence;
          if (context.attempt === 1) throw new KitError({ code: "model_error", message: "Overloaded." });
        },
      }),
    );
    const request = { ...key, input: 1, idempotency_key: "k" };
    const { dispatch_id } = await engine.admit(request);
    const record = await engine.awaitDispatch(dispatch_id);
    assert.deepEqual(reported, [
      [dispatch_id, 1, request],
      [dispatch_id, 2, request],
    ]);
    assert.ok(fence > 0);
    assert.equal(record?.result, undefined);
    assert.equal(record?.idempotency_key, "k");
  },

  "the same idempotency key returns the same receipt, and the work is done once": async (tools) => {
    const engine = await tools.create();
    let times = 0;
    await engine.start(handlers({ dispatch: async () => (times += 1) }));
    const request = { ...key, input: { a: 1, b: 2 }, idempotency_key: "delivery-1" };
    const [first, second] = await Promise.all([engine.admit(request), engine.admit(request)]);
    assert.deepEqual(second, first);
    await engine.awaitDispatch(first.dispatch_id);
    assert.deepEqual(await engine.admit({ ...request, input: { b: 2, a: 1 } }), first);
    assert.equal(times, 1);
  },

  "the same idempotency key with another input is a conflict, within agent and instance": async (tools) => {
    const engine = await tools.create();
    const request = { ...key, input: 1, idempotency_key: "delivery-1" };
    const { dispatch_id } = await engine.admit(request);
    const conflict = { code: "conflict" };
    await assert.rejects(engine.admit({ ...request, input: 2 }), conflict);
    await assert.rejects(engine.admit({ ...request, session: "other" }), conflict);
    for (const elsewhere of [{ instance_id: "pr-8" }, { agent: "writer" }]) {
      const receipt = await engine.admit({ ...request, ...elsewhere, input: 2 });
      assert.notEqual(receipt.dispatch_id, dispatch_id);
    }
  },

  "a session has one writer at a time, in the order of admission": async (tools) => {
    const engine = await tools.create({ running: 8 });
    const order = new Map<string, unknown[]>();
    const active = new Set<string>();
    await engine.start(
      handlers({
        dispatch: async (_, { instance_id, input }) => {
          assert.ok(!active.has(instance_id), "two inputs of one session at a time");
          active.add(instance_id);
          await new Promise(setImmediate);
          order.set(instance_id, [...(order.get(instance_id) ?? []), input]);
          active.delete(instance_id);
        },
      }),
    );
    const inputs = Array.from({ length: 20 }, (_, index) => index);
    const receipts = inputs.flatMap((input) =>
      ["a", "b", "c"].map((instance_id) => engine.admit({ ...key, instance_id, input })),
    );
    for (const receipt of await Promise.all(receipts)) {
      assert.equal((await engine.awaitDispatch(receipt.dispatch_id))?.status, "completed");
    }
    for (const instance_id of ["a", "b", "c"]) assert.deepEqual(order.get(instance_id), inputs);
  },

  "sessions work concurrently, up to the limit of the engine": async (tools) => {
    const engine = await tools.create({ running: 3 });
    const complete = gate();
    const end = gate();
    let active = 0;
    let most = 0;
    await engine.start(
      handlers({
        dispatch: async () => {
          active += 1;
          most = Math.max(most, active);
          if (active === 3) complete.open();
          await end.opened;
          active -= 1;
        },
      }),
    );
    const receipts = await Promise.all(
      Array.from({ length: 7 }, (_, index) => engine.admit({ ...key, session: `s${index}`, input: index })),
    );
    await complete.opened;
    end.open();
    await Promise.all(receipts.map(({ dispatch_id }) => engine.awaitDispatch(dispatch_id)));
    assert.equal(most, 3);
  },

  "work that releases its slot lets other work begin, except work of the same session": async (tools) => {
    const engine = await tools.create({ running: 1 });
    const permission = gate();
    const ended: unknown[] = [];
    await engine.start(
      handlers({
        async dispatch({ releaseSlot }, { input }) {
          if (input === "asks") {
            const goOn = releaseSlot();
            await permission.opened;
            goOn();
          }
          ended.push(input);
        },
        async run({ releaseSlot }) {
          const goOn = releaseSlot();
          await permission.opened;
          goOn();
        },
      }),
    );
    const { run_id } = await engine.startRun({ workflow: "asks", payload: {} });
    const requires = await engine.admit({ ...key, input: "asks" });
    await engine.admit({ ...key, input: "next" });
    // An engine that an executor calls begins the work of other sessions in any order.
    while ((await engine.getDispatch(requires.dispatch_id))?.status !== "running")
      await new Promise((resolve) => setTimeout(resolve, 5));
    const another = await engine.admit({ ...other, input: "another" });
    await engine.awaitDispatch(another.dispatch_id);
    assert.equal((await engine.getDispatch(requires.dispatch_id))?.status, "running");
    permission.open();
    await engine.awaitDispatch(requires.dispatch_id);
    assert.equal((await engine.awaitRun(run_id))?.status, "completed");
    const last = await engine.admit({ ...key, input: "last" });
    await engine.awaitDispatch(last.dispatch_id);
    assert.deepEqual(ended, ["another", "asks", "next", "last"]);
  },

  "a session with much work does not delay another session": async (tools) => {
    const engine = await tools.create({ running: 1 });
    const order: string[] = [];
    for (let index = 0; index < 10; index += 1) await engine.admit({ ...key, input: index });
    const { dispatch_id } = await engine.admit({ ...other, input: "other" });
    await engine.start(handlers({ dispatch: async (_, { instance_id }) => order.push(instance_id) }));
    await engine.awaitDispatch(dispatch_id);
    assert.ok(order.indexOf(other.instance_id) <= 1, order.join(" "));
  },

  "a full session is refused, and other sessions are not": async (tools) => {
    const engine = await tools.create({ waitingPerSession: 3 });
    for (let index = 0; index < 3; index += 1) await engine.admit({ ...key, input: index });
    const refusal = await engine.admit({ ...key, input: 3 }).catch((error: unknown) => error);
    assertRefusal(refusal, "too_many_requests");
    await engine.admit({ ...other, input: 0 });
    const { items } = await engine.listDispatches();
    assert.equal(items.length, 4);
  },

  "a full engine refuses inputs, and has room again once an input has ended": async (tools) => {
    const engine = await tools.create({ waiting: 3 });
    const receipts = await Promise.all(
      [0, 1, 2].map((index) => engine.admit({ ...key, instance_id: `i${index}`, input: index })),
    );
    assertRefusal(await engine.admit({ ...key, input: 3 }).catch((error: unknown) => error), "unavailable");
    await engine.start(echo);
    await Promise.all(receipts.map(({ dispatch_id }) => engine.awaitDispatch(dispatch_id)));
    await engine.admit({ ...key, input: 3 });
  },

  "a caller can stop waiting for an end": async (tools) => {
    const engine = await tools.create();
    const { dispatch_id } = await engine.admit({ ...key, input: 1 });
    const leave = new AbortController();
    const wait = engine.awaitDispatch(dispatch_id, { signal: leave.signal });
    leave.abort("enough");
    assert.equal(await wait.catch((reason: unknown) => reason), "enough");
    assert.equal((await engine.getDispatch(dispatch_id))?.status, "queued");
  },

  "a drain waits for running work, accepts no more work, and rejects waiting callers": async (tools) => {
    const engine = await tools.create();
    const begun = gate();
    const end = gate();
    await engine.start(handlers({}));
    const call = engine.inLine(key, async () => {
      begun.open();
      await end.opened;
      return "in time";
    });
    await begun.opened;
    const { dispatch_id } = await engine.admit({ ...key, input: 2 });
    const left = engine.awaitDispatch(dispatch_id).catch((error: unknown) => error);
    const drained = engine.drain();
    await assert.rejects(engine.admit({ ...key, input: 3 }), { code: "unavailable" });
    end.open();
    assert.equal(await call, "in time");
    await drained;
    assertRefusal(await left, "unavailable");
    await assert.rejects(engine.getDispatch(dispatch_id), { code: "unavailable" });
  },
};

const lasting: Readonly<Record<string, EngineCheck>> = {
  "accepted inputs survive a restart, and are done in order": async (tools) => {
    const before = await tools.create();
    const large = "x".repeat(300_000);
    for (const input of ["a", "b", large]) await before.admit({ ...key, input });
    const { items } = await before.listDispatches();
    await before.drain();
    const engine = await tools.reopen();
    assert.deepEqual((await engine.listDispatches()).items, items);
    const seen: unknown[] = [];
    await engine.start(handlers({ dispatch: async (_, { input }) => seen.push(input) }));
    const { dispatch_id } = await engine.admit({ ...key, input: "c" });
    await engine.awaitDispatch(dispatch_id);
    assert.deepEqual(seen, ["a", "b", large, "c"]);
  },

  "the next start resumes work that a drain has aborted, with a higher fence and without counting the attempt":
    async (tools) => {
      const before = await tools.create();
      const begun = gate();
      const fences: number[] = [];
      let reason: unknown;
      await before.start(
        handlers({
          dispatch: async (context) => {
            fences.push(context.fence);
            begun.open();
            await untilAborted(context).catch((error: unknown) => {
              reason = error;
              throw error;
            });
          },
        }),
      );
      const { dispatch_id } = await before.admit({ ...key, input: 1 });
      await begun.opened;
      await before.drain({ timeoutMs: 0 });
      assert.ok(reason instanceof KitError && reason.code === "aborted");
      const engine = await tools.reopen();
      assert.equal((await engine.getDispatch(dispatch_id))?.status, "queued");
      await engine.start(handlers({ dispatch: async ({ fence }) => fences.push(fence) }));
      const record = await engine.awaitDispatch(dispatch_id);
      assert.equal(record?.status, "completed");
      assert.equal(record?.attempts, 1);
      assert.ok((fences[1] ?? 0) > (fences[0] ?? 0));
    },

  "idempotency keys and dead letters survive a restart": async (tools) => {
    const before = await tools.create();
    await before.start(
      handlers({
        dispatch: async () => {
          throw new Error("broken");
        },
      }),
    );
    const request = { ...key, input: 1, idempotency_key: "k" };
    const receipt = await before.admit(request);
    await before.awaitDispatch(receipt.dispatch_id);
    await before.drain();
    const engine = await tools.reopen();
    const { error, ...again } = await engine.admit(request);
    assert.deepEqual(again, receipt);
    assert.equal(error?.type, "internal_error");
    await engine.redrive(receipt.dispatch_id);
    await engine.start(echo);
    assert.equal((await engine.awaitDispatch(receipt.dispatch_id))?.status, "completed");
  },
};

function assertRefusal(error: unknown, code: string): void {
  assert.ok(error instanceof KitError, String(error));
  assert.equal(error.code, code);
  assert.ok(Number(error.meta?.retry_after_s) > 0);
}

import assert from "node:assert/strict";
import type { ContractCase } from "../../base/contract-case.ts";
import {
  type EngineCheck,
  type EngineSubject,
  gate,
  handlers,
  sessionKey as key,
  toCases,
  untilAborted,
} from "./engine-check.ts";

/** The promises about inputs whose caller waits for the answer. */
export function callCases(subject: EngineSubject): readonly ContractCase[] {
  return toCases(subject, { fresh });
}

const fresh: Readonly<Record<string, EngineCheck>> = {
  "a call gives what the handler gave, throws what it threw, and leaves no record": async (tools) => {
    const engine = await tools.create();
    const failure = new Error("broken");
    const result = { at: new Date() };
    await engine.start(
      handlers({
        dispatch: async (_, { input }) => {
          if (input === "fail") throw failure;
          return result;
        },
      }),
    );
    assert.equal(await engine.call({ ...key, input: "go" }), result);
    assert.equal(await engine.call({ ...key, input: "fail" }).catch((error: unknown) => error), failure);
    assert.deepEqual((await engine.listDispatches()).items, []);
  },

  "a call is in line with the other inputs of its session": async (tools) => {
    const engine = await tools.create();
    const order: unknown[] = [];
    await engine.admit({ ...key, input: "a" });
    await engine.admit({ ...key, input: "b" });
    const early = engine.call({ ...key, input: "c" });
    await engine.start(handlers({ dispatch: async (_, { input }) => order.push(input) }));
    const { dispatch_id } = await engine.admit({ ...key, input: "d" });
    await Promise.all([early, engine.awaitDispatch(dispatch_id), engine.call({ ...key, input: "e" })]);
    assert.deepEqual(order.slice(0, 2), ["a", "b"]);
    assert.deepEqual(order.toSorted(), ["a", "b", "c", "d", "e"]);
    assert.ok(order.indexOf("d") < order.indexOf("e"));
  },

  "a call counts among those that wait": async (tools) => {
    const engine = await tools.create({ waitingPerSession: 2 });
    const begun = gate();
    const end = gate();
    await engine.start(
      handlers({
        dispatch: async () => {
          begun.open();
          await end.opened;
        },
      }),
    );
    const first = engine.call({ ...key, input: 1 });
    await begun.opened;
    const second = engine.call({ ...key, input: 2 });
    const third = engine.call({ ...key, input: 3 });
    await assert.rejects(engine.call({ ...key, input: 4 }), { code: "too_many_requests" });
    await assert.rejects(engine.admit({ ...key, input: 4 }), { code: "too_many_requests" });
    end.open();
    await Promise.all([first, second, third]);
  },

  "a caller who leaves takes the input along, whether it waits or runs": async (tools) => {
    const engine = await tools.create();
    const begun = gate();
    const ended = gate();
    const seen: unknown[] = [];
    await engine.start(
      handlers({
        dispatch: async (context, { input }) => {
          seen.push(input);
          if (input !== "runs") return;
          begun.open();
          await untilAborted(context).finally(() => ended.open());
        },
      }),
    );
    const leave = new AbortController();
    const calls = ["runs", "waits"].map((input) =>
      engine.call({ ...key, input }, { signal: leave.signal }).catch((reason: unknown) => reason),
    );
    await begun.opened;
    leave.abort("gone");
    assert.deepEqual(await Promise.all(calls), ["gone", "gone"]);
    await ended.opened;
    await engine.call({ ...key, input: "next" });
    assert.deepEqual(seen, ["runs", "next"]);
    assert.equal(
      await engine.call({ ...key, input: "late" }, { signal: leave.signal }).catch((reason) => reason),
      "gone",
    );
  },

  "a call with a key outlives its caller, and a second one is given the same result": async (tools) => {
    const engine = await tools.create();
    const begun = gate();
    const end = gate();
    let times = 0;
    await engine.start(
      handlers({
        dispatch: async () => {
          times += 1;
          begun.open();
          await end.opened;
          return { times };
        },
      }),
    );
    const leave = new AbortController();
    const request = { ...key, input: "go", idempotency_key: "k" };
    const first = engine.call(request, { signal: leave.signal }).catch((reason: unknown) => reason);
    await begun.opened;
    leave.abort("gone");
    assert.equal(await first, "gone");
    const second = engine.call(request);
    end.open();
    assert.deepEqual(await second, { times: 1 });
    assert.deepEqual(await engine.call(request), { times: 1 });
    await assert.rejects(engine.call({ ...request, input: "other" }), { code: "conflict" });
  },

  "a call with a key that fails says why, also the second time": async (tools) => {
    const engine = await tools.create();
    await engine.start(
      handlers({
        dispatch: async () => {
          throw new Error("broken");
        },
      }),
    );
    const request = { ...key, input: "go", idempotency_key: "k" };
    await assert.rejects(engine.call(request), { code: "internal_error" });
    await assert.rejects(engine.call(request), { code: "internal_error" });
  },
};

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

/** The promises about work in the line of a session, whose callers wait for the answer. */
export function callCases(subject: EngineSubject): readonly ContractCase[] {
  return toCases(subject, { fresh });
}

const fresh: Readonly<Record<string, EngineCheck>> = {
  "work in line returns its result, throws its error, and leaves no record": async (tools) => {
    const engine = await tools.create();
    const failure = new Error("broken");
    const result = { at: new Date() };
    await engine.start(handlers({}));
    assert.equal(await engine.inLine(key, async () => result), result);
    const fail = async (): Promise<never> => {
      throw failure;
    };
    assert.equal(await engine.inLine(key, fail).catch((error: unknown) => error), failure);
    assert.deepEqual((await engine.listDispatches()).items, []);
  },

  "work in line and the inputs of its session run in one order": async (tools) => {
    const engine = await tools.create();
    const order: unknown[] = [];
    await engine.admit({ ...key, input: "a" });
    await engine.admit({ ...key, input: "b" });
    const early = engine.inLine(key, async () => order.push("c"));
    await engine.start(handlers({ dispatch: async (_, { input }) => order.push(input) }));
    const { dispatch_id } = await engine.admit({ ...key, input: "d" });
    await Promise.all([
      early,
      engine.awaitDispatch(dispatch_id),
      engine.inLine(key, async () => order.push("e")),
    ]);
    assert.deepEqual(order.slice(0, 2), ["a", "b"]);
    assert.deepEqual(order.toSorted(), ["a", "b", "c", "d", "e"]);
    assert.ok(order.indexOf("d") < order.indexOf("e"));
  },

  "work in line counts as waiting input": async (tools) => {
    const engine = await tools.create({ waitingPerSession: 2 });
    const begun = gate();
    const end = gate();
    await engine.start(handlers({}));
    const work = async (): Promise<void> => {
      begun.open();
      await end.opened;
    };
    const first = engine.inLine(key, work);
    await begun.opened;
    const second = engine.inLine(key, work);
    const third = engine.inLine(key, work);
    await assert.rejects(engine.inLine(key, work), { code: "too_many_requests" });
    await assert.rejects(engine.admit({ ...key, input: 4 }), { code: "too_many_requests" });
    end.open();
    await Promise.all([first, second, third]);
  },

  "a caller that leaves cancels its work, whether it waits or runs": async (tools) => {
    const engine = await tools.create();
    const begun = gate();
    const ended = gate();
    const seen: unknown[] = [];
    await engine.start(handlers({}));
    const leave = new AbortController();
    const call = (name: string): Promise<unknown> =>
      engine
        .inLine(
          key,
          async (context) => {
            seen.push(name);
            begun.open();
            await untilAborted(context).finally(() => ended.open());
          },
          { signal: leave.signal },
        )
        .catch((reason: unknown) => reason);
    const calls = [call("runs"), call("waits")];
    await begun.opened;
    leave.abort("gone");
    assert.deepEqual(await Promise.all(calls), ["gone", "gone"]);
    await ended.opened;
    await engine.inLine(key, async () => seen.push("next"));
    assert.deepEqual(seen, ["runs", "next"]);
    assert.equal(await call("late"), "gone");
  },
};

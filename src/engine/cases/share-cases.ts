import assert from "node:assert/strict";
import type { ContractCase } from "../../base/contract-case.ts";
import { KitError } from "../../base/kit-error.ts";
import type { Engine } from "../contract.ts";
import { type EngineCheck, type EngineSubject, gate, handlers, toCases } from "./engine-check.ts";

/** Cases on fairness: the work of one principal does not delay that of others. */
export function shareCases(subject: EngineSubject): readonly ContractCase[] {
  return toCases(subject, { fresh: shares, lasting: sharesThatLast });
}

const at = (instance: string, session = "default") => ({ agent: "worker", instance_id: instance, session });

/** Many inputs of one principal, over many instances and sessions, and then a few of others. */
async function admitCrowd(engine: Engine): Promise<void> {
  for (let number = 0; number < 40; number += 1) {
    await engine.admit({ ...at(`i${number % 8}`, `s${number % 4}`), input: "loud", principal: "loud" });
  }
  for (const principal of ["shy", "shy", "other"]) {
    await engine.admit({ ...at(`of-${principal}`), input: principal, principal });
  }
}

async function orderOf(engine: Engine, count: number): Promise<readonly unknown[]> {
  const order: unknown[] = [];
  const done = gate();
  await engine.start(
    handlers({
      async dispatch(_, { input, principal }) {
        assert.equal(principal, input);
        if (order.push(input) === count) done.open();
      },
    }),
  );
  await done.opened;
  return order;
}

const shares: Readonly<Record<string, EngineCheck>> = {
  "a principal with much work does not delay another, whatever sessions it uses": async (tools) => {
    const engine = await tools.create({ running: 1 });
    await admitCrowd(engine);
    assert.deepEqual((await orderOf(engine, 6)).slice(0, 6).toSorted(), [
      "loud",
      "loud",
      "loud",
      "other",
      "shy",
      "shy",
    ]);
  },

  "inputs, work in line and runs of one principal count for one share": async (tools) => {
    const engine = await tools.create({ running: 1 });
    const begun = gate();
    const first = gate();
    const order: unknown[] = [];
    const note = async (input: unknown): Promise<void> => {
      if (input === "first") {
        begun.open();
        await first.opened;
      }
      order.push(input);
    };
    await engine.start(
      handlers({ dispatch: (_, { input }) => note(input), run: (_, { payload }) => note(payload) }),
    );
    const all: Promise<unknown>[] = [engine.inLine({ ...at("x"), principal: "x" }, () => note("first"))];
    await begun.opened;
    const principal = "loud";
    for (const number of [1, 2, 3, 4]) {
      const runs = await engine.startRun({ workflow: "w", payload: "loud", principal });
      all.push(engine.awaitRun(runs.run_id));
      all.push(engine.inLine({ ...at(`c${number}`), principal }, () => note("loud")));
    }
    all.push(engine.inLine({ ...at("shy"), principal: "shy" }, () => note("shy")));
    // An engine can query its database before work is in line.
    while ((await engine.load()).queued_dispatches < 5) await new Promise(setImmediate);
    first.open();
    await Promise.all(all);
    assert.ok(order.indexOf("shy") <= 2, order.join(" "));
  },

  "neither one nor several principals can fill the line: the next principal has room": async (tools) => {
    const engine = await tools.create({ waiting: 12 });
    const fill = async (principal: string): Promise<readonly [number, unknown]> => {
      for (let count = 0; ; count += 1) {
        try {
          await engine.admit({ ...at(`${principal}${count}`), input: count, principal });
        } catch (error) {
          return [count, error];
        }
      }
    };
    const counts: number[] = [];
    for (const principal of ["a", "b", "c", "d"]) {
      const [count, error] = await fill(principal);
      counts.push(count);
      assert.ok(error instanceof KitError);
      if (principal === "d") continue;
      assert.equal(error.code, "too_many_requests");
      assert.equal(error.meta?.scope, "principal");
      assert.ok(Number(error.meta.retry_after_s) >= 1);
    }
    assert.deepEqual(counts, [6, 3, 2, 1]);
  },

  "runs of one principal leave room in the queue for runs of others": async (tools) => {
    const engine = await tools.create({ waiting: 4 });
    for (const payload of [1, 2]) await engine.startRun({ workflow: "w", payload, principal: "loud" });
    await assert.rejects(engine.startRun({ workflow: "w", payload: 3, principal: "loud" }), {
      code: "too_many_requests",
    });
    await engine.startRun({ workflow: "w", payload: 4, principal: "shy" });
    // Without principals, each workflow has a share.
    await engine.startRun({ workflow: "other", payload: 5 });
  },

  "an input that a run dispatches has the run's principal": async (tools) => {
    const engine = await tools.create();
    const received: unknown[] = [];
    await engine.start(
      handlers({
        run: async (context) => await context.dispatch({ ...at("of-run"), input: 1 }),
        dispatch: async (_, { principal }) => void received.push(principal),
      }),
    );
    const { run_id } = await engine.startRun({ workflow: "w", payload: 1, principal: "me" });
    const run = await engine.awaitRun(run_id);
    const receipt = run?.result;
    assert.ok(typeof receipt === "object" && receipt !== null && "dispatch_id" in receipt);
    await engine.awaitDispatch(String(receipt.dispatch_id));
    assert.deepEqual(received, ["me"]);
  },
};

const sharesThatLast: Readonly<Record<string, EngineCheck>> = {
  "after a restart principals still have equal shares, and an input keeps its principal": async (tools) => {
    const before = await tools.create({ running: 1 });
    await admitCrowd(before);
    await before.drain({ timeoutMs: 0 });
    const order = await orderOf(await tools.reopen({ running: 1 }), 6);
    assert.ok(order.includes("other") && order.filter((one) => one === "shy").length === 2, order.join(" "));
  },
};

import assert from "node:assert/strict";
import type { ContractCase } from "../../base/contract-case.ts";
import { KitError } from "../../base/kit-error.ts";
import { storeUnavailable } from "../../protocol/error-code.ts";
import type { Engine, InputEnd } from "../contract.ts";
import {
  type EngineCheck,
  type EngineSubject,
  handlers,
  sessionKey as key,
  toCases,
} from "./engine-check.ts";

const busy = (): KitError => new KitError({ code: "model_error", message: "The model is overloaded." });
const error = { type: "model_error", message: "The model is overloaded." };

/** The promises about `EngineHandlers.onInputEnd`: which ends the handlers note, and what happens if they cannot. */
export function endingCases(subject: EngineSubject): readonly ContractCase[] {
  return toCases(subject, { fresh, lasting });
}

/** Admits an input, and resolves with its id once its first attempt has failed and it waits for the second. */
async function admitFailing(engine: Engine): Promise<string> {
  const { dispatch_id } = await engine.admit({ ...key, input: "fails" });
  for (;;) {
    if ((await engine.getDispatch(dispatch_id))?.next_attempt_at !== undefined) return dispatch_id;
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

const fresh: Readonly<Record<string, EngineCheck>> = {
  "the handlers note the end of an input that is cancelled between two attempts, before its session goes on":
    async (tools) => {
      const engine = await tools.create({ backoffMs: 60_000 });
      const order: unknown[] = [];
      await engine.start(
        handlers({
          dispatch: async (_, { input }) => {
            order.push(input);
            if (input === "fails") throw busy();
          },
          onInputEnd: async ({ id, status, attempts, ...end }, { input, session }) => {
            const { ended_at } = (await engine.getDispatch(id)) ?? {};
            order.push({ input, session, id, status, attempts, error: end.error, ended_at });
          },
        }),
      );
      const id = await admitFailing(engine);
      const next = await engine.admit({ ...key, input: "next" });
      assert.equal(await engine.cancelDispatch(id), true);
      assert.equal((await engine.getDispatch(id))?.status, "cancelled");
      await engine.awaitDispatch(next.dispatch_id);
      const record = await engine.awaitDispatch(id);
      assert.deepEqual([record?.status, record?.attempts, record?.error], ["cancelled", 1, error]);
      const end = { id, status: "cancelled", attempts: 1, error: undefined, ended_at: undefined };
      assert.deepEqual(order, ["fails", { input: "fails", session: key.session, ...end }, "next"]);
      assert.equal(await engine.cancelDispatch(id), false);
    },

  "an input that a caller cancels while it begins is cancelled, at whatever moment": async (tools) => {
    const engine = await tools.create();
    const untilStopped = (signal: AbortSignal): Promise<never> =>
      new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
    await engine.start(handlers({ dispatch: async ({ signal }) => await untilStopped(signal) }));
    for (let ticks = 0; ticks < 40; ticks += 1) {
      const { dispatch_id } = await engine.admit({ ...key, instance_id: `i${ticks}`, input: 1 });
      for (let tick = 0; tick < ticks; tick += 1) await Promise.resolve();
      assert.equal(await engine.cancelDispatch(dispatch_id), true);
      assert.equal((await engine.awaitDispatch(dispatch_id))?.status, "cancelled", `after ${ticks} ticks`);
    }
  },

  "a request that came before a cancellation does not begin the work again, however late it is accepted":
    async (tools) => {
      const engine = await tools.create();
      const of = { ...key, input: 1, idempotency_key: "k" };
      const run = { workflow: "w", payload: {}, idempotency_key: "k" };
      const { dispatch_id } = await engine.admit(of);
      const { run_id } = await engine.startRun(run);
      const received_at = performance.now();
      await new Promise((resolve) => setTimeout(resolve, 30));
      assert.equal(await engine.cancelDispatch(dispatch_id), true);
      assert.equal(await engine.cancelRun(run_id), true);
      await new Promise((resolve) => setTimeout(resolve, 30));
      assert.equal((await engine.admit({ ...of, received_at })).error?.type, "aborted");
      const late = await engine.startRun({ ...run, received_at });
      assert.deepEqual([late.run_id, late.error?.type], [run_id, "aborted"]);
      assert.equal((await engine.getDispatch(dispatch_id))?.status, "cancelled");
      assert.equal((await engine.admit({ ...of, received_at: performance.now() })).error, undefined);
      assert.equal((await engine.startRun({ ...run, received_at: performance.now() })).error, undefined);
    },

  "the handlers note the end of an input that fails for good, and of none that is completed or never began":
    async (tools) => {
      const engine = await tools.create({ backoffMs: 1, attempts: 2 });
      const unbegun = await engine.admit({ ...key, input: "never begins" });
      assert.equal(await engine.cancelDispatch(unbegun.dispatch_id), true);
      const ends: Omit<InputEnd, "fence">[] = [];
      await engine.start(
        handlers({
          dispatch: async (_, { input }) => {
            if (input === "fails") throw busy();
          },
          onInputEnd: async ({ fence: _, ...end }) => void ends.push(end),
        }),
      );
      const completed = await engine.admit({ ...key, input: "works" });
      await engine.awaitDispatch(completed.dispatch_id);
      const { dispatch_id: id } = await engine.admit({ ...key, input: "fails" });
      assert.equal((await engine.awaitDispatch(id))?.status, "failed");
      assert.deepEqual(ends, [{ id, status: "failed", attempts: 2, error }]);
    },

  "an outage delays the end of an input that its handlers cannot note; any other error does not": async (
    tools,
  ) => {
    const engine = await tools.create({ backoffMs: 1, attempts: 1 });
    const outage = storeUnavailable({ store: "The session store", reason: "it is down", hint: "Wait." });
    const thrown = [outage, new Error("unknown")];
    let calls = 0;
    await engine.start(
      handlers({
        dispatch: async () => {
          throw busy();
        },
        onInputEnd: async () => {
          calls += 1;
          throw thrown.shift();
        },
      }),
    );
    const { dispatch_id } = await engine.admit({ ...key, input: 1 });
    const record = await engine.awaitDispatch(dispatch_id);
    assert.deepEqual([record?.status, record?.error, calls], ["failed", error, 2]);
  },
};

const lasting: Readonly<Record<string, EngineCheck>> = {
  "the next process notes the end of an input that was cancelled while no process worked": async (tools) => {
    const first = await tools.create({ backoffMs: 60_000 });
    const dispatch = async (): Promise<never> => {
      throw busy();
    };
    await first.start(handlers({ dispatch }));
    const id = await admitFailing(first);
    await first.drain();
    const second = await tools.reopen();
    assert.equal(await second.cancelDispatch(id), true);
    assert.equal((await second.getDispatch(id))?.status, "cancelled");
    await second.drain();
    const third = await tools.reopen();
    const ends: unknown[] = [];
    await third.start(
      handlers({ dispatch, onInputEnd: async ({ status }, { input }) => void ends.push([input, status]) }),
    );
    assert.equal((await third.awaitDispatch(id))?.attempts, 1);
    assert.deepEqual(ends, [["fails", "cancelled"]]);
  },
};

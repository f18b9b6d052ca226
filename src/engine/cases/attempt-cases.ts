import assert from "node:assert/strict";
import type { ContractCase } from "../../base/contract-case.ts";
import { KitError } from "../../base/kit-error.ts";
import { ownModule } from "../../base/own-package.ts";
import {
  type EngineCheck,
  type EngineSubject,
  gate,
  handlers,
  sessionKey as key,
  toCases,
  untilAborted,
} from "./engine-check.ts";

const busy = (): KitError => new KitError({ code: "model_error", message: "The model is overloaded." });

/** The promises about attempts at an input: what is repeated, what fails, what is cancelled. */
export function attemptCases(subject: EngineSubject): readonly ContractCase[] {
  return toCases(subject, { fresh });
}

const fresh: Readonly<Record<string, EngineCheck>> = {
  "a retryable failure is retried, and the session waits for it": async (tools) => {
    const engine = await tools.create({ backoffMs: 1 });
    const order: unknown[] = [];
    await engine.start(
      handlers({
        dispatch: async ({ attempt }, { input }) => {
          order.push([input, attempt]);
          if (input === "first" && attempt < 3) throw busy();
        },
      }),
    );
    const first = await engine.admit({ ...key, input: "first" });
    const second = await engine.admit({ ...key, input: "second" });
    await engine.awaitDispatch(second.dispatch_id);
    assert.deepEqual(order, [
      ["first", 1],
      ["first", 2],
      ["first", 3],
      ["second", 1],
    ]);
    assert.equal((await engine.getDispatch(first.dispatch_id))?.attempts, 3);
  },

  "between attempts a record has the time of the next attempt and the last error": async (tools) => {
    const engine = await tools.create({ backoffMs: 60_000, running: 1 });
    await engine.start(
      handlers({
        dispatch: async (_, { session }) => {
          if (session === key.session) throw busy();
        },
      }),
    );
    const { dispatch_id } = await engine.admit({ ...key, input: 1 });
    // Meanwhile the only slot is free, so another session can work.
    const { dispatch_id: next } = await engine.admit({ ...key, session: "next", input: 1 });
    await engine.awaitDispatch(next);
    const record = await engine.getDispatch(dispatch_id);
    assert.equal(record?.status, "queued");
    assert.equal(record?.attempts, 1);
    assert.deepEqual(record?.error, { type: "model_error", message: "The model is overloaded." });
    assert.ok(Date.parse(record?.next_attempt_at ?? "") > Date.parse(record?.accepted_at ?? ""));
    assert.equal(await engine.cancelDispatch(dispatch_id), true);
    assert.equal((await engine.getDispatch(dispatch_id))?.status, "cancelled");
    // The line continues with its next input.
    const last = await engine.admit({ ...key, input: 2 });
    assert.equal(await engine.cancelDispatch(last.dispatch_id), true);
  },

  "a process without file handles, or without a module of kit, counts no attempt and ends no work": async (
    tools,
  ) => {
    const engine = await tools.create({ backoffMs: 1, attempts: 2 });
    const noHandles = Object.assign(new Error("EMFILE: too many open files"), {
      code: "EMFILE",
      syscall: "open",
    });
    // The bundle of a Worker has no address, and no part of it can be missing.
    const hasModules = (import.meta as Partial<ImportMeta>).url !== undefined;
    const missing = hasModules
      ? await import(ownModule("absent").href).catch((error: unknown) => error)
      : noHandles;
    const outages: string[] = [];
    const left = { dispatch: 2, run: 1, step: 2 };
    const fail = (part: keyof typeof left): void => {
      left[part] -= 1;
      if (left[part] >= 0) throw left[part] % 2 === 0 ? missing : new Error("wrapped", { cause: noHandles });
    };
    await engine.start(
      handlers({
        dispatch: async ({ attempt }) => {
          fail("dispatch");
          return attempt;
        },
        run: async ({ step }) => {
          fail("run");
          return await step("one", ({ attempt }) => {
            fail("step");
            return attempt;
          });
        },
        onOutage: ({ code }) => void outages.push(code),
      }),
    );
    const { dispatch_id } = await engine.admit({ ...key, input: 1 });
    const { run_id } = await engine.startRun({ workflow: "flow", payload: {} });
    const dispatch = await engine.awaitDispatch(dispatch_id);
    const run = await engine.awaitRun(run_id);
    assert.deepEqual([dispatch?.status, dispatch?.result, dispatch?.attempts], ["completed", 1, 1]);
    assert.deepEqual([run?.status, run?.result], ["completed", 1]);
    assert.deepEqual(
      outages,
      Array.from({ length: 5 }, () => "store_unavailable"),
    );
  },

  "a permanent failure is not retried, and its record holds no secret": async (tools) => {
    const engine = await tools.create();
    await engine.start(
      handlers({
        dispatch: async (_, { input }) => {
          if (input === "ours") throw new KitError({ code: "budget_exceeded", message: "No more money." });
          throw new Error("password=hunter2");
        },
      }),
    );
    const kitError = await engine.admit({ ...key, input: "ours" });
    const foreignError = await engine.admit({ ...key, input: "theirs" });
    const failed = await engine.awaitDispatch(kitError.dispatch_id);
    assert.equal(failed?.status, "failed");
    assert.deepEqual(failed?.error, { type: "budget_exceeded", message: "No more money." });
    const unsafe = await engine.awaitDispatch(foreignError.dispatch_id);
    assert.equal(unsafe?.status, "failed");
    assert.equal(unsafe?.attempts, 1);
    assert.equal(unsafe?.error?.type, "internal_error");
    assert.ok(!JSON.stringify(unsafe).includes("hunter2"));
  },

  "a repeated key of work that has failed for good tells so": async (tools) => {
    const engine = await tools.create();
    const bad = (): KitError => new KitError({ code: "budget_exceeded", message: "No more money." });
    await engine.start(
      handlers({
        dispatch: async () => {
          throw bad();
        },
        run: async () => {
          throw bad();
        },
      }),
    );
    const input = { ...key, input: 1, idempotency_key: "once" };
    const { dispatch_id, error } = await engine.admit(input);
    assert.equal(error, undefined);
    const record = await engine.awaitDispatch(dispatch_id);
    const again = await engine.admit(input);
    assert.equal(again.dispatch_id, dispatch_id);
    assert.deepEqual(again.error, record?.error);
    const request = { workflow: "w", payload: {}, idempotency_key: "once" };
    const run = await engine.startRun(request);
    assert.equal(run.error, undefined);
    const ended = await engine.awaitRun(run.run_id);
    assert.deepEqual(await engine.startRun(request), { ...run, error: ended?.error });
  },

  "handlers can decide which errors are retried": async (tools) => {
    const engine = await tools.create({ backoffMs: 1, attempts: 3 });
    const isRetryable = (error: unknown): boolean => error instanceof TypeError;
    await engine.start(
      handlers({
        isRetryable,
        dispatch: async (_, { input }) => {
          throw input === "retry" ? new TypeError("later") : busy();
        },
      }),
    );
    const attempts = async (input: string): Promise<number | undefined> => {
      const { dispatch_id } = await engine.admit({ ...key, input });
      return (await engine.awaitDispatch(dispatch_id))?.attempts;
    };
    assert.equal(await attempts("retry"), 3);
    assert.equal(await attempts("not"), 1);
  },

  "an attempt that asks what follows its failure gets what the engine then does": async (tools) => {
    const engine = await tools.create({ backoffMs: 40, attempts: 3 });
    const plans: (number | undefined)[] = [];
    const begun: number[] = [];
    await engine.start(
      handlers({
        dispatch: async ({ planRetry }, { input }) => {
          begun.push(performance.now());
          const error =
            input === "refused" ? new KitError({ code: "invalid_request", message: "No." }) : busy();
          plans.push((await planRetry?.(error))?.delayMs);
          throw error;
        },
      }),
    );
    const { dispatch_id } = await engine.admit({ ...key, input: "busy" });
    assert.equal((await engine.awaitDispatch(dispatch_id))?.status, "failed");
    // Only an engine that plans ahead can be held to its plans.
    if (plans[0] === undefined) return;
    assert.equal(plans.length, 3);
    const [first = 0, second = 0, third = 0] = begun;
    assert.ok(second - first >= plans[0] - 2 && third - second >= (plans[1] ?? Number.POSITIVE_INFINITY) - 2);
    assert.equal(plans[2], undefined);
    const refused = await engine.admit({ ...key, input: "refused" });
    assert.equal((await engine.awaitDispatch(refused.dispatch_id))?.attempts, 1);
    assert.deepEqual(plans.slice(3), [undefined]);
  },

  "an input that uses up its attempts is a dead letter, and can be redriven to the end of its line": async (
    tools,
  ) => {
    const engine = await tools.create({ backoffMs: 1, attempts: 2 });
    const order: unknown[] = [];
    const hold = gate();
    let isBroken = true;
    await engine.start(
      handlers({
        dispatch: async ({ attempt }, { input }) => {
          order.push([input, attempt]);
          if (input === "hold") await hold.opened;
          if (input === "poison" && isBroken) throw busy();
        },
      }),
    );
    const { dispatch_id } = await engine.admit({ ...key, input: "poison" });
    const dead = await engine.awaitDispatch(dispatch_id);
    assert.equal(dead?.status, "failed");
    assert.deepEqual((await engine.listDeadLetters()).items, [dead]);
    assert.deepEqual((await engine.listDeadLetters({ agent: "writer" })).items, []);
    isBroken = false;
    await engine.admit({ ...key, input: "hold" });
    await engine.admit({ ...key, input: "before" });
    const again = await engine.redrive(dispatch_id);
    assert.equal(again.status, "queued");
    assert.equal(again.attempts, 0);
    assert.deepEqual((await engine.listDeadLetters()).items, []);
    hold.open();
    assert.equal((await engine.awaitDispatch(dispatch_id))?.status, "completed");
    assert.deepEqual(order, [
      ["poison", 1],
      ["poison", 2],
      ["hold", 1],
      ["before", 1],
      ["poison", 1],
    ]);
    await assert.rejects(engine.redrive(dispatch_id), { code: "conflict" });
    await assert.rejects(engine.redrive("dispatch_none"), { code: "not_found" });
  },

  "an input that comes further with each attempt is not a dead letter; one that stays where it is becomes one":
    async (tools) => {
      const engine = await tools.create({ backoffMs: 1, attempts: 2 });
      const progress = new Map<string, number>();
      await engine.start(
        handlers({
          progressOf: async (_, id) => progress.get(id) ?? 0,
          dispatch: async ({ id, attempt }, { input }) => {
            if (input === "comes further" || attempt < 3) progress.set(id, attempt);
            if (attempt < 6) throw busy();
            return "done";
          },
        }),
      );
      const further = await engine.admit({ ...key, input: "comes further" });
      const stays = await engine.admit({ ...key, session: "other", input: "stays" });
      const record = await engine.awaitDispatch(further.dispatch_id);
      assert.equal(record?.status, "completed");
      assert.equal(record?.attempts, 6);
      const dead = await engine.awaitDispatch(stays.dispatch_id);
      assert.equal(dead?.status, "failed");
      // The second attempt came further, so it is the first of two that count.
      assert.equal(dead?.attempts, 3);
    },

  "a waiting input can be cancelled, and a running one aborted": async (tools) => {
    const engine = await tools.create();
    const begun = gate();
    const seen: unknown[] = [];
    await engine.start(
      handlers({
        dispatch: async (context, { input }) => {
          seen.push(input);
          begun.open();
          if (input === "first") await untilAborted(context);
        },
      }),
    );
    const first = await engine.admit({ ...key, input: "first" });
    const second = await engine.admit({ ...key, input: "second" });
    const third = await engine.admit({ ...key, input: "third" });
    await begun.opened;
    assert.equal(await engine.cancelDispatch(second.dispatch_id), true);
    assert.equal(await engine.cancelDispatch(first.dispatch_id), true);
    assert.equal((await engine.awaitDispatch(first.dispatch_id))?.status, "cancelled");
    assert.equal((await engine.awaitDispatch(second.dispatch_id))?.status, "cancelled");
    assert.equal((await engine.awaitDispatch(third.dispatch_id))?.status, "completed");
    assert.deepEqual(seen, ["first", "third"]);
    assert.equal(await engine.cancelDispatch(third.dispatch_id), false);
    assert.equal(await engine.cancelDispatch(first.dispatch_id), false);
    assert.equal(await engine.cancelDispatch("dispatch_none"), false);
  },

  "a cancelled input stays cancelled even if its handler succeeds": async (tools) => {
    const engine = await tools.create();
    const begun = gate();
    let reason: unknown;
    await engine.start(
      handlers({
        dispatch: async (context) => {
          begun.open();
          await untilAborted(context).catch((error: unknown) => {
            reason = error;
          });
          return "done all the same";
        },
      }),
    );
    const { dispatch_id } = await engine.admit({ ...key, input: 1 });
    await begun.opened;
    await engine.cancelDispatch(dispatch_id);
    const record = await engine.awaitDispatch(dispatch_id);
    assert.equal(record?.status, "cancelled");
    assert.equal(record?.result, undefined);
    assert.ok(reason instanceof KitError && reason.code === "aborted");
  },
};

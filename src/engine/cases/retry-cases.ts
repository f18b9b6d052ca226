import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import type { ContractCase } from "../../base/contract-case.ts";
import { KitError } from "../../base/kit-error.ts";
import { runStream } from "../../protocol/session-name.ts";
import type { RunContext } from "../contract.ts";
import { type EngineCheck, type EngineSubject, gate, handlers, toCases } from "./engine-check.ts";

/** The promises about failed runs that are continued. */
export function retryCases(subject: EngineSubject): readonly ContractCase[] {
  return toCases(subject, { fresh, lasting });
}

const failure = new KitError({ code: "forbidden", message: "Not today." });

/** Three parallel steps; the run fails once all have ended, with the error of one that has failed. */
async function fanOut(context: RunContext, work: (name: string) => Promise<unknown>): Promise<unknown> {
  const steps = ["a", "b", "c"].map((name) =>
    context.step(name, async () => await work(name).then(() => name)),
  );
  await Promise.allSettled(steps);
  return await Promise.all(steps);
}

const fresh: Readonly<Record<string, EngineCheck>> = {
  "a failed run continues at its failed step, repeats no finished step, and keeps a failure that its code has handled":
    async (tools) => {
      const engine = await tools.create();
      const done: string[] = [];
      let isBroken = true;
      await engine.start(
        handlers({
          run: async (context) => {
            const work = (name: string, fails: boolean) => () => {
              done.push(name);
              if (fails) throw failure;
              return name;
            };
            const [first] = await Promise.all([
              context.step("first", work("first", false)),
              context.step("side", work("side", false)),
            ]);
            const handled = await context.step("handled", work("handled", true)).catch(() => "handled");
            const instead = await context.step("instead", work("instead", false));
            return [first, handled, instead, await context.step("charge", work("charge", isBroken))];
          },
        }),
      );
      const { run_id } = await engine.startRun({ workflow: "w", payload: {}, idempotency_key: "k" });
      assert.deepEqual((await engine.awaitRun(run_id))?.error, { type: "forbidden", message: "Not today." });
      assert.equal((await engine.retryRun(run_id)).error, undefined);
      assert.equal((await engine.awaitRun(run_id))?.status, "failed");
      isBroken = false;
      const queued = await engine.retryRun(run_id);
      assert.equal(queued.run_id, run_id);
      assert.equal(queued.ended_at, undefined);
      const record = await engine.awaitRun(run_id);
      assert.deepEqual(record?.result, ["first", "handled", "instead", "charge"]);
      assert.equal(record?.error, undefined);
      assert.deepEqual(done, ["first", "side", "handled", "instead", "charge", "charge", "charge"]);
      assert.equal(
        (await engine.startRun({ workflow: "w", payload: {}, idempotency_key: "k" })).run_id,
        run_id,
      );
    },

  "a call that failed before a parallel one ended is made again, and the ends keep their order": async (
    tools,
  ) => {
    const engine = await tools.create();
    const done: string[] = [];
    let isBroken = true;
    await engine.start(
      handlers({
        run: async (context) => {
          const slow = context.step("slow", async () => {
            await sleep(30);
            return done.push("slow");
          });
          const quick = context.step("quick", () => {
            done.push("quick");
            if (isBroken) throw failure;
          });
          await Promise.allSettled([slow, quick]);
          await quick;
          return await context.step("last", () => done.push("last"));
        },
      }),
    );
    const { run_id } = await engine.startRun({ workflow: "w", payload: {} });
    assert.equal((await engine.awaitRun(run_id))?.status, "failed");
    isBroken = false;
    await engine.retryRun(run_id);
    assert.equal((await engine.awaitRun(run_id))?.result, 4);
    assert.deepEqual(done, ["quick", "slow", "quick", "last"]);
  },

  "the failed call of a fan-out is made again, whatever its place, and the others keep their results": async (
    tools,
  ) => {
    const engine = await tools.create();
    const done: string[] = [];
    let isBroken = true;
    await engine.start(
      handlers({
        run: async (context, { payload }) =>
          await fanOut(context, async (name) => {
            done.push(name);
            if (name !== payload) await sleep(30);
            else if (isBroken) throw failure;
          }),
      }),
    );
    for (const failing of ["a", "b", "c"]) {
      done.length = 0;
      isBroken = true;
      const { run_id } = await engine.startRun({ workflow: "w", payload: failing });
      assert.equal((await engine.awaitRun(run_id))?.status, "failed");
      isBroken = false;
      await engine.retryRun(run_id);
      assert.deepEqual((await engine.awaitRun(run_id))?.result, ["a", "b", "c"]);
      assert.deepEqual(done, ["a", "b", "c", failing]);
    }
  },

  "a wait that began only because of a failure is forgotten with it": async (tools) => {
    const engine = await tools.create();
    let isBroken = true;
    const work = (name: string, ms: number) => async () => {
      await sleep(ms);
      if (isBroken) throw failure;
      return name;
    };
    await engine.start(
      handlers({
        run: async (context) => {
          const first = async (): Promise<unknown> => {
            const failed = await context.step("first", work("first", 0)).catch(() => undefined);
            if (failed === undefined) await context.waitFor("help");
            return await context.step("second", work("second", 0));
          };
          const other = context.step("other", work("other", 60));
          return await Promise.all([first(), other]);
        },
      }),
    );
    const { run_id } = await engine.startRun({ workflow: "w", payload: {} });
    assert.equal((await engine.awaitRun(run_id))?.status, "failed");
    isBroken = false;
    await engine.retryRun(run_id);
    assert.deepEqual((await engine.awaitRun(run_id))?.result, ["second", "other"]);
  },

  "only a failed run can be retried": async (tools) => {
    const engine = await tools.create();
    await engine.start(handlers({ run: async (context) => await context.waitFor("go") }));
    const { run_id } = await engine.startRun({ workflow: "w", payload: {} });
    await assert.rejects(engine.retryRun(run_id), { code: "conflict" });
    await engine.signal(run_id, { name: "go" });
    await engine.awaitRun(run_id);
    await assert.rejects(engine.retryRun(run_id), { code: "conflict" });
    await assert.rejects(engine.retryRun("run_none"), { code: "run_not_found" });
  },

  "the events of a continued run follow those of its failure": async (tools) => {
    const engine = await tools.create();
    let isBroken = true;
    await engine.start(
      handlers({
        run: async ({ id, emit }) => {
          const at = { timestamp: new Date().toISOString(), instance_id: id, operation_id: id, run_id: id };
          emit({ ...at, type: "log", level: "info", message: isBroken ? "first" : "second" });
          if (isBroken) throw failure;
        },
      }),
    );
    const { run_id } = await engine.startRun({ workflow: "w", payload: {} });
    await engine.awaitRun(run_id);
    isBroken = false;
    await engine.retryRun(run_id);
    await engine.awaitRun(run_id);
    const messages: unknown[] = [];
    for await (const event of engine.events.subscribe(runStream(run_id), { after: 0 }))
      if (event.type === "log") messages.push([event.index, event.message]);
    assert.deepEqual(messages, [
      [1, "first"],
      [2, "second"],
    ]);
  },
};

const lasting: Readonly<Record<string, EngineCheck>> = {
  "a fan-out that a restart interrupted after its failure can be continued": async (tools) => {
    const first = await tools.create();
    const begun = gate();
    const isLeft = gate();
    await first.start(
      handlers({
        run: async (context) =>
          await fanOut(context, async (name) => {
            if (name === "a") throw failure;
            begun.open();
            await isLeft.opened;
          }),
      }),
    );
    const { run_id } = await first.startRun({ workflow: "w", payload: {} });
    await begun.opened;
    while ((await first.readJournal?.(run_id, { after: 0, limit: 10 }))?.length === 0) await sleep(5);
    await first.drain({ timeoutMs: 0 });
    isLeft.open();
    const second = await tools.reopen();
    const done: string[] = [];
    await second.start(
      handlers({ run: async (context) => await fanOut(context, async (name) => done.push(name)) }),
    );
    assert.equal((await second.awaitRun(run_id))?.status, "failed");
    await second.retryRun(run_id);
    assert.deepEqual((await second.awaitRun(run_id))?.result, ["a", "b", "c"]);
    assert.deepEqual(done, ["b", "c", "a"]);
  },

  "a failed run can be retried before the engine is started": async (tools) => {
    const first = await tools.create();
    await first.start(handlers({ run: async () => Promise.reject(failure) }));
    const { run_id } = await first.startRun({ workflow: "w", payload: {} });
    await first.awaitRun(run_id);
    await first.drain();
    const second = await tools.reopen();
    assert.equal((await second.retryRun(run_id)).status, "queued");
    await second.start(handlers({ run: async () => "done" }));
    assert.equal((await second.awaitRun(run_id))?.result, "done");
  },
};

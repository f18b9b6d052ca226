import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import type { ContractCase } from "../../base/contract-case.ts";
import { KitError } from "../../base/kit-error.ts";
import type { RunRecord } from "../../protocol/run.ts";
import type { Engine } from "../contract.ts";
import { type EngineCheck, type EngineSubject, handlers, toCases, untilAborted } from "./engine-check.ts";
import { finish, interrupt, type Run } from "./replay-cases.ts";

/** The promises about runs whose code is missing, broken or does not match their journal. */
export function heldCases(subject: EngineSubject): readonly ContractCase[] {
  return toCases(subject, { fresh: {}, lasting });
}

/** The record of a run once it waits because of its code. */
async function untilHeld(engine: Engine, runId: string): Promise<RunRecord> {
  for (;;) {
    const record = await engine.getRun(runId);
    if (record?.status === "waiting" && record.problem !== undefined) return record;
    assert.equal(record?.ended_at, undefined);
    await sleep(10);
  }
}

const lasting: Readonly<Record<string, EngineCheck>> = {
  "a run whose code makes another call than was recorded waits with the problem, and continues with the right code":
    async (tools) => {
      const changed: readonly [Run, RegExp][] = [
        [(context) => context.step("pay", () => 1), /Position 1 .*step "charge".*step "pay"/],
        [(context) => context.sleep(1), /Position 1 .*step "charge".* sleep/],
        [async () => "short", /Position 1 .*step "charge".* the end of the run/],
        [
          (context) => context.step("pay", () => 1).catch(() => context.step("charge", () => 2)),
          /Position 1 .*step "charge".*step "pay"/,
        ],
        [
          async (context) => {
            await context.step("charge", () => 1);
            return await Promise.all([context.uuid(), context.step("long", () => untilAborted(context))]);
          },
          /Position 2 .*wait "go".*uuid/,
        ],
      ];
      let charges = 0;
      const right: Run = async (context) => {
        await context.step("charge", () => charges++);
        const go = context.waitFor("go");
        await context.step("after the wait has begun", () => 1);
        return [await context.step("long", () => 7), await go];
      };
      for (const [run, message] of changed) {
        charges = 0;
        const { engine: broken, runId } = await interrupt(tools, async (context, stop) => {
          await context.step("charge", () => charges++);
          void context.waitFor("go");
          await context.step("after the wait has begun", () => 1);
          return await context.step("long", stop);
        });
        const held: unknown[] = [];
        await broken.start(
          handlers({ run, onHeld: ({ code }, work) => held.push([code, work.run_id, work.workflow]) }),
        );
        const record = await untilHeld(broken, runId);
        assert.equal(record.problem?.type, "replay_mismatch");
        assert.match(record.problem?.message ?? "", message);
        assert.equal(record.error, undefined);
        assert.equal(record.ended_at, undefined);
        assert.deepEqual(held, [["replay_mismatch", runId, "flow"]]);
        // Its signals are kept, and it is listed and counted.
        await broken.signal(runId, { name: "go", payload: "gone" });
        const waiting = await untilHeld(broken, runId);
        assert.deepEqual((await broken.listRuns({ status: "waiting" })).items[0]?.problem, waiting.problem);
        assert.equal((await broken.load()).held_runs, 1);
        await broken.drain({ timeoutMs: 0 });
        const engine = await tools.reopen();
        const finished = await finish(engine, runId, right);
        assert.deepEqual(finished.result, [7, "gone"]);
        assert.equal(finished.problem, undefined);
        assert.equal((await engine.load()).held_runs, 0);
        assert.equal(charges, 1);
      }
    },

  "a handler holds a run whose code it lacks, until it is told of other code; cancelling ends the run":
    async (tools) => {
      const { engine, runId } = await interrupt(tools, async (context, stop) => {
        await context.step("charge", () => 1);
        return await stop();
      });
      const missing = new KitError({ code: "workflow_not_found", message: "Gone.", hint: "Write it." });
      let isBroken = true;
      let tries = 0;
      const run: Run = async (context) => {
        tries += 1;
        // The step in which the code is missed is not recorded as failed.
        await context
          .step("charge", () => 1)
          .then(() => context.step("start", () => (isBroken ? Promise.reject(context.hold(missing)) : 2)));
        return await context.step("last", () => 3);
      };
      await engine.start(handlers({ run }));
      const { problem } = await untilHeld(engine, runId);
      assert.deepEqual(problem, { type: "workflow_not_found", message: "Gone. Write it." });
      const other = await engine.startRun({ workflow: "flow", payload: {} });
      await untilHeld(engine, other.run_id);
      assert.equal(await engine.cancelRun(other.run_id), true);
      const cancelled = await engine.awaitRun(other.run_id);
      assert.equal(cancelled?.status, "cancelled");
      assert.equal(cancelled?.problem, undefined);
      const before = tries;
      await engine.resumeHeld?.();
      while (tries === before) await sleep(10);
      await untilHeld(engine, runId);
      isBroken = false;
      await engine.resumeHeld?.();
      assert.equal((await engine.awaitRun(runId))?.result, 3);
    },
};

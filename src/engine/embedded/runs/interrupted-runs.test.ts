import { mkdtempSync } from "node:fs";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import fc from "fast-check";
import { afterAll, expect, test } from "vitest";
import { rounds } from "../../../testing/campaign.suite.ts";
import { testFolder } from "../../../testing/test-folder.ts";
import type { RunContext } from "../../contract.ts";
import { createEmbeddedEngine } from "../create-embedded-engine.ts";

const root = testFolder(afterAll);

/** A workflow as data: calls in sequence or in parallel. `ticks` are the turns that its code takes in between. */
type Plan = Call | { readonly kind: "row" | "all"; readonly parts: readonly Plan[] };
type Call =
  | { readonly kind: "step"; readonly ticks: number; readonly ms: number }
  | { readonly kind: "fail" | "now" | "uuid"; readonly ticks: number }
  | { readonly kind: "sleep" | "signal"; readonly ticks: number };

const ticks = fc.nat(12);
const leaf: fc.Arbitrary<Plan> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ kind: fc.constant("step" as const), ticks, ms: fc.nat(3) }) },
  fc.record({ kind: fc.constantFrom("fail" as const, "now" as const, "uuid" as const), ticks }),
  fc.record({ kind: fc.constantFrom("sleep" as const, "signal" as const), ticks }),
);
const { plan } = fc.letrec<{ plan: Plan }>((tie) => ({
  plan: fc.oneof(
    { depthSize: "small", withCrossShrink: true },
    leaf,
    fc.record({
      kind: fc.constantFrom("row", "all"),
      parts: fc.array(tie("plan"), { minLength: 1, maxLength: 4 }),
    }),
  ),
}));
/** Parallel branches of several calls each: the hardest order to replay. */
const branches: fc.Arbitrary<Plan> = fc
  .array(fc.array(fc.oneof({ weight: 5, arbitrary: leaf }, plan), { minLength: 2, maxLength: 4 }), {
    minLength: 2,
    maxLength: 4,
  })
  .map((rows) => ({ kind: "all", parts: rows.map((parts) => ({ kind: "row", parts })) }));

interface Witness {
  /** How often the work of each step has ended. */
  readonly done: Map<string, number>;
  /** Called before a step's work ends. */
  readonly onStep: () => Promise<void>;
}

async function follow(plan: Plan, context: RunContext, witness: Witness): Promise<unknown> {
  if ("parts" in plan) {
    const received: unknown[] = [];
    if (plan.kind === "all") {
      return await Promise.all(plan.parts.map((part) => follow(part, context, witness)));
    }
    for (const part of plan.parts) received.push(await follow(part, context, witness));
    return received;
  }
  for (let tick = 0; tick < plan.ticks; tick += 1) await Promise.resolve();
  return await call(plan, context, witness);
}

async function call(plan: Call, context: RunContext, witness: Witness): Promise<unknown> {
  switch (plan.kind) {
    case "now":
      return await context.now();
    case "uuid":
      return await context.uuid();
    case "sleep":
      await context.sleep(1);
      return "slept";
    case "signal":
      return await context.waitFor("signal");
    case "fail":
      return await context.step("fail", () => Promise.reject(new Error("no"))).catch(({ code }) => code);
    case "step":
      return await context.step("step", async ({ idempotencyKey }) => {
        await setTimeout(plan.ms);
        await witness.onStep();
        witness.done.set(idempotencyKey, (witness.done.get(idempotencyKey) ?? 0) + 1);
        return idempotencyKey;
      });
  }
}

function signalsOf(plan: Plan): number {
  if (plan.kind === "signal") return 1;
  return "parts" in plan ? plan.parts.reduce((sum, part) => sum + signalsOf(part), 0) : 0;
}

test("however often a run is interrupted, it sees the same results, and repeats no finished step", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.oneof(branches, plan),
      fc.array(fc.nat(6), { maxLength: 3 }),
      async (workflow, cuts) => {
        const folder = mkdtempSync(join(root, "run-"));
        const done = new Map<string, number>();
        const seen: string[][] = [];
        let runId: string | undefined;
        let result: unknown;
        for (const cut of [...cuts, Number.POSITIVE_INFINITY]) {
          const engine = createEmbeddedEngine({ folder });
          const reached = Promise.withResolvers<void>();
          const journal: string[] = [];
          seen.push(journal);
          let remaining = cut;
          const onStep = async (): Promise<void> => {
            remaining -= 1;
            if (remaining >= 0) return;
            reached.resolve();
            // Simulates a dead process: the step never ends.
            await new Promise(() => undefined);
          };
          await engine.start({
            dispatch: async () => undefined,
            run: async (context) => await follow(workflow, recorded(context, journal), { done, onStep }),
          });
          if (runId === undefined) {
            runId = (await engine.startRun({ workflow: "plan", payload: {} })).run_id;
            for (let signal = 0; signal < signalsOf(workflow); signal += 1) {
              await engine.signal(runId, { name: "signal", payload: signal });
            }
          }
          const record = await Promise.race([engine.awaitRun(runId), reached.promise]);
          await engine.drain({ timeoutMs: 0 });
          if (record === undefined) continue;
          expect(record.error).toBeUndefined();
          result = record.result;
          break;
        }
        expect(result).toBeDefined();
        for (const [key, times] of done) expect([key, times]).toEqual([key, 1]);
        // The journal lists the results that the run received, in order: each attempt repeats the earlier ones and adds to them.
        const last = seen.at(-1) ?? [];
        for (const journal of seen) expect(last.slice(0, journal.length)).toEqual(journal);
      },
    ),
    { numRuns: Number(process.env.KIT_FAULT_ROUNDS ?? rounds(10, 40)) },
  );
});

/** A context that logs the results that the run gets, in order. */
function recorded(context: RunContext, journal: string[]): RunContext {
  const note = async <Value>(call: Promise<Value>): Promise<Value> => {
    const value = await call;
    journal.push(JSON.stringify(value) ?? "nothing");
    return value;
  };
  return {
    ...context,
    step: (name, work, options) => note(context.step(name, work, options)),
    now: () => note(context.now()),
    uuid: () => note(context.uuid()),
    waitFor: (name, options) => note(context.waitFor(name, options)),
  };
}

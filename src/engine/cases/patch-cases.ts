import assert from "node:assert/strict";
import type { ContractCase } from "../../base/contract-case.ts";
import type { RunContext } from "../contract.ts";
import {
  type EngineCheck,
  type EngineSubject,
  gate,
  handlers,
  toCases,
  untilAborted,
} from "./engine-check.ts";

/** The promises about runs whose code has changed. */
export function patchCases(subject: EngineSubject): readonly ContractCase[] {
  return toCases(subject, { fresh: {}, lasting });
}

/** Waits until a condition holds; a failing case reaches its time limit. */
async function until(holds: () => Promise<boolean>): Promise<void> {
  while (!(await holds())) await new Promise((resolve) => setTimeout(resolve, 5));
}

const lasting: Readonly<Record<string, EngineCheck>> = {
  "after a change of the code behind patched(), a run that had passed the call keeps the old branch, other runs take the new one, and the call can be removed later":
    async (tools) => {
      const numbers = [1, 2, 3, 4];
      interface Payload {
        readonly reached: number;
        readonly change: number;
      }
      const isNew = ({ reached, change }: Payload): boolean => change >= reached;
      const all = numbers.flatMap((reached) => numbers.map((change): Payload => ({ reached, change })));
      const did = new Map<string, string[]>();
      const flow = async (context: RunContext, code: "old" | "changed" | "cleaned", payload: Payload) => {
        const log = did.get(context.id) ?? [];
        did.set(context.id, log);
        const step = (name: string): Promise<unknown> => context.step(name, () => log.push(name));
        for (const number of numbers) {
          if (code === "old" && number === payload.reached) return await untilAborted(context);
          if (number === payload.change && code !== "old") {
            const takesNew = code === "cleaned" || (await context.patched("change"));
            assert.equal(takesNew, isNew(payload));
            if (takesNew) await step("new");
          }
          await step(`step ${number}`);
        }
        return await context.waitFor("go");
      };
      const running = new Set<string>();
      const open = gate();
      const first = await tools.create();
      await first.start(
        handlers({
          run: (context, { payload }) => {
            if (running.add(context.id).size === all.length) open.open();
            return flow(context, "old", payload as Payload);
          },
        }),
      );
      const runs = new Map<string, Payload>();
      for (const payload of all)
        runs.set((await first.startRun({ workflow: "flow", payload })).run_id, payload);
      await open.opened;
      await until(async () => [...runs].every(([id, { reached }]) => did.get(id)?.length === reached - 1));
      await first.drain({ timeoutMs: 0 });

      const second = await tools.reopen();
      const changed = (context: RunContext, { payload }: { readonly payload: unknown }): Promise<unknown> =>
        flow(context, "changed", payload as Payload);
      await second.start(handlers({ run: changed }));
      await until(
        async () => (await second.listRuns({ status: "waiting", limit: 100 })).items.length === all.length,
      );
      await second.drain({ timeoutMs: 0 });

      const third = await tools.reopen();
      await third.start(
        handlers({
          run: (context, { payload }) =>
            flow(context, isNew(payload as Payload) ? "cleaned" : "changed", payload as Payload),
        }),
      );
      for (const [id, payload] of runs) {
        await third.signal(id, { name: "go", payload: "went" });
        const record = await third.awaitRun(id);
        assert.deepEqual(
          { ...payload, result: record?.result, error: record?.error },
          { ...payload, result: "went", error: undefined },
        );
        const steps = numbers.map((number) => `step ${number}`);
        if (isNew(payload)) steps.splice(payload.change - 1, 0, "new");
        assert.deepEqual(did.get(id), steps);
      }
    },
};

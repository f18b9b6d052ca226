import { appendFileSync } from "node:fs";
import { setTimeout } from "node:timers/promises";
import type { WorkContext } from "../../contract.ts";
import { createRestateEngine, type RestateOptions } from "../create-restate-engine.ts";

/** One node that Restate calls: a process that logs each begin and end of its work, with the fence, as lines of JSON. */
export interface NodeSettings {
  readonly url: string;
  readonly schema: string;
  readonly log: string;
  readonly restate: RestateOptions;
}

export interface WorkNote {
  readonly at: number;
  readonly pid: number;
  readonly id: string;
  readonly attempt: number;
  readonly fence: number;
  readonly what: "begin" | "end" | "lost" | "step";
  readonly step?: number | undefined;
}

const settings = JSON.parse(String(process.argv[2])) as NodeSettings;
const engine = await createRestateEngine({ ...settings, limits: { attempts: 1_000, backoffMs: 1 } });

function note({ id, attempt, fence }: WorkContext, what: WorkNote["what"], step?: number): void {
  const line: WorkNote = { at: Date.now(), pid: process.pid, id, attempt, fence, what, step };
  appendFileSync(settings.log, `${JSON.stringify(line)}\n`);
}

await engine.start({
  async dispatch(context, { input }) {
    note(context, "begin");
    context.signal.addEventListener("abort", () => note(context, "lost"), { once: true });
    // The work ignores its signal, as a model call or a command can.
    await setTimeout(Number(input));
    note(context, "end");
    return context.fence;
  },
  async run(context) {
    for (const step of [1, 2, 3]) {
      await context.step(`step ${step}`, async () => {
        note(context, "step", step);
        await setTimeout(100);
      });
    }
    await context.sleep(50);
    return await context.waitFor("go");
  },
});
process.send?.("ready");

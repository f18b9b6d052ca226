/**
 * A process whose engine executes runs until it is killed, or kills itself.
 * `fork(run-process.ts, [folder, log, steps])`: the log gets a line `key` when the work of a step ends. `steps` is the
 * number of steps after which a run kills its process, if the run asks for one more step each time. The steps of a family
 * log their run and never end.
 */
import { appendFileSync } from "node:fs";
import { setTimeout } from "node:timers/promises";
import { createEmbeddedEngine } from "../../create-embedded-engine.ts";
import { type FlowPayload, followFamily, followFlow, type Member } from "./run-flow.ts";

const [folder = "", log = "", steps = "0"] = process.argv.slice(2);
const engine = createEmbeddedEngine({ folder });

function die(): void {
  process.kill(process.pid, "SIGKILL");
}

await engine.start({
  dispatch: async () => undefined,
  async run(context, { payload, workflow }) {
    if (workflow === "family") {
      const never = async (): Promise<never> => {
        appendFileSync(log, `${context.id}\n`);
        return await new Promise(() => undefined);
      };
      return await followFamily(
        engine,
        { context, member: payload as Member },
        { step: never, decide: never },
      );
    }
    const plan = payload as FlowPayload;
    if (plan.dies === "at once") die();
    return await followFlow(context, plan.steps, (number) => async ({ idempotencyKey }) => {
      if (plan.dies !== undefined && number === Number(steps)) die();
      if (number % 3 === 0) await setTimeout(number % 4);
      appendFileSync(log, `${idempotencyKey}\n`);
      return number;
    });
  },
});
process.send?.("started");

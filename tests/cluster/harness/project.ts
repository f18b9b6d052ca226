/**
 * The project that every node serves. Each tool call is an effect, which the tool records when it begins, when it ends, and when
 * its signal fires with `lease_lost`; it ignores the signal, as a command or a model call can. The name of an
 * instance contains the duration of its effects.
 */
const agent = `import { appendFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { createAgent, defineTool } from "kit";

const write = (line, name, idempotent) => defineTool({
  name,
  description: "Writes a number down.",
  input: { type: "object", properties: { number: { type: "integer" } }, required: ["number"] },
  idempotent,
  async execute({ number }, { signal, idempotencyKey }) {
    const note = (what, more) => appendFileSync(process.env.KIT_CLUSTER_EFFECTS,
      JSON.stringify({ what, at: Date.now() - Number(process.env.KIT_CLUSTER_SKEW ?? 0), line, node: process.pid, effect: idempotencyKey, number, ...more }) + "\\n");
    note("begin");
    signal.addEventListener("abort", () => note("lost", { reason: signal.reason?.code ?? String(signal.reason) }), { once: true });
    await delay(Number(/-(\\d+)ms/.exec(line)?.[1] ?? 0));
    note("end");
    return "Written.";
  },
});

export const triggers = { webhook: true };
export default createAgent(({ id }) => ({
  model: "local/any",
  instructions: "You write numbers down.",
  tools: [write(id, "keep", true), write(id, "note", false)],
  specs: false,
  guidelines: false,
}));
`;

/** An agent that runs the commands that its model requests. */
const builder = `import { createAgent } from "kit";

export const triggers = { webhook: true };
export default createAgent(() => ({
  model: "local/any",
  instructions: "You build.",
  allowShell: true,
  allowCompoundCommands: true,
  specs: false,
  guidelines: false,
}));
`;

/** A run of five steps, a sleep, and a wait for a signal; each step is recorded. */
const steps = `import { appendFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";

export async function run(ctx) {
  const { number, steps = 5, ms = 100 } = ctx.payload;
  const note = (what, step) => appendFileSync(process.env.KIT_CLUSTER_EFFECTS,
    JSON.stringify({ what, at: Date.now(), line: "run-" + number, node: process.pid, effect: "step " + step }) + "\\n");
  for (let step = 1; step <= steps; step += 1) {
    await ctx.step("step " + step, async () => {
      note("begin", step);
      await delay(ms);
      note("end", step);
    });
  }
  await ctx.sleep(50);
  return ctx.payload.waits === true ? await ctx.waitFor("go") : number;
}
`;

/** A workflow for a schedule; its runs are named after the second of their start. */
const tick = `export const schedule = "* * * * * *";
export async function run() {
  return "ticked";
}
`;

export function project(modelUrl: string, engineToml: string): Readonly<Record<string, string>> {
  return {
    "kit.toml": `[providers.local]\nbase_url = "${modelUrl}"\n\n[engine]\n${engineToml}\n`,
    "src/agents/worker.ts": agent,
    "src/agents/builder.ts": builder,
    "src/workflows/steps.ts": steps,
    "src/workflows/tick.ts": tick,
  };
}

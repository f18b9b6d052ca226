/**
 * The project that every node serves. Each call of a tool is an effect: it is written down when it begins, when it ends, and when
 * it is told that its lease is lost; it does not heed that, as a command or an answer of a model may not. The name of an
 * instance says how long its effects take.
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

/** It runs the commands that its model says. */
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

/** A run of five steps, a sleep, and a wait for a signal; each step is written down. */
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

/** Its runs are named by their seconds. */
const tick = `export const schedule = "* * * * * *";
export async function run() {
  return "ticked";
}
`;

export function project(modelUrl: string, engineToml: string): Readonly<Record<string, string>> {
  return {
    "kit.toml": `[providers.local]\nbase_url = "${modelUrl}"\n\n[engine]\nmax_attempts = 1000\n${engineToml}\n`,
    "src/agents/worker.ts": agent,
    "src/agents/builder.ts": builder,
    "src/workflows/steps.ts": steps,
    "src/workflows/tick.ts": tick,
  };
}

import { setTimeout as delay } from "node:timers/promises";
import { expect, test } from "vitest";
import { KitClient } from "../../src/client/index.ts";
import { createRandom } from "./seeded-random.ts";
import { createFaultProject } from "./service/fault-project.ts";
import { answerTo } from "./service/model-server.ts";

const rounds = Number(process.env.KIT_FAULT_ROUNDS ?? 0);
const seed = Number(process.env.KIT_FAULT_SEED ?? 1);
const [families, kills] = rounds > 0 ? [40, Math.min(rounds, 20)] : [12, 4];
/** After a kill, what ran is begun again one piece after the other. */
const patience = { timeout: 120_000 };
const kinds = ["signal", "step", "approval"];

const files = {
  "src/workflows/grandparent.ts": `export const run = async (ctx) => ({ from: await ctx.run("parent", ctx.payload) });`,
  "src/workflows/parent.ts": `export const run = async (ctx) => ({ from: await ctx.run("kid", ctx.payload) });`,
  "src/workflows/kid.ts": `import { setTimeout as delay } from "node:timers/promises";
import asker from "../agents/asker.ts";

export async function run(ctx) {
  const { kind, number } = ctx.payload;
  if (kind === "signal") return await ctx.waitFor("go");
  if (kind === "step") return await ctx.step("work", async () => {
    await delay(300);
    return number;
  });
  const agent = await ctx.init(asker, { id: "asker-" + number });
  return (await agent.session().prompt("ask #" + number)).text;
}
`,
  "src/agents/asker.ts": `import { createAgent, defineTool } from "kit";

const ask = defineTool({
  name: "ask",
  description: "Asks a person.",
  input: { type: "object", properties: { number: { type: "integer" } }, required: ["number"] },
  needsApproval: true,
  execute: async () => "Yes.",
});

export default createAgent(() => ({ model: "local/any", instructions: "Ask.", tools: [ask], specs: false, guidelines: false }));
`,
};

test(
  `runs that wait for runs, signals and people all end after ${kills} kills (seed ${seed})`,
  async () => {
    const random = createRandom(seed);
    const { kit } = await createFaultProject(random, {
      files,
      script: (prompt, results) => {
        const [, number] = /^ask #(\d+)$/.exec(prompt) ?? [];
        if (number === undefined || results > 0) return { text: answerTo(prompt) };
        return {
          toolCall: { id: `call_${number}`, name: "ask", args: JSON.stringify({ number: Number(number) }) },
        };
      },
    });
    await kit.start();
    const client = new KitClient({
      baseUrl: kit.url,
      timeoutMs: 120_000,
      retry: { attempts: 1_000, baseDelayMs: 20 },
    });
    const payloads = Array.from({ length: families }, (_, number) => ({
      number,
      kind: kinds[number % kinds.length],
    }));
    const starting = payloads.map((payload) =>
      client.workflows.start("grandparent", payload, { idempotencyKey: `family-${payload.number}` }),
    );
    for (let kill = 0; kill < kills; kill += 1) {
      await delay(400 + random(800));
      await kit.end("SIGKILL");
      await kit.start();
    }
    const started = await Promise.all(starting);
    const open = async () => (await client.runs.list({ workflow: "kid", limit: 200 })).runs;
    await expect
      .poll(async () => (await open()).filter(({ status }) => status === "completed").length, patience)
      .toBeGreaterThanOrEqual(payloads.filter(({ kind }) => kind === "step").length);
    // Nothing that waits holds a slot; a run is still running until its wait is stored.
    const running = async () => (await client.runs.list({ status: "running", limit: 200 })).runs;
    await expect
      .poll(async () => (await running()).map(({ workflow }) => workflow), patience)
      .not.toContain("grandparent");
    const waiting = (await open()).filter(({ status }) => status === "waiting");
    for (const { run_id, waiting_for } of waiting)
      if (waiting_for?.some((one) => "signal" in one))
        await client.runs.signal(run_id, { name: "go", payload: "gone" });
    const asked = async () => (await client.approvals.list()).approvals;
    await expect
      .poll(async () => (await asked()).length, patience)
      .toBe(payloads.filter(({ kind }) => kind === "approval").length);
    for (const { approval_id, agent, instance_id: id } of await asked())
      await client.agents.approve(agent, { id, approval_id, approved: true });
    for (const [at, { run_id }] of started.entries()) {
      const { number, kind } = payloads[at] ?? {};
      await expect.poll(async () => (await client.runs.get(run_id)).status, patience).toBe("completed");
      const from = { signal: "gone", step: number, approval: answerTo(`ask #${number}`) }[kind ?? ""];
      expect((await client.runs.get(run_id)).result).toEqual({ from: { from } });
    }
  },
  300_000 + kills * 5_000,
);

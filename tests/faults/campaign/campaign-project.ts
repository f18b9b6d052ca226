import { appendFileSync, existsSync, readFileSync } from "node:fs";
import type { ModelScript } from "../service/model-server.ts";
import { answerTo } from "../service/model-server.ts";

/** A line of the ledger, which tools and steps write outside of kit when their effect happens. */
export interface Effect {
  readonly what: "keep" | "note" | "pay" | "step" | "tick";
  /** The work that the effect belongs to, such as `line-1#7`. */
  readonly name: string;
  /** The idempotency key of the call or step. */
  readonly key: string;
  /** ms by the clock of the machine that no fault sets (`steadyNow`). */
  readonly at: number;
  /** The process in which it happened. */
  readonly pid: number;
}

/** The end of a hang of a process: what it had begun before goes on then, although another process may have done it meanwhile. */
export interface Wake {
  readonly pid: number;
  /** As of an effect. */
  readonly at: number;
}

/** The time in ms by a clock that only rises, the same in all processes of the machine. */
export function steadyNow(): number {
  return Number(process.hrtime.bigint() / 1_000_000n);
}

/** The variable with the path of the ledger. */
export const ledgerVariable = "KIT_CAMPAIGN_LEDGER";

const head = `import { appendFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
// A fault can take the disk or the handles of the process: the effect itself happens once they are back.
const effect = async (what, name, key) => {
  const line = JSON.stringify({ what, name, key, at: Number(process.hrtime.bigint() / 1000000n), pid: process.pid }) + "\\n";
  for (;;) {
    try {
      return appendFileSync(process.env.${ledgerVariable}, line);
    } catch {
      await delay(20);
    }
  }
};
`;

const worker = `${head}import { createAgent, defineTool } from "kit";

const write = (id, name, idempotent) => defineTool({
  name,
  description: "Writes a number down.",
  input: { type: "object", properties: { number: { type: "integer" } }, required: ["number"] },
  idempotent,
  async execute({ number }, { idempotencyKey }) {
    await effect(name, id + "#" + number, idempotencyKey);
    await delay(number % 5 === 0 ? 400 : number % 40);
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

const payer = `${head}import { createAgent, defineTool } from "kit";

export const triggers = { webhook: true };
export default createAgent(({ id }) => ({
  model: "local/any",
  instructions: "You pay.",
  tools: [defineTool({
    name: "pay",
    description: "Pays.",
    input: { type: "object", properties: { number: { type: "integer" } }, required: ["number"] },
    needsApproval: true,
    async execute({ number }, { idempotencyKey }) {
      await effect("pay", id + "#" + number, idempotencyKey);
      return "Paid.";
    },
  })],
  specs: false,
  guidelines: false,
}));
`;

const parent = `${head}export async function run(ctx) {
  const { number } = ctx.payload;
  await ctx.step("before", ({ idempotencyKey }) => effect("step", "parent-" + number + " before", idempotencyKey));
  const got = await ctx.run("kid", { number });
  await ctx.sleep(30);
  await ctx.step("after", ({ idempotencyKey }) => effect("step", "parent-" + number + " after", idempotencyKey));
  return { number, got };
}
`;

/** The child works for a while, and every second one then waits for a signal. */
const kid = `${head}export async function run(ctx) {
  const { number } = ctx.payload;
  await ctx.step("work", async ({ idempotencyKey }) => {
    await effect("step", "kid-" + number + " work", idempotencyKey);
    await delay(number % 3 === 0 ? 1500 : 100);
  });
  return number % 2 === 0 ? await ctx.waitFor("go") : number;
}
`;

const tick = `${head}export const schedule = "* * * * * *";
export async function run(ctx) {
  await ctx.step("tick", ({ idempotencyKey }) => effect("tick", ctx.id, idempotencyKey));
}
`;

/** The workflow that a fault breaks and mends. */
export const orderFile = "src/workflows/parent.ts";

export const campaignFiles: Readonly<Record<string, string>> = {
  "src/agents/worker.ts": worker,
  "src/agents/payer.ts": payer,
  [orderFile]: parent,
  "src/workflows/kid.ts": kid,
  "src/workflows/tick.ts": tick,
};

/** `#7` calls a tool and is then answered; `pay #7` asks for a payment; `talk #7` is a long answer in many deltas. */
export const campaignScript: ModelScript = (prompt, results) => {
  const [, word = "", digits = ""] = /^(pay |talk )?#(\d+)$/.exec(prompt) ?? [];
  if (digits === "" || results > 0) return { text: answerTo(prompt) };
  const number = Number(digits);
  if (word === "talk ") return { text: `${"word ".repeat(200)}${answerTo(prompt)}` };
  const name = word === "pay " ? "pay" : number % 2 === 1 ? "keep" : "note";
  return { toolCall: { id: `call_${number}`, name, args: JSON.stringify({ number }) } };
};

export function readLedger(file: string): readonly Effect[] {
  if (!existsSync(file)) return [];
  return readFileSync(file, "utf8")
    .split("\n")
    .slice(0, -1)
    .map((line) => JSON.parse(line));
}

/** Creates the file, so that every process appends to the same one. */
export function createLedger(file: string): void {
  appendFileSync(file, "");
}

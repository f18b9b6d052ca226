import { readFileSync } from "node:fs";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { createTemporaryRepository } from "../../../src/testing/temporary-repository.ts";
import { createKitProcess, type KitProcess } from "./kit-process.ts";
import { type ModelScript, type ModelServer, startModelServer } from "./model-server.ts";

/** A project for a real `kit start`, and the provider of its model. */
export interface FaultProject {
  readonly root: string;
  readonly kit: KitProcess;
  readonly model: ModelServer;
  /** Creates another server of the same project, which is not started yet; it shares the engine or has its own. */
  another(options?: { readonly ownEngine?: boolean }): Promise<KitProcess>;
  /** The lines that a tool or a workflow has written: the key and the number of each call that ran. */
  effects(
    log: "keep" | "note" | "steps" | "ticks",
  ): readonly { readonly key: string; readonly call: string }[];
}

// `keep` can be repeated after a crash, `note` cannot. Both take a moment after their effect.
const agent = `import { appendFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { createAgent, defineTool } from "kit";

const write = (id, name, idempotent) => defineTool({
  name,
  description: "Writes a number down.",
  input: { type: "object", properties: { number: { type: "integer" } }, required: ["number"] },
  idempotent,
  async execute({ number }, { idempotencyKey }) {
    appendFileSync(join(process.cwd(), name + ".log"), idempotencyKey + " " + id + "#" + number + "\\n");
    await delay(number % 7);
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

// Each step logs that it ran; the agent's dispatch is between them.
const workflow = `import { appendFileSync } from "node:fs";
import { join } from "node:path";
import worker from "../agents/worker.ts";

export async function run(ctx) {
  const number = ctx.payload.number;
  const note = (step) => appendFileSync(join(process.cwd(), "steps.log"), step + " order-" + number + "#" + number + "\\n");
  await ctx.step("first", () => note("first"));
  await ctx.sleep(number % 5);
  const agent = await ctx.init(worker, { id: "order-" + number });
  const { text } = await agent.session().prompt("#" + number);
  await ctx.step("second", () => note("second"));
  return { text };
}
`;

/** The configuration of a server with its own engine and the same sessions. */
const otherConfig = "other.toml";

export interface FaultSettings {
  /** Lines of kit.toml below `[engine]`. */
  readonly engine?: string;
  /** The address of a session store; default: a file of the project. */
  readonly store?: string;
  readonly files?: Readonly<Record<string, string>>;
  readonly script?: ModelScript;
}

export async function createFaultProject(
  random: (below: number) => number,
  { engine = "", files = {}, store, script }: FaultSettings = {},
): Promise<FaultProject> {
  const model = await startModelServer(random, script);
  const toml = `${store === undefined ? "" : `store = "${store}"\n\n`}[providers.local]\nbase_url = "${model.baseUrl}"\n\n[engine]\n${engine}\n`;
  const repository = await createTemporaryRepository({
    "src/agents/worker.ts": agent,
    "src/workflows/order.ts": workflow,
    ...files,
    "kit.toml": toml,
    // The file must exist before an agent works: kit does not accept a configuration that appears meanwhile.
    [otherConfig]: `${toml}folder = ".kit/other"\n`,
  });
  const { root } = repository;
  const kit = await createKitProcess(root);
  const servers = [kit];
  onTestFinished(async () => {
    for (const server of servers) await server.end("SIGKILL");
    await model.close();
    await repository[Symbol.asyncDispose]();
  });
  return {
    root,
    kit,
    model,
    async another({ ownEngine = false } = {}) {
      const other = await createKitProcess(root, ownEngine ? ["--config", otherConfig] : []);
      servers.push(other);
      return other;
    },
    effects(log) {
      const lines = readLines(join(root, `${log}.log`));
      return lines.map((line) => {
        const [key = "", call = ""] = line.split(" ");
        return { key, call };
      });
    },
  };
}

function readLines(file: string): readonly string[] {
  try {
    return readFileSync(file, "utf8").trim().split("\n");
  } catch {
    return [];
  }
}

import { createHmac } from "node:crypto";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type ServedService, serveService } from "../testing/serve-service.ts";

const secret = "delivery-secret";

/** Gives an input to an agent, starts a run, signals it and awaits its result: from a name, and from a definition. */
const useAll = `async (calls, own) => {
  const { dispatch_id } = await calls.dispatch("echo", { id: own, input: "hello" });
  await calls.dispatch(echo, { id: own, input: "hello again" });
  const run = await calls.startRun(ask, { n: 21 });
  await calls.getRun(run.runId).signal("factor", 2);
  const byName = await calls.startRun("ask", { n: 1 });
  await byName.signal("factor", 3);
  const cancelled = await calls.startRun("ask", { n: 0 });
  const isCancelled = await cancelled.cancel();
  const failed = await cancelled.result().catch((error) => error.code);
  return { dispatch_id, results: [await run.result(), await byName.result()], isCancelled, failed };
}`;

const files = {
  "src/workflows/ask.ts": `export default {
  kind: "kit.workflow",
  run: async ({ payload, waitFor }) => payload.n * (await waitFor("factor")),
};
`,
  "src/workflows/asker.ts": `import echo from "../agents/echo.ts";
import ask from "./ask.ts";
const useAll = ${useAll};
export default { kind: "kit.workflow", run: (ctx) => useAll(ctx, "from-workflow") };
`,
  "src/agents/starter.ts": `import ask from "../workflows/ask.ts";
import echo from "./echo.ts";
const useAll = ${useAll};
export const triggers = { webhook: true };
const tool = (name, execute) => ({ name, description: "Starts runs.", input: { type: "object" }, execute });
export default {
  kind: "kit.agent",
  describe: async (ctx) => ({
    tools: [{
      name: "pay",
      description: "Starts runs.",
      input: { type: "object" },
      execute: async ({ cents }, tool) => {
        if (cents === 1) return await useAll(tool, "from-tool");
        if (cents === 2) return await useAll(ctx, "from-agent");
        if (cents === 4) {
          const run = await tool.startRun(ask, { n: 1 });
          globalThis.waitingTool = true;
          await run.result().catch((error) => (globalThis.waitingTool = error.code ?? error.name));
        }
        if (cents === 3) ctx.signal.addEventListener("abort", () => (globalThis.closedAgent = ctx.id));
        const { env, agent, instance, session, principal, signal } = tool;
        return { region: env.REGION, agent, instance, session, principal, fires: signal instanceof AbortSignal };
      },
    }],
  }),
};
`,
  "src/agents/beginner.ts": `export const triggers = { webhook: true };
export default {
  kind: "kit.agent",
  describe: async ({ id, startRun }) => {
    const { runId } = await startRun("ask", { n: 1 }, { idempotencyKey: id });
    return { instructions: runId };
  },
};
`,
  "src/webhooks/starter.ts": `import echo from "../agents/echo.ts";
import ask from "../workflows/ask.ts";
const useAll = ${useAll};
export default {
  kind: "kit.webhook",
  scheme: "github",
  secret: () => "${secret}",
  handle: async (delivery) => delivery.payload.wait
    ? (await delivery.startRun("ask", { n: 1 })).result({ signal: delivery.signal }).catch((error) => {
        globalThis.goneSender = error.code;
        throw error;
      })
    : useAll(delivery, "from-webhook"),
};
`,
};

const used = {
  dispatch_id: expect.any(String),
  results: [42, 3],
  isCancelled: true,
  failed: "aborted",
};

let served: ServedService;
beforeAll(async () => {
  served = await serveService({
    files,
    env: { REGION: "eu" },
    access: { auth: () => ({ id: "alice" }) },
    // One slot: whoever waits for a run must leave the slot to that run.
    engine: { running: 1 },
  });
});
afterAll(() => served.close());

async function resultOfTool(instance: string, kind: number): Promise<unknown> {
  await served.send(`/agents/starter/${instance}`, { body: { message: `pay ${kind}` } });
  const { body } = await served.send(`/agents/starter/${instance}/history`);
  const [result] = body.messages.flatMap(({ role, content }: { role: string; content: unknown[] }) =>
    role === "tool" ? content : [],
  );
  return JSON.parse(result.content[0].text);
}

async function deliver(payload: unknown, signal?: AbortSignal): Promise<unknown> {
  const body = JSON.stringify(payload);
  const signature = createHmac("sha256", secret).update(body).digest("hex");
  const reply = await fetch(`${served.url}/webhooks/starter`, {
    method: "POST",
    headers: { "content-type": "application/json", "x-hub-signature-256": `sha256=${signature}` },
    body,
    ...(signal && { signal }),
  });
  return await reply.json();
}

const runsOf = async (status: string): Promise<number> =>
  (await served.send(`/runs?workflow=ask&status=${status}`)).body.runs.length;

test.each<[string, string, () => Promise<unknown>]>([
  ["a tool", "from-tool", () => resultOfTool("1", 1)],
  ["the tool of an agent, by the calls of the agent's function,", "from-agent", () => resultOfTool("2", 2)],
  ["a webhook", "from-webhook", () => deliver({ n: 4 })],
  [
    "a workflow",
    "from-workflow",
    async () => (await served.send("/workflows/asker?wait=result", { body: {} })).body.result,
  ],
])("%s dispatches, and starts, signals, cancels and awaits runs", async (_, instance, work) => {
  const before = await runsOf("completed");
  expect(await work()).toEqual(used);
  expect(await runsOf("completed")).toBe(before + 2);
  // Both inputs arrived: the one by the agent's name, and the one by its definition.
  await expect
    .poll(async () => (await served.send(`/agents/echo/${instance}/history`)).body.messages?.length)
    .toBe(4);
});

test("a webhook's work is done once, however often its delivery comes", async () => {
  const first = await deliver({ n: 5 });
  const before = await runsOf("completed");
  expect(await deliver({ n: 5 })).toEqual(first);
  expect(await runsOf("completed")).toBe(before);
});

test("a tool knows its instance, session and principal, the environment, and when it is stopped", async () => {
  expect(await resultOfTool("3", 3)).toEqual({
    region: "eu",
    agent: "starter",
    instance: "3",
    session: "default",
    principal: "alice",
    fires: true,
  });
});

test("the signal of an agent's function fires when the instance is closed", async () => {
  await resultOfTool("4", 3);
  Reflect.deleteProperty(globalThis, "closedAgent");
  await served.send("/agents/starter/4", { method: "DELETE" });
  expect(Reflect.get(globalThis, "closedAgent")).toBe("4");
});

test("an agent's function starts a run once by its key, however often the instance is created", async () => {
  const before = await runsOf("waiting");
  for (const message of ["hello", "again"]) {
    await served.send("/agents/beginner/once", { body: { message } });
    await served.service.reload();
  }
  expect(await runsOf("waiting")).toBe(before + 1);
});

test("a webhook whose sender has gone stops waiting for its run", async () => {
  const sender = new AbortController();
  const before = await runsOf("waiting");
  const delivery = deliver({ wait: true }, sender.signal).catch((error: unknown) => error);
  await expect.poll(() => runsOf("waiting")).toBe(before + 1);
  sender.abort();
  await delivery;
  await expect.poll(() => Reflect.get(globalThis, "goneSender")).toBe("aborted");
});

test("a call that is aborted stops waiting for its run, which goes on", async () => {
  const stop = new AbortController();
  const prompt = served
    .send("/agents/starter/5", { body: { message: "pay 4" }, signal: stop.signal })
    .catch((error: unknown) => error);
  await expect.poll(() => Reflect.get(globalThis, "waitingTool")).toBe(true);
  await served.send("/agents/starter/5/abort", { body: {} });
  await prompt;
  expect(Reflect.get(globalThis, "waitingTool")).toBe("aborted");
});

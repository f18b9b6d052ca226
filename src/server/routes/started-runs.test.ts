import { createHmac } from "node:crypto";
import { isDeepStrictEqual } from "node:util";
import { expect, test } from "vitest";
import type { DispatchRecord } from "../../protocol/dispatch.ts";
import type { RunRecord } from "../../protocol/run.ts";
import type { WorkCause } from "../../protocol/work-cause.ts";
import { serveForTests } from "../testing/serve-for-tests.ts";

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

const served = serveForTests({
  files,
  env: { REGION: "eu" },
  access: { auth: () => ({ id: "alice" }) },
  // One slot: whoever waits for a run must leave the slot to that run.
  engine: { running: 1 },
});

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
])("%s can dispatch, and start, signal, cancel and await runs", async (_, instance, work) => {
  const before = await runsOf("completed");
  expect(await work()).toEqual(used);
  expect(await runsOf("completed")).toBe(before + 2);
  // Both inputs arrived: the one by the agent's name, and the one by its definition.
  await expect
    .poll(async () => (await served.send(`/agents/echo/${instance}/history`)).body.messages?.length)
    .toBe(4);
});

test("records name the delivery that caused them, and a delivery lists the work that it started", async () => {
  await served.send("/agents/echo/sent/dispatch", { body: { input: "hello" } });
  const { dispatches } = (await served.send("/dispatches")).body as { dispatches: readonly DispatchRecord[] };
  const { runs } = (await served.send("/runs?limit=1000")).body as { runs: readonly RunRecord[] };
  const inputOf = (id: string) => dispatches.find(({ instance_id }) => instance_id === id);
  const asker = runs.find(({ workflow }) => workflow === "asker");
  expect(asker?.cause).toEqual({ type: "sender", principal: "alice" });
  expect(inputOf("sent")?.cause).toEqual({ type: "sender", principal: "alice" });
  const byRun = { type: "run", run_id: asker?.run_id };
  expect(inputOf("from-workflow")?.cause).toEqual(byRun);
  const prompt = { type: "prompt", agent: "starter", session: "default" };
  const [operation] = (await served.send("/agents/starter/1/operations")).body.operations;
  const byTool = { ...prompt, instance_id: "1", operation_id: operation.operation_id };
  expect(inputOf("from-tool")?.cause).toEqual(byTool);
  expect(inputOf("from-agent")?.cause).toMatchObject({ ...prompt, instance_id: "2" });
  const cause = inputOf("from-webhook")?.cause;
  expect(cause).toEqual({ type: "webhook", webhook: "starter", delivery_id: expect.any(String) });
  const own = (cause: unknown) =>
    runs.filter((run) => isDeepStrictEqual(run.cause, cause)).map(({ run_id }) => run_id);
  expect([own(byRun), own(byTool)].map((ids) => ids.length)).toEqual([3, 3]);

  const { webhook, delivery_id } = cause as Extract<WorkCause, { type: "webhook" }>;
  const query = new URLSearchParams({ webhook, delivery_id });
  const { deliveries } = (await served.send(`/deliveries?${query}`)).body;
  expect(deliveries).toMatchObject([{ delivery_id, status: 200 }]);
  expect(deliveries[0].runs.toSorted()).toEqual(own(cause).toSorted());
  expect(deliveries[0].dispatches).toContain(inputOf("from-webhook")?.dispatch_id);
  expect((await served.send("/deliveries?delivery_id=none")).body.deliveries).toEqual([]);
});

test("a tool of a dispatched prompt names the dispatch", async () => {
  const { body } = await served.send("/agents/starter/5/dispatch", { body: { input: "pay 1" } });
  await served.service.engine.awaitDispatch(body.dispatch_id);
  const { items } = await served.service.engine.listRuns({ workflow: "ask", limit: 3 });
  expect(items.map(({ cause }) => cause)).toEqual(
    Array(3).fill(
      expect.objectContaining({ type: "prompt", instance_id: "5", dispatch_id: body.dispatch_id }),
    ),
  );
});

test("a webhook's work is done once, however often its delivery is repeated", async () => {
  const first = await deliver({ n: 5 });
  const before = await runsOf("completed");
  expect(await deliver({ n: 5 })).toEqual(first);
  expect(await runsOf("completed")).toBe(before);
});

test("a tool gets its instance, session, principal, environment and abort signal", async () => {
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

test("an agent's function with a key starts a run once, however often the instance is created", async () => {
  const before = await runsOf("waiting");
  for (const message of ["hello", "again"]) {
    await served.send("/agents/beginner/once", { body: { message } });
    await served.service.reload();
  }
  expect(await runsOf("waiting")).toBe(before + 1);
});

test("a webhook whose sender has disconnected stops waiting for its run", async () => {
  const sender = new AbortController();
  const before = await runsOf("waiting");
  const delivery = deliver({ wait: true }, sender.signal).catch((error: unknown) => error);
  await expect.poll(() => runsOf("waiting")).toBe(before + 1);
  sender.abort();
  await delivery;
  await expect.poll(() => Reflect.get(globalThis, "goneSender")).toBe("aborted");
});

test("an aborted call stops waiting for its run, which continues", async () => {
  const stop = new AbortController();
  const prompt = served
    .send("/agents/starter/5", { body: { message: "pay 4" }, signal: stop.signal })
    .catch((error: unknown) => error);
  await expect.poll(() => Reflect.get(globalThis, "waitingTool")).toBe(true);
  await served.send("/agents/starter/5/abort", { body: {} });
  await prompt;
  expect(Reflect.get(globalThis, "waitingTool")).toBe("aborted");
});

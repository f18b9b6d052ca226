import { createHmac } from "node:crypto";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type ServedService, serveService } from "../testing/serve-service.ts";

const secret = "delivery-secret";

const files = {
  "src/workflows/twice.ts": "export const run = async ({ payload }) => ({ twice: 2 * payload.n });\n",
  "src/agents/starter.ts": `export const triggers = { webhook: true };
const pay = {
  name: "pay",
  description: "Pays an amount.",
  input: { type: "object" },
  execute: async ({ cents }, { startRun, getRun, agent, instance }) => {
    const { runId } = await startRun("twice", { n: cents });
    return { agent, instance, ...(await getRun(runId).result()) };
  },
};
export default { kind: "kit.agent", describe: async () => ({ tools: [pay] }) };
`,
  "src/webhooks/starter.ts": `export default {
  kind: "kit.webhook",
  scheme: "github",
  secret: () => "${secret}",
  handle: async ({ payload, startRun }) => {
    const run = await startRun("twice", { n: payload.n });
    return { run: run.runId, result: await run.result() };
  },
};
`,
};

let served: ServedService;
beforeAll(async () => {
  served = await serveService({ files });
});
afterAll(() => served.close());

test("a tool starts a run of the service and returns its result to the model", async () => {
  await served.send("/agents/starter/a", { body: { message: "pay 21" } });
  const { body } = await served.send("/agents/starter/a/history");
  const results = JSON.stringify(body.messages);
  expect(results).toContain(JSON.stringify('{"agent":"starter","instance":"a","twice":42}').slice(1, -1));
  const { items } = await served.service.engine.listRuns({ workflow: "twice" });
  expect(items).toMatchObject([{ status: "completed", result: { twice: 42 } }]);
});

test("a webhook starts a run once, however often its delivery comes", async () => {
  const body = JSON.stringify({ n: 4 });
  const signature = createHmac("sha256", secret).update(body).digest("hex");
  const deliver = async (): Promise<unknown> => {
    const reply = await fetch(`${served.url}/webhooks/starter`, {
      method: "POST",
      headers: { "content-type": "application/json", "x-hub-signature-256": `sha256=${signature}` },
      body,
    });
    return await reply.json();
  };
  const first = await deliver();
  expect(first).toEqual({ run: expect.any(String), result: { twice: 8 } });
  expect(await deliver()).toEqual(first);
});

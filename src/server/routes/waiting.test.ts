import { afterAll, beforeAll, expect, test } from "vitest";
import { serveForTests } from "../testing/serve-for-tests.ts";
import { type ServedService, serveService } from "../testing/serve-service.ts";

const files = {
  "kit.toml": '[agent.approvals]\ntools = ["pay"]\n',
  "src/agents/paying.ts": `export const triggers = { webhook: true };
const pay = { name: "pay", description: "Pays.", input: { type: "object" }, execute: () => "Paid." };
export default { kind: "kit.agent", describe: async () => ({ tools: [pay] }) };
`,
  "src/workflows/approving.ts": `export default {
  kind: "kit.workflow",
  run: async (ctx) => await ctx.waitFor("approval", { schema: { type: "object" } }),
};
`,
  "src/workflows/explaining.ts": `export default {
  kind: "kit.workflow",
  run: async (ctx) => [
    await ctx.waitFor("number", { message: "How many?", schema: { type: "integer" } }),
    await ctx.waitFor("rest", { message: "Anything else?" }),
  ],
};
`,
};

let restricted: ServedService;
const served = serveForTests({ files });
beforeAll(async () => {
  restricted = await serveService({
    files,
    authorize: ({ action, instance, workflow }) =>
      !(action === "agent.read" && instance === "secret") &&
      !(action === "run.read" && workflow === "approving"),
  });
});
afterAll(async () => {
  await restricted.close();
});

const listWaiting = async ({ send }: ServedService, query = "") => (await send(`/waiting${query}`)).body;

test("calls and signals wait in one list, oldest first, in pages with the number of all", async () => {
  expect(await listWaiting(served)).toEqual({ items: [], total: 0 });
  await served.send("/agents/paying/1/dispatch", { body: { input: "pay 5" } });
  await expect.poll(async () => (await listWaiting(served)).total).toBe(1);
  const { run_id } = (await served.send("/workflows/approving", { body: { version: "1.2" } })).body;
  await served.send("/agents/paying/2/dispatch", { body: { input: "pay 6" } });
  await expect.poll(async () => (await listWaiting(served)).total).toBe(3);
  const { items } = await listWaiting(served);
  const times = items.map(({ requested_at }: { requested_at: string }) => requested_at);
  expect(times).toEqual(times.toSorted());
  const [call] = items;
  expect(call).toMatchObject({ kind: "call", approval: { agent: "paying", instance_id: "1", tool: "pay" } });
  const signal = items.find(({ kind }: { kind: string }) => kind === "signal");
  expect(signal).toEqual({
    kind: "signal",
    requested_at: expect.stringMatching(/^\d{4}-.*Z$/),
    run_id,
    workflow: "approving",
    position: 1,
    signal: "approval",
    schema: { type: "object" },
    payload_start: '{"version":"1.2"}',
  });
  const first = await listWaiting(served, "?limit=2");
  expect([first.items, first.total]).toEqual([items.slice(0, 2), 3]);
  const second = await listWaiting(served, `?limit=2&cursor=${encodeURIComponent(first.next_cursor)}`);
  expect(second).toEqual({ items: items.slice(2), total: 3 });
  expect(await listWaiting(served, "?kind=signal")).toEqual({ items: [signal], total: 1 });
  expect((await listWaiting(served, "?kind=call")).total).toBe(2);
  await served.send(`/runs/${run_id}/signal`, { body: { name: "approval", payload: {} } });
  await expect.poll(async () => (await listWaiting(served, "?kind=signal")).total).toBe(0);
});

test("the list has what a workflow tells the person, with and without a schema", async () => {
  const { run_id } = (await served.send("/workflows/explaining", { body: {} })).body;
  const signals = async () => (await listWaiting(served, "?kind=signal")).items;
  await expect
    .poll(signals)
    .toMatchObject([{ signal: "number", message: "How many?", schema: { type: "integer" } }]);
  const send = (name: string, payload: unknown) =>
    served.send(`/runs/${run_id}/signal`, { body: { name, payload } });
  expect((await send("number", "two")).status).toBe(400);
  await send("number", 2);
  await expect.poll(signals).toMatchObject([{ signal: "rest", message: "Anything else?" }]);
  expect((await signals())[0]).not.toHaveProperty("schema");
  await send("rest", { any: "thing" });
  await expect
    .poll(async () => (await served.send(`/runs/${run_id}`)).body.result)
    .toEqual([2, { any: "thing" }]);
});

test("a sender finds and counts only what it may read", async () => {
  for (const instance of ["open", "secret", "public"])
    await restricted.send(`/agents/paying/${instance}/dispatch`, { body: { input: "pay 5" } });
  await restricted.send("/workflows/approving", { body: {} });
  const waiting = async () => await restricted.service.waiting({ limit: 10 });
  await expect.poll(async () => (await waiting()).total).toBe(4);
  const found = async (query?: string): Promise<unknown> => {
    const { items, total, next_cursor } = await listWaiting(restricted, query);
    const instances = items.map((item: { approval: { instance_id: string } }) => item.approval.instance_id);
    return { instances: instances.toSorted(), total, next_cursor };
  };
  expect(await found()).toEqual({ instances: ["open", "public"], total: 2 });
  expect(await found("?kind=signal")).toEqual({ instances: [], total: 0 });
  const first = await listWaiting(restricted, "?limit=1");
  expect([first.items.length, first.total]).toEqual([1, 2]);
  const second = await listWaiting(restricted, `?limit=1&cursor=${encodeURIComponent(first.next_cursor)}`);
  expect(second).toMatchObject({ items: [{ kind: "call" }], total: 2 });
  expect(second.items[0].approval.instance_id).not.toBe(first.items[0].approval.instance_id);
  expect(second.next_cursor).toBeUndefined();
});

test("a cursor of another list is refused", async () => {
  for (const cursor of ["none", "2026-11-20T10:00:00.000Z approval_1"])
    expect((await served.send(`/waiting?cursor=${encodeURIComponent(cursor)}`)).status).toBe(400);
});

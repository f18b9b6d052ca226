import { afterAll, beforeAll, expect, test } from "vitest";
import { postgresEngine } from "./harness/engines.ts";
import { type Kit, Kits } from "./harness/kits.ts";

let cluster: Kits;
let kit: Kit;

beforeAll(async () => {
  cluster = await Kits.start(postgresEngine, 2);
  kit = cluster.kits[0] as Kit;
});

afterAll(() => cluster?.stop());

const statusOf = async (path: string): Promise<number> => (await fetch(`${kit.process.url}${path}`)).status;

test("a stopped node reports its drain under /health for server.drain_seconds, and works until then", async () => {
  await cluster.end(kit);
  await cluster.startKit(kit, { KIT_DRAIN_SECONDS: "3" });
  expect([await statusOf("/health"), await statusOf("/health/live")]).toEqual([200, 200]);
  const stoppedAt = Date.now();
  const ended = cluster.end(kit);
  await cluster.until(async () => (await statusOf("/health")) === 503);
  expect(await statusOf("/health/live")).toBe(200);
  // The node still accepts work, because balancers have not checked it yet.
  const reply = await fetch(`${kit.process.url}/agents/worker/leaving-0ms/dispatch`, {
    method: "POST",
    body: JSON.stringify({ input: "#1" }),
    headers: { "content-type": "application/json" },
  });
  expect(reply.status).toBe(202);
  const { dispatch_id } = (await reply.json()) as { dispatch_id: string };
  expect(await ended).toBe(0);
  expect(Date.now() - stoppedAt).toBeGreaterThanOrEqual(3_000);
  await cluster.until(async () => (await cluster.engine.open(cluster.database, [dispatch_id])) === 0);
});

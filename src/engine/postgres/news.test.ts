import { setTimeout as delay } from "node:timers/promises";
import pg from "pg";
import { expect, test } from "vitest";
import { postgresForTests } from "../../testing/postgres-for-tests.ts";
import { handlers } from "../cases/engine-check.ts";
import type { Engine } from "../contract.ts";
import { createPostgresEngine } from "./create-postgres-engine.ts";

const server = postgresForTests();

test("nodes send no news once all work has ended, and the owner of a run that another node cancelled ends its stream", async () => {
  const schema = "quiet";
  const nodes = await Promise.all([1, 2, 3].map(() => createPostgresEngine({ url: server.url, schema })));
  for (const node of nodes)
    await node.start(handlers({ dispatch: async () => "done", run: (context) => context.waitFor("never") }));
  let sent = 0;
  const listener = new pg.Client({ connectionString: server.url });
  await listener.connect();
  listener.on("notification", ({ payload = "[]" }) => {
    sent += (JSON.parse(payload) as string[][]).filter(([kind]) => kind !== "echo").length;
  });
  await listener.query(`LISTEN "kit ""${schema}"""`);
  await expect.poll(() => nodes.map((node) => node.cluster?.owns({ run_id: "any" }))).toContain(true);
  const runs: string[] = [];
  for (let number = 0; number < 9; number += 1) {
    const node = nodes[number % 3] as Engine;
    const { run_id } = await node.startRun({ workflow: "w", payload: null });
    runs.push(run_id);
    const key = { agent: "a", instance_id: `i${number}`, session: "default" };
    const { dispatch_id } = await node.admit({ ...key, input: "x" });
    expect(await node.awaitDispatch(dispatch_id)).toMatchObject({ status: "completed" });
  }
  const notifyEnd = async (run_id: string): Promise<void> => {
    const payload = JSON.stringify([["ended_elsewhere", run_id]]);
    await listener.query("SELECT pg_notify($1, $2)", [`kit "${schema}"`, payload]);
  };
  for (const run_id of runs) {
    await expect.poll(async () => (await nodes[0]?.getRun(run_id))?.status).toBe("waiting");
    const owner = nodes.find((node) => node.cluster?.owns({ run_id })) as Engine;
    const other = nodes.find((node) => node !== owner);
    // News that is late, as for a failed run that was continued meanwhile, ends nothing.
    await notifyEnd(run_id);
    await delay(50);
    expect(await other?.cancelRun(run_id)).toBe(true);
    await notifyEnd(run_id);
    await delay(50);
    const ends: unknown[] = [];
    for await (const event of owner.events.subscribe(`run/${run_id}`)) ends.push(event.type);
    expect(ends.filter((type) => type === "run_end")).toEqual(["run_end"]);
  }
  expect(sent).toBeGreaterThan(0);
  await delay(300);
  sent = 0;
  await delay(1_000);
  expect(sent).toBe(0);
  await listener.end();
  await Promise.all(nodes.map((node) => node.drain({ timeoutMs: 0 })));
}, 60_000);

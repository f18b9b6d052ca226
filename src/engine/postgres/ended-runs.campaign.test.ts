import { setTimeout as delay } from "node:timers/promises";
import pg from "pg";
import { expect, onTestFinished, test } from "vitest";
import { postgresForTests } from "../../testing/postgres-for-tests.ts";
import { handlers } from "../cases/engine-check.ts";
import type { Engine, EngineHandlers } from "../contract.ts";
import { createPostgresEngine } from "./create-postgres-engine.ts";

const server = postgresForTests();

async function open(schema: string, run: EngineHandlers["run"]): Promise<Engine> {
  const engine = await createPostgresEngine({ url: server.url, schema });
  onTestFinished(() => engine.drain({ timeoutMs: 0 }));
  await engine.start(handlers({ run }));
  return engine;
}

async function connect(): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: server.url });
  // The server stops after the test.
  client.on("error", () => undefined);
  await client.connect();
  return client;
}

test("a run whose end is being recorded stays with its node, and its stream ends, although another node joins", async () => {
  const run = async (): Promise<string> => {
    await delay(200);
    return "done";
  };
  const first = await open("settling", run);
  await expect.poll(() => first.cluster?.owns({ run_id: "any" })).toBe(true);
  const client = await connect();
  await client.query(
    "CREATE FUNCTION settling.slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(4); RETURN NEW; END $$",
  );
  await client.query(
    `CREATE TRIGGER slow BEFORE UPDATE ON settling.runs FOR EACH ROW
     WHEN (NEW.status = 'completed' AND OLD.status = 'running') EXECUTE FUNCTION settling.slow()`,
  );
  const ids: string[] = [];
  for (let number = 0; number < 8; number += 1)
    ids.push((await first.startRun({ workflow: "w", payload: null })).run_id);
  await delay(600);
  const second = await open("settling", run);
  const others = Array.from({ length: 50 }, (_, number) => ({ run_id: `other${number}` }));
  await expect
    .poll(() => others.some((other) => second.cluster?.owns(other)), { timeout: 10_000 })
    .toBe(true);
  for (const id of ids) {
    await first.awaitRun(id);
    for await (const event of second.events.subscribe(`run/${id}`, { signal: AbortSignal.timeout(8_000) }))
      expect(event.index).toBeGreaterThan(0);
  }
  await expect
    .poll(async () => (await client.query("SELECT 1 FROM settling.streams WHERE NOT ended")).rows.length)
    .toBe(0);
  await client.end();
});

test("a sleeping run that another transaction has locked when it is due wakes soon after", async () => {
  const engine = await open("locked", async (context) => await context.sleep(3_000));
  const client = await connect();
  const { run_id } = await engine.startRun({ workflow: "w", payload: null });
  await expect.poll(async () => (await engine.getRun(run_id))?.status, { timeout: 5_000 }).toBe("waiting");
  await delay(100);
  const { rows } = await client.query("SELECT wake_at FROM locked.runs WHERE run_id = $1", [run_id]);
  await client.query("BEGIN");
  await client.query("SELECT 1 FROM locked.runs WHERE run_id = $1 FOR UPDATE", [run_id]);
  await delay(Number(rows[0].wake_at) - Date.now() + 50);
  await client.query("COMMIT");
  const since = performance.now();
  expect((await engine.awaitRun(run_id))?.status).toBe("completed");
  expect(performance.now() - since).toBeLessThan(1_000);
  await client.end();
});

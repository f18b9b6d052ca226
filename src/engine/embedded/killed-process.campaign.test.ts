import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { setTimeout } from "node:timers/promises";
import { afterAll, expect, test } from "vitest";
import { testFolder } from "../../testing/test-folder.ts";
import { createEmbeddedEngine } from "./create-embedded-engine.ts";
import { startEngineProcess } from "./testing/engine-process.ts";

const root = testFolder(afterAll);

/** More rounds find more: `KIT_FAULT_ROUNDS=100 vitest run --project campaigns src/engine/embedded/killed-process.campaign.test.ts`. */
const rounds = Number(process.env.KIT_FAULT_ROUNDS ?? 4);
const seed = Number(process.env.KIT_FAULT_SEED ?? 7);
const instances = 12;

/** mulberry32: the same numbers for the same seed. */
function createRandom(start: number): () => number {
  let state = start;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

/** Counts how often each dispatch is settled from now on, with a trigger outside the engine. */
function countSettlements(folder: string): void {
  const database = new DatabaseSync(join(folder, "engine.db"));
  database.exec(`
    CREATE TABLE IF NOT EXISTS settlements (dispatch_id TEXT NOT NULL);
    CREATE TRIGGER IF NOT EXISTS count_settlements AFTER UPDATE OF status ON dispatches
    WHEN new.status NOT IN ('queued', 'running')
    BEGIN INSERT INTO settlements VALUES (new.dispatch_id); END;`);
  database.close();
}

test(`${rounds} engines killed under load lose no accepted input, keep the order, and settle nothing twice`, async () => {
  const folder = join(root, "load");
  const log = join(root, "load.log");
  mkdirSync(folder);
  await createEmbeddedEngine({ folder }).drain();
  countSettlements(folder);
  const random = createRandom(seed);
  const limits = { attempts: 1_000, backoffMs: 1 };
  const accepted: string[] = [];
  for (let round = 0; round < rounds; round += 1) {
    const child = await startEngineProcess({ folder, limits, log, work: "quick" });
    child.notify({ order: "start" });
    child.notify({ order: "load", instances, from: round * 1_000_000 });
    // Counted, not timed: a slow machine could have accepted nothing yet.
    const expected = 2 * instances + Math.floor(random() * 12 * instances);
    for (let count = 0, received = 0; count < expected; count += 1) {
      const news = await child.collect("admitted", received);
      received = child.news.indexOf(news, received) + 1;
    }
    await setTimeout(random() * 20);
    child.signal("SIGKILL");
    await child.ended();
    for (const one of child.news) if (one.news === "admitted") accepted.push(one.dispatch_id);
  }
  expect(accepted.length).toBeGreaterThan(rounds * instances);

  const engine = createEmbeddedEngine({ folder, limits });
  await engine.start({ dispatch: async () => undefined, run: async () => undefined });
  const records = await Promise.all(accepted.map((id) => engine.awaitDispatch(id)));
  expect(records.map((record) => record?.status)).toEqual(accepted.map(() => "completed"));
  // Inputs whose receipt was lost with the process are done too.
  const { items: rest } = await engine.listDispatches({ limit: 1_000 });
  for (const { dispatch_id } of rest) await engine.awaitDispatch(dispatch_id);
  await engine.drain();

  const database = new DatabaseSync(join(folder, "engine.db"));
  const count = (sql: string): number => Number(database.prepare(sql).get()?.count);
  const settled = count("SELECT count(*) AS count FROM settlements");
  expect(settled).toBe(count("SELECT count(DISTINCT dispatch_id) AS count FROM settlements"));
  expect(settled).toBe(count("SELECT count(*) AS count FROM dispatches"));
  expect(count("SELECT waiting AS count FROM dispatch_load")).toBe(0);
  database.close();

  const last = new Map<string, number>();
  for (const line of readFileSync(log, "utf8").trim().split("\n")) {
    const [instance = "", number] = line.split(" ");
    // A killed attempt is repeated; no input runs after one that was admitted later.
    expect(Number(number)).toBeGreaterThanOrEqual(last.get(instance) ?? 0);
    last.set(instance, Number(number));
  }
});

test("an input that kills its process does not fail the inputs that run at the same time", async () => {
  const folder = join(root, "bystanders");
  const engine = createEmbeddedEngine({ folder });
  const ids = new Map<string, string>();
  for (const input of ["one", "two", "poison", "three"]) {
    const key = { agent: "worker", instance_id: input, session: "default" };
    ids.set(input, (await engine.admit({ ...key, input })).dispatch_id);
  }
  await engine.drain();
  for (let life = 1; life <= 5; life += 1) {
    const child = await startEngineProcess({ folder, work: "poison" });
    child.notify({ order: "start" });
    await child.ended();
  }
  const last = createEmbeddedEngine({ folder });
  await last.start({ run: async () => undefined, dispatch: async () => undefined });
  for (const [input, id] of ids) {
    const status = input === "poison" ? "failed" : "completed";
    expect([input, (await last.awaitDispatch(id))?.status]).toEqual([input, status]);
  }
  await last.drain();
});

test("an input that kills its process is a dead letter after its attempts, and frees its session", async () => {
  const folder = join(root, "poison");
  const limits = { attempts: 2 };
  const key = { agent: "worker", instance_id: "i", session: "default" };
  for (const attempt of [1, 2]) {
    const child = await startEngineProcess({ folder, limits, work: "hold" });
    if (attempt === 1) {
      child.notify({ order: "admit", request: { ...key, input: "poison" } });
      child.notify({ order: "admit", request: { ...key, input: "next" } });
    }
    child.notify({ order: "start" });
    await child.collect("begun");
    child.signal("SIGKILL");
    await child.ended();
  }
  const engine = createEmbeddedEngine({ folder, limits });
  const seen: unknown[] = [];
  await engine.start({
    run: async () => undefined,
    dispatch: async (_, { input }) => seen.push(input),
    onInputEnd: async ({ status, attempts }, { input }) => void seen.push({ input, status, attempts }),
  });
  await expect.poll(async () => (await engine.listDeadLetters()).items.length).toBe(1);
  const [dead] = (await engine.listDeadLetters()).items;
  expect(dead).toMatchObject({ input: "poison", attempts: 2, error: { type: "internal_error" } });
  const { dispatch_id } = await engine.admit({ ...key, input: "last" });
  await engine.awaitDispatch(dispatch_id);
  expect(seen).toEqual([{ input: "poison", status: "failed", attempts: 2 }, "next", "last"]);
  await engine.drain();
});

test("the death of a process does not count for an input that only waits", async () => {
  const folder = join(root, "idle");
  const limits = { attempts: 2 };
  const key = { agent: "worker", instance_id: "i", session: "default" };
  for (let life = 1; life <= 4; life += 1) {
    const child = await startEngineProcess({ folder, limits, work: "idle" });
    if (life === 1) child.notify({ order: "admit", request: { ...key, input: "approval" } });
    child.notify({ order: "start" });
    const { dispatch_id } = await child.collect("begun");
    const database = new DatabaseSync(join(folder, "engine.db"));
    const idle = database.prepare("SELECT idle FROM dispatches WHERE dispatch_id = ?");
    await expect.poll(() => idle.get(dispatch_id)).toEqual({ idle: 1 });
    database.close();
    child.signal("SIGKILL");
    await child.ended();
  }
  const engine = createEmbeddedEngine({ folder, limits });
  await engine.start({ run: async () => undefined, dispatch: async () => "approved" });
  const [{ dispatch_id = "" } = {}] = (await engine.listDispatches()).items;
  expect(await engine.awaitDispatch(dispatch_id)).toMatchObject({ status: "completed", attempts: 5 });
  await engine.drain();
});

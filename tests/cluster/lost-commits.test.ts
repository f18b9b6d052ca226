/** A crash of Postgres that loses all commits which have not waited for the disk: its WAL writer would write them only after ten seconds. */
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, beforeEach, expect, onTestFinished, test } from "vitest";
import { handlers } from "../../src/engine/cases/engine-check.ts";
import type { Engine } from "../../src/engine/contract.ts";
import { createPostgresEngine } from "../../src/engine/postgres/create-postgres-engine.ts";
import type { KitEvent } from "../../src/protocol/event.ts";
import { agentStream } from "../../src/protocol/session-name.ts";
import { PostgresSessionStore } from "../../src/stores/postgres/postgres-store.ts";
import { Database } from "./harness/database.ts";
import { postgresEngine } from "./harness/engines.ts";
import { Kits } from "./harness/kits.ts";

const settings = ["fsync=on", "wal_writer_delay=10s", "autovacuum=off"];
let database: Database;
let schema = "";
let count = 0;

beforeAll(async () => {
  database = await Database.start(settings);
});

beforeEach(() => {
  count += 1;
  schema = `lost_${count}`;
});

afterAll(() => database?.remove());

const stream = agentStream("worker", "one");

function event(index: number): KitEvent {
  return {
    type: "text_delta",
    text: `${index}`,
    agent: "worker",
    instance_id: "one",
    session: "default",
    operation_id: "op_1",
    index,
    timestamp: "2026-11-29T10:00:00.000Z",
  } as KitEvent;
}

async function start(): Promise<Engine> {
  const engine = await createPostgresEngine({ url: database.url, schema });
  await engine.start(handlers({}));
  onTestFinished(() => engine.drain({ timeoutMs: 0 }));
  await expect.poll(() => engine.cluster?.owns({ agent: "worker", instance_id: "one" })).toBe(true);
  return engine;
}

/** Appends events at the next indexes, and waits until they are written. */
async function append(engine: Engine, many: number): Promise<number> {
  await engine.events.begin(stream);
  const last = await engine.events.last(stream);
  for (let index = last + 1; index <= last + many; index += 1) engine.events.append(stream, event(index));
  await engine.events.flush();
  return last + many;
}

async function crash(): Promise<void> {
  await database.kill();
  await database.up();
}

/** Ends an engine while the database is down, as a machine that dies with it. */
async function dieTogether(engine: Engine): Promise<void> {
  await database.kill();
  await engine.drain({ timeoutMs: 0 });
  await database.up();
}

/** Returns the id and the highest index that readers know: no later event may have such an index under the same id. */
async function known(engine: Engine) {
  return await engine.events.state(stream);
}

test("a crash that loses a new stream gives none of its indexes again under its id", async () => {
  const engine = await start();
  await database.query("CHECKPOINT");
  await append(engine, 5);
  const before = await known(engine);
  await dieTogether(engine);
  const next = await start();
  const row = `SELECT id FROM ${schema}.streams`;
  expect((await database.query(row)).rows).toEqual([]);
  await append(next, 1);
  expect((await known(next)).id).not.toBe(before.id);
});

test("a crash that loses the last events of a stream gives none of their indexes again", async () => {
  const first = await start();
  await append(first, 5);
  await first.drain({ timeoutMs: 1_000 });
  const second = await start();
  await append(second, 5);
  const before = await known(second);
  expect(before.highest).toBe(10);
  await dieTogether(second);
  const third = await start();
  const last = await append(third, 1);
  const after = await known(third);
  expect(after.id).toBe(before.id);
  expect(last).toBeGreaterThan(before.highest + 1);
});

test("a node that outlives the crash does not give the indexes of lost events again", async () => {
  const engine = await start();
  await append(engine, 5);
  await database.query("CHECKPOINT");
  await append(engine, 5);
  const before = await known(engine);
  await crash();
  await expect.poll(() => append(engine, 1).catch(() => 0)).toBeGreaterThan(before.highest);
});

test("the fences of shards after a crash are higher than those before", async () => {
  const read = `SELECT shard, fence::float8 AS fence, node FROM ${schema}.shards ORDER BY shard`;
  const engine = await start();
  const before = (await database.query(read)).rows;
  await dieTogether(engine);
  expect((await database.query(read)).rows).toEqual(before);
  // A backup has lost the last fences.
  await database.query(`UPDATE ${schema}.shards SET fence = fence - 1000, node = NULL`);
  await start();
  const taken = (await database.query(read)).rows.filter(({ node }) => node !== null);
  expect(taken.length).toBeGreaterThan(0);
  for (const { shard, fence } of taken) expect(fence).toBeGreaterThan(before[shard]?.fence);
});

test("a crash keeps the claim that takes an instance from its owner, and can lose one that protects nothing", async () => {
  const store = new PostgresSessionStore({ url: database.url, schema });
  onTestFinished(() => store.close());
  const [used, unused] = [
    { agent: "worker", instance_id: "used", session: "default" },
    { agent: "worker", instance_id: "unused", session: "default" },
  ] as const;
  const note = {
    version: 1,
    type: "note",
    name: "n",
    value: 1,
    timestamp: "2026-11-29T10:00:00.000Z",
  } as const;
  await store.claim(used, 1);
  await store.append({ key: used, expected: 0, entries: [note], fence: 1 });
  await store.claim(used, 2);
  await store.claim(unused, 2);
  await crash();
  const read = () => database.query(`SELECT instance_id, fence::float8 AS fence FROM ${schema}.fences`);
  expect((await read()).rows).toEqual([{ instance_id: "used", fence: 2 }]);
});

test("every input is done once, in order, although Postgres loses commits three times", async () => {
  const cluster = await Kits.start(postgresEngine, 2, { settings });
  onTestFinished(() => cluster.stop());
  const load = cluster.load({ lines: 10, each: 8, ms: 150 });
  for (let crashes = 1; crashes <= 3; crashes += 1) {
    await cluster.begun(load, 12 * crashes);
    await cluster.database.kill();
    await delay(300);
    await cluster.database.up();
  }
  await cluster.settled(load);
  expect(await cluster.findings(load)).toEqual([]);
});

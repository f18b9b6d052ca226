import { expect, onTestFinished, test } from "vitest";
import { postgresForTests } from "../testing/postgres-for-tests.ts";
import { PostgresDatabase } from "./database.ts";

const server = postgresForTests();

function open(): PostgresDatabase {
  const database = new PostgresDatabase({
    url: server.url,
    maxConnections: 1,
    store: "The store",
    prepare: async (pool) => void (await pool.query("CREATE TABLE IF NOT EXISTS things (id int)")),
  });
  onTestFinished(() => database.close());
  return database;
}

const prepared = "SELECT count(*)::int AS count FROM pg_prepared_statements";

test("a connection prepares a statement with parameters once", async () => {
  const database = open();
  for (let time = 0; time < 3; time += 1) await database.query("SELECT $1::int AS value", [time]);
  await database.query("SELECT $1::text AS value", ["a list"], { plansAnew: true });
  expect(await database.query(prepared)).toEqual([{ count: 1 }]);
  expect(await database.query("SELECT $1::int AS value", [3])).toEqual([{ value: 3 }]);
});

test("a query returns the new columns after a migration has changed its table", async () => {
  const database = open();
  const ask = () => database.query("SELECT * FROM things WHERE id = $1", [1]);
  await database.query("INSERT INTO things VALUES (1)");
  expect(await ask()).toEqual([{ id: 1 }]);
  await database.query("ALTER TABLE things ADD COLUMN name text");
  expect(await ask()).toEqual([{ id: 1, name: null }]);
  // The next connection prepares the statement again.
  expect(await ask()).toEqual([{ id: 1, name: null }]);
  expect(await database.query(prepared)).toEqual([{ count: 1 }]);
});

test("statements have no names after a pooler has lost one", async () => {
  const database = open();
  const ask = () => database.query("SELECT $1::int AS value", [7]);
  await ask();
  await database.query("DEALLOCATE ALL");
  expect(await ask()).toEqual([{ value: 7 }]);
  expect(await ask()).toEqual([{ value: 7 }]);
  expect(await database.query(prepared)).toEqual([{ count: 0 }]);
});

test("a transaction runs its statements without names", async () => {
  const database = open();
  await database.transaction(async (ask) => await ask("SELECT $1::int AS value", [7]));
  expect(await database.query(prepared)).toEqual([{ count: 0 }]);
});

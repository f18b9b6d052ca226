import { execFile } from "node:child_process";
import { setTimeout as delay } from "node:timers/promises";
import { inspect, promisify } from "node:util";
import pg from "pg";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { migrate } from "../../postgres/migrate.ts";
import type { SessionEntry, SessionKey } from "../../protocol/session-entry.ts";
import { postgresForTests } from "../../testing/postgres-for-tests.ts";
import { openWay } from "../../testing/way-to-server.ts";
import { sessionStoreContract } from "../contract.suite.ts";
import { PostgresSessionStore } from "./postgres-store.ts";
import { migrations, sessionMigrations } from "./session-tables.ts";

const key: SessionKey = { agent: "reviewer", instance_id: "pr-7", session: "default" };
const entry: SessionEntry = {
  version: 1,
  type: "note",
  name: "n",
  value: { text: "a \u0000 b \ud800" },
  timestamp: "2026-11-20T10:00:00.000Z",
};

const server = postgresForTests();
let admin: pg.Pool;
let schema = "";
let count = 0;

beforeAll(() => {
  admin = new pg.Pool({ connectionString: server.url });
  // A test ends idle connections.
  admin.on("error", () => undefined);
});
afterAll(async () => {
  await admin?.end();
});

function newSchema(): string {
  count += 1;
  schema = `kit "${count}"`;
  return schema;
}

function openStore(name = newSchema()): PostgresSessionStore {
  return new PostgresSessionStore({ url: server.url, schema: name });
}

/** Opens a store that is closed at the end of the test. */
function useStore(name = newSchema()): PostgresSessionStore {
  const store = openStore(name);
  onTestFinished(() => store.close());
  return store;
}

sessionStoreContract({
  name: "PostgresSessionStore",
  create: () => openStore(),
  reopen: () => openStore(schema),
});

test("the claim of an instance without a session answers its next read, and no later one", async () => {
  const name = newSchema();
  const [store, other] = [useStore(name), useStore(name)];
  await store.claim(key, 1);
  await other.append({ key, expected: 0, entries: [entry] });
  // An append compares the position, so the reader need not be right.
  expect(await store.read(key)).toEqual([]);
  expect(await store.read(key)).toHaveLength(1);
  await store.claim({ ...key, instance_id: "pr-8" }, 1);
  await store.append({ key: { ...key, instance_id: "pr-8" }, expected: 0, entries: [entry] });
  expect(await store.read({ ...key, instance_id: "pr-8" })).toHaveLength(1);
  await store.claim(key, 2);
  expect(await store.read(key)).toHaveLength(1);
});

test("appends to several sessions at once are each written or refused on their own", async () => {
  const name = newSchema();
  const store = useStore(name);
  const to = (session: string): SessionKey => ({ ...key, session });
  const append = (session: string, expected: number, more: { input?: string; fence?: number } = {}) =>
    store.append({ key: to(session), expected, entries: [entry, entry], ...more });
  await append("known", 0, { input: "one" });
  await store.claim(key, 5);
  const calls = {
    new: append("new", 0),
    known: append("known", 2, { fence: 5 }),
    "known again": append("known", 4, { input: "two" }),
    "at a position that the session does not have": append("other", 3),
    "under an old fence": append("late", 0, { fence: 4 }),
    // An input that the session has undoes the statement of all.
    "of a known input": append("known", 6, { input: "one" }),
    "with a name that Postgres refuses": append("\0", 0),
  };
  const ends = await Promise.allSettled(Object.values(calls));
  const codes = ends.map((end) => (end.status === "fulfilled" ? "written" : end.reason.code));
  expect(codes).toEqual([
    "written",
    "written",
    "written",
    "conflict",
    "lease_lost",
    "conflict",
    "unavailable",
  ]);
  expect(await store.read(to("known"))).toHaveLength(6);
  expect(await store.read(to("new"))).toHaveLength(2);
  expect(await store.read(to("late"))).toEqual([]);
});

test("two stores that write to the same sessions in opposite orders do not block each other", async () => {
  const name = newSchema();
  const stores = [useStore(name), useStore(name)];
  const keys = Array.from({ length: 40 }, (_, number) => ({ ...key, session: `s${number}` }));
  for (let expected = 0; expected < 5; expected += 1) {
    const ends = await Promise.allSettled(
      stores.flatMap((store, index) =>
        (index === 0 ? keys : keys.toReversed()).map((one) =>
          store.append({ key: one, expected, entries: [entry] }),
        ),
      ),
    );
    const refused = ends.flatMap((end) => (end.status === "rejected" ? [end.reason.code] : []));
    expect(refused).toEqual(keys.map(() => "conflict"));
  }
  const log = await admin.query(
    "SELECT deadlocks::int AS deadlocks FROM pg_stat_database WHERE datname = 'postgres'",
  );
  expect(log.rows).toEqual([{ deadlocks: 0 }]);
});

test("one of many writers on separate connections succeeds at each position", async () => {
  const name = newSchema();
  const stores = [useStore(name), useStore(name), useStore(name)];
  const positions = Array.from({ length: 30 }, (_, position) => position);
  for (const expected of positions) {
    const results = await Promise.allSettled(
      stores.map((store) => store.append({ key, expected, entries: [entry] })),
    );
    const refused = results.flatMap((result) => (result.status === "rejected" ? [result.reason] : []));
    expect(refused).toEqual([
      expect.objectContaining({ code: "conflict" }),
      expect.objectContaining({ code: "conflict" }),
    ]);
  }
  expect(await stores[0]?.read(key)).toHaveLength(positions.length);
});

test("an append to a child session during the deletion of its parent is a conflict, or recreates it without a parent", async () => {
  const name = newSchema();
  const [writer, deleter] = [useStore(name), useStore(name)];
  for (let round = 0; round < 20; round += 1) {
    const parent = { ...key, session: `parent-${round}` };
    const child = { ...key, session: `child-${round}` };
    await writer.append({ key: parent, expected: 0, entries: [entry] });
    const [written] = await Promise.allSettled([
      writer.append({ key: child, expected: 0, entries: [entry], parent }),
      deleter.delete(parent),
    ]);
    const info = await writer.info(child);
    // The child was deleted with its parent, never written, or created afterwards without a parent.
    if (written.status === "rejected") expect(written.reason).toMatchObject({ code: "conflict" });
    if (info !== undefined) expect(info.parent).toBeUndefined();
  }
});

test("many processes may open the first store at once", async () => {
  const name = newSchema();
  const stores = Array.from({ length: 6 }, () => useStore(name));
  expect(await Promise.all(stores.map((store) => store.info(key)))).toEqual(stores.map(() => undefined));
});

test("a pool passed by the caller is used, and stays open", async () => {
  const store = new PostgresSessionStore({ pool: admin, schema: newSchema() });
  await store.append({ key, expected: 0, entries: [entry] });
  await store.close();
  await expect(store.read(key)).rejects.toMatchObject({ code: "unavailable" });
  expect((await admin.query("SELECT 1 AS one")).rows).toEqual([{ one: 1 }]);
});

test("an idle connection that the server ended is replaced", async () => {
  const store = useStore();
  await store.append({ key, expected: 0, entries: [entry] });
  await admin.query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()");
  // Queries on the dead connection may fail; nothing is lost, and the next call uses a new connection.
  await store.append({ key, expected: 1, entries: [entry] }).catch((error: unknown) => {
    expect(error).toMatchObject({ code: "store_unavailable" });
  });
  expect((await store.read(key)).length).toBeGreaterThan(0);
});

/** A store behind a proxy that can hang. Its patience is a second, as connecting takes half a second on a busy machine. */
async function useFarStore() {
  const relay = await openWay(new URL(server.url));
  onTestFinished(() => relay.close());
  const store = new PostgresSessionStore({ url: relay.url, schema: newSchema(), patienceMs: 500 });
  onTestFinished(() => store.close());
  await store.append({ key, expected: 0, entries: [entry] });
  return { way: relay, store };
}

const isAway = { code: "store_unavailable", meta: { store: "The session store", since: expect.any(String) } };

test("calls to a hanging Postgres fail soon, then at once, and work again once it answers", async () => {
  const { way: relay, store } = await useFarStore();
  relay.freeze();
  const calls = [1, 2, 3].map(() => store.append({ key, expected: 1, entries: [entry] }));
  const begun = performance.now();
  for (const call of calls) await expect(call).rejects.toMatchObject(isAway);
  expect(performance.now() - begun).toBeLessThan(10_000);
  const refused = performance.now();
  for (let count = 0; count < 100; count += 1) await expect(store.read(key)).rejects.toMatchObject(isAway);
  expect(performance.now() - refused).toBeLessThan(1_000);
  relay.thaw();
  await expect
    .poll(() =>
      store.read(key).then(
        ({ length }) => length > 0,
        () => false,
      ),
    )
    .toBe(true);
  // At most one of the queries in flight may have been executed.
  expect((await store.read(key)).length).toBeLessThanOrEqual(2);
});

test("a connection that breaks during a query fails that query only", async () => {
  const { way: relay, store } = await useFarStore();
  relay.freeze({ isDropped: true });
  await expect(store.append({ key, expected: 1, entries: [entry] })).rejects.toMatchObject(isAway);
  expect((await store.read(key)).length).toBeGreaterThan(0);
});

test("a query that waits for a lock does not count as a hang, and does not wait for ever", async () => {
  const { store } = await useFarStore();
  const quoted = `"${schema.replaceAll('"', '""')}"`;
  const holder = await admin.connect();
  await holder.query(`BEGIN; LOCK TABLE ${quoted}.sessions IN EXCLUSIVE MODE`);
  const waits = store.append({ key, expected: 1, entries: [entry] });
  waits.catch(() => undefined);
  await delay(1_200);
  expect(await store.read(key)).toHaveLength(1);
  await expect(waits).rejects.toMatchObject(isAway);
  await holder.query("ROLLBACK");
  holder.release();
});

test("a store of a hanging Postgres closes soon", async () => {
  const { way: relay, store } = await useFarStore();
  relay.freeze();
  const call = store.read(key);
  call.catch(() => undefined);
  const begun = performance.now();
  await store.close();
  expect(performance.now() - begun).toBeLessThan(3_000);
  await expect(call).rejects.toMatchObject({ code: "store_unavailable" });
});

test("a database that accepts connections but never answers fails the first call", async () => {
  const relay = await openWay(new URL(server.url));
  onTestFinished(() => relay.close());
  relay.freeze();
  const store = new PostgresSessionStore({ url: relay.url, schema: newSchema(), patienceMs: 100 });
  onTestFinished(() => store.close());
  await expect(store.read(key)).rejects.toMatchObject(isAway);
});

test("tables of an older version are upgraded with their data", async () => {
  const store = useStore();
  await store.append({ key, expected: 0, entries: [entry] });
  const quoted = `"${schema.replaceAll('"', '""')}"`;
  const next = (name: string): string => `ALTER TABLE ${name}.sessions ADD COLUMN next text DEFAULT 'none'`;
  await Promise.all([1, 2, 3].map(() => migrate(admin, sessionMigrations(quoted, [...migrations, next]))));
  const { rows } = await admin.query(`SELECT next FROM ${quoted}.sessions`);
  expect(rows).toEqual([{ next: "none" }]);
  expect(await store.read(key)).toEqual([entry]);
  // A kit that does not know the newer version refuses the tables.
  await expect(useStore(schema).read(key)).rejects.toMatchObject({
    code: "unavailable",
    message: expect.stringContaining("newer kit"),
  });
});

test("tables of the version before summaries keep 100,000 sessions, give the newest a title, and open soon", async () => {
  const name = newSchema();
  const quoted = `"${name.replaceAll('"', '""')}"`;
  const former = migrations.slice(0, 6);
  await migrate(admin, sessionMigrations(quoted, former));
  await admin.query(`
    INSERT INTO ${quoted}.sessions (agent, instance_id, session, created_at, position, touched_at)
      SELECT 'a', 'i-' || n, 'default', '2026-11-20T10:00:00.000Z', 2, 1000 * n FROM generate_series(1, 100000) AS n ORDER BY n;
    INSERT INTO ${quoted}.entries (session_id, position, data)
      SELECT id, 1, '[2,"user","op_1","2026-11-20T10:00:00.000Z",[{"type":"text","text":"Order\\n' || id || ' \\u0041"}]]' FROM ${quoted}.sessions;
    INSERT INTO ${quoted}.entries (session_id, position, data)
      SELECT id, 2, '${JSON.stringify({ ...entry, value: 1 })}' FROM ${quoted}.sessions;`);
  const store = useStore(name);
  const began = performance.now();
  expect((await store.listAll({ limit: 1, count: true })).total).toBe(100_000);
  // A second on a quiet machine.
  expect(performance.now() - began).toBeLessThan(60_000);
  const titled = await store.listAll({ limit: 1, count: true, search: "order" });
  expect([titled.total, titled.sessions[0]?.instance_id]).toEqual([10_000, "i-90001"]);
  expect((await store.listAll({ limit: 1, order: "recent" })).sessions).toMatchObject([
    { instance_id: "i-100000", title: "Order 100000 A", state: "idle", cost: null, position: 2 },
  ]);
  const first = { agent: "a", instance_id: "i-1", session: "default" };
  expect(await store.read(first)).toHaveLength(2);
  await store.append({ key: first, expected: 2, entries: [entry] });
  expect((await store.info(first))?.position).toBe(3);
});

test("a failed migration leaves the tables unchanged", async () => {
  const store = useStore();
  await store.append({ key, expected: 0, entries: [entry] });
  const quoted = `"${schema.replaceAll('"', '""')}"`;
  const steps = [...migrations, (name: string) => `DROP TABLE ${name}.entries; SELECT nothing`];
  await expect(migrate(admin, sessionMigrations(quoted, steps))).rejects.toThrow();
  expect(await useStore(schema).read(key)).toEqual([entry]);
});

test("a database user without the right to create tables can use existing ones", async () => {
  const owner = useStore();
  await owner.append({ key, expected: 0, entries: [entry] });
  const quoted = `"${schema.replaceAll('"', '""')}"`;
  await admin.query(`
    CREATE ROLE guest LOGIN PASSWORD 'guest';
    GRANT USAGE ON SCHEMA ${quoted} TO guest;
    GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA ${quoted} TO guest;`);
  const url = new URL(server.url);
  url.username = "guest";
  url.password = "guest";
  const store = new PostgresSessionStore({ url: url.href, schema });
  onTestFinished(() => store.close());
  await store.append({ key, expected: 1, entries: [entry] });
  expect(await store.read(key)).toHaveLength(2);
});

test("no error repeats the password, whatever is wrong with the address", async () => {
  const secret = "s3cr3t-of-kit";
  const { port } = new URL(server.url);
  const addresses = [
    `postgres://kit:${secret}@127.0.0.1:${port}/postgres`,
    `postgres://kit:${secret}@127.0.0.1:1/postgres`,
    `postgres://kit:${secret}@no-such-host.invalid/postgres`,
    `mysql://kit:${secret}@127.0.0.1/postgres`,
    `postgres://kit:${secret}/x@127.0.0.1/postgres`,
  ];
  for (const url of addresses) {
    const error = await readFrom(url).catch((reason: unknown) => reason);
    expect(error).toMatchObject({ name: "KitError" });
    expect(inspect(error, { depth: 20, showHidden: true })).not.toContain(secret);
  }
});

async function readFrom(url: string): Promise<unknown> {
  const store = new PostgresSessionStore({ url });
  return await store.read(key).finally(() => store.close());
}

test.each([
  ["08006", "store_unavailable"],
  ["25006", "store_unavailable"],
  ["28P01", "store_unavailable"],
  ["53300", "store_unavailable"],
  ["57014", "store_unavailable"],
  ["57P01", "store_unavailable"],
  ["57P03", "store_unavailable"],
  ["58030", "store_unavailable"],
  ["ECONNREFUSED", "store_unavailable"],
  ["EPIPE", "store_unavailable"],
  [undefined, "store_unavailable"],
  ["40001", "conflict"],
  ["22021", "unavailable"],
  ["42601", "unavailable"],
])("a query that fails with %s is %s, whatever the text says", async (code, expected) => {
  const fail = async (): Promise<never> => {
    throw Object.assign(new Error("a text of some language"), code === undefined ? {} : { code });
  };
  const store = new PostgresSessionStore({ pool: { query: fail, connect: fail } });
  await expect(store.read(key)).rejects.toMatchObject({ code: expected });
});

test("without its package, the error names the command that installs it", async () => {
  const code = `
    import { registerHooks } from "node:module";
    registerHooks({ resolve(name, context, next) { return next(name === "pg" ? "pg-that-is-not-there" : name, context); } });
    const { PostgresSessionStore } = await import(${JSON.stringify(new URL("./postgres-store.ts", import.meta.url).href)});
    const store = new PostgresSessionStore({ url: "postgres://127.0.0.1/kit" });
    await store.read({ agent: "a", instance_id: "1", session: "s" }).catch((error) => console.log(error.code, error.hint));`;
  const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "--eval", code]);
  expect(stdout.trim()).toBe("unavailable Run: npm install pg");
});

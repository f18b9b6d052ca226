import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, expect, test } from "vitest";
import type { KitError } from "../../base/kit-error.ts";
import { sampleNote } from "../../testing/sample-records.ts";
import { testFolder } from "../../testing/test-folder.ts";
import { sessionStoreContract } from "../contract.suite.ts";
import { SqliteSessionStore } from "./sqlite-store.ts";

const folder = testFolder(afterAll);
let file = "";
let count = 0;

sessionStoreContract({
  name: "SqliteSessionStore",
  create: () => {
    count += 1;
    file = join(folder, `${count}.db`);
    return new SqliteSessionStore({ file });
  },
  reopen: () => new SqliteSessionStore({ file }),
});

test("two stores on one file see each other's entries, and conflict at the same position", async () => {
  const shared = join(folder, "shared.db");
  const first = new SqliteSessionStore({ file: shared });
  const second = new SqliteSessionStore({ file: shared });
  const key = { agent: "a", instance_id: "1", session: "default" };
  await first.append({ key, expected: 0, entries: [sampleNote] });
  expect(second.read(key)).toEqual([sampleNote]);
  await second.append({ key, expected: 1, entries: [sampleNote] });
  await expect(first.append({ key, expected: 1, entries: [sampleNote] })).rejects.toMatchObject({
    code: "conflict",
  });
  first.close();
  second.close();
});

test("a file that is not a session store is refused and not changed", () => {
  const foreign = join(folder, "foreign.db");
  writeFileSync(foreign, "not a database, but a text file".repeat(50));
  expect(() => new SqliteSessionStore({ file: foreign })).toThrow(
    expect.objectContaining({ code: "unavailable" }),
  );
});

test("a file that is destroyed during use is `unavailable` for reads and writes", async () => {
  const destroyed = join(folder, "destroyed.db");
  const store = new SqliteSessionStore({ file: destroyed });
  const key = { agent: "a", instance_id: "1", session: "default" };
  await store.append({ key, expected: 0, entries: [sampleNote] });
  const other = new DatabaseSync(destroyed);
  other.exec("PRAGMA wal_checkpoint(TRUNCATE)");
  other.close();
  writeFileSync(destroyed, Buffer.alloc(65_536, "no database "));
  const unavailable = expect.objectContaining({ code: "unavailable" });
  await expect(store.append({ key, expected: 1, entries: [sampleNote] })).rejects.toThrow(unavailable);
  expect(() => store.read(key)).toThrow(unavailable);
  expect(() => store.info(key)).toThrow(unavailable);
  expect(() => store.list(key)).toThrow(unavailable);
  expect(() => store.delete(key)).toThrow(unavailable);
  store.close();
});

/** The table of sessions of all earlier versions. */
const sessionsTable = `CREATE TABLE sessions (
      id INTEGER PRIMARY KEY AUTOINCREMENT, agent TEXT NOT NULL, instance_id TEXT NOT NULL, session TEXT NOT NULL,
      created_at TEXT NOT NULL, parent_id INTEGER REFERENCES sessions (id) ON DELETE CASCADE,
      UNIQUE (agent, instance_id, session)
    ) STRICT;`;

test("a store of version 1 is upgraded with all its sessions", async () => {
  const old = join(folder, "version-1.db");
  const text = (value: number): string =>
    JSON.stringify({ version: 1, type: "note", name: "n", value, timestamp: "2026-11-20T10:00:00.000Z" });
  const database = new DatabaseSync(old);
  database.exec(`
    ${sessionsTable}
    CREATE INDEX sessions_by_parent ON sessions (parent_id);
    CREATE TABLE entries (
      session_id INTEGER NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
      position INTEGER NOT NULL, data TEXT NOT NULL, PRIMARY KEY (session_id, position)
    ) STRICT, WITHOUT ROWID;
    INSERT INTO sessions VALUES (1, 'a', '1', 'default', '2026-11-20T10:00:00.000Z', NULL);
    INSERT INTO sessions VALUES (7, 'a', '1', 'task', '2026-11-20T10:00:00.000Z', 1);
    INSERT INTO entries VALUES (1, 1, '${text(11)}'), (1, 2, '${text(12)}'), (7, 1, '${text(71)}');
    PRAGMA application_id = 0x6b697473;
    PRAGMA user_version = 1;`);
  database.close();
  const store = new SqliteSessionStore({ file: old });
  const key = { agent: "a", instance_id: "1", session: "default" };
  const task = { ...key, session: "task" };
  expect([...store.read(key), ...store.read(task)]).toEqual([11, 12, 71].map((n) => JSON.parse(text(n))));
  expect(store.read(key, 1)).toHaveLength(1);
  expect(store.info(task)).toMatchObject({ position: 1, parent: key });
  await store.append({ key, expected: 2, entries: [JSON.parse(text(13))] });
  expect(store.info(key)?.position).toBe(3);
  await store.delete(key);
  expect([...store.read(key), ...store.read(task)]).toEqual([]);
  store.close();
});

test("a store of version 2 is upgraded, and then accepts each input once", async () => {
  const old = join(folder, "version-2.db");
  const data = JSON.stringify([2, "user", "op_1", "2026-11-20T10:00:00.000Z", [{ type: "text", text: "a" }]]);
  const database = new DatabaseSync(old);
  database.exec(`
    ${sessionsTable}
    CREATE TABLE entries (id INTEGER PRIMARY KEY, data TEXT NOT NULL) STRICT;
    INSERT INTO sessions VALUES (1, 'a', '1', 'default', '2026-11-20T10:00:00.000Z', NULL);
    INSERT INTO entries VALUES (1 << 24 | 1, '${data}');
    PRAGMA application_id = 0x6b697473;
    PRAGMA user_version = 2;`);
  database.close();
  const store = new SqliteSessionStore({ file: old });
  const key = { agent: "a", instance_id: "1", session: "default" };
  const [entry] = store.read(key);
  assert(entry !== undefined);
  await store.append({ key, expected: 1, entries: [sampleNote], input: "op_2" });
  await expect(
    store.append({ key, expected: 2, entries: [sampleNote], input: "op_2" }),
  ).rejects.toMatchObject({
    code: "conflict",
  });
  expect(store.read(key)).toHaveLength(2);
  store.close();
});

test("a session of an older kit counts as used at the time of the upgrade", async () => {
  const old = join(folder, "version-3.db");
  const database = new DatabaseSync(old);
  database.exec(`
    ${sessionsTable}
    CREATE TABLE entries (id INTEGER PRIMARY KEY, data TEXT NOT NULL, input TEXT) STRICT;
    INSERT INTO sessions VALUES (1, 'a', '1', 'default', '2020-11-20T10:00:00.000Z', NULL);
    INSERT INTO entries VALUES (1 << 24 | 1, '[]', NULL), (1 << 24 | 2, '[]', NULL);
    PRAGMA application_id = 0x6b697473;
    PRAGMA user_version = 3;`);
  database.close();
  const began = Date.now() - 1;
  const store = new SqliteSessionStore({ file: old });
  const [session] = store.listAll({ limit: 1 }).sessions;
  expect(Date.parse(session?.touched_at ?? "")).toBeGreaterThanOrEqual(began);
  const key = { agent: "a", instance_id: "1", session: "default" };
  expect(await store.deleteUntouched(key, began)).toBe(false);
  store.close();
});

/** A file of a version without summaries, with `count` sessions of a prompt and an answer. */
function writeVersion4(path: string, count: number): void {
  const database = new DatabaseSync(path);
  database.exec(`
    ${sessionsTable}
    CREATE INDEX sessions_by_parent ON sessions (parent_id) WHERE parent_id IS NOT NULL;
    CREATE TABLE entries (id INTEGER PRIMARY KEY, data TEXT NOT NULL, input TEXT, at INTEGER) STRICT;
    CREATE UNIQUE INDEX entries_by_input ON entries (id >> 24, input) WHERE input IS NOT NULL;
    CREATE TRIGGER entries_of_deleted_session AFTER DELETE ON sessions BEGIN
      DELETE FROM entries WHERE id > old.id << 24 AND id < (old.id + 1) << 24;
    END;
    PRAGMA application_id = 0x6b697473;
    PRAGMA user_version = 4;
    BEGIN;
    WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < ${count})
      INSERT INTO sessions SELECT n, 'a', 'i-' || n, 'default', '2026-11-20T10:00:00.000Z', NULL FROM n;
    INSERT INTO entries (id, data, at)
      SELECT id << 24 | 1, '[2,"user","op_1","2026-11-20T10:00:00.000Z",[{"type":"text","text":"Order\\n' || id || '"}]]', 1000 * id
      FROM sessions;
    INSERT INTO entries (id, data, at) SELECT id << 24 | 2, '${JSON.stringify(sampleNote)}', 1000 * id + 5 FROM sessions;
    COMMIT;`);
  database.close();
}

test("a store of a version without summaries keeps its 100,000 sessions, gives the newest a title, and opens soon", async () => {
  const old = join(folder, "version-4.db");
  writeVersion4(old, 100_000);
  const began = process.cpuUsage();
  const store = new SqliteSessionStore({ file: old });
  const { user, system } = process.cpuUsage(began);
  expect((user + system) / 1_000).toBeLessThan(5_000);
  expect(store.listAll({ limit: 1, count: true }).total).toBe(100_000);
  const titled = store.listAll({ limit: 1, count: true, search: "order" });
  expect([titled.total, titled.sessions[0]?.instance_id]).toEqual([10_000, "i-90001"]);
  const [newest] = store.listAll({ limit: 1, order: "recent" }).sessions;
  expect(newest).toMatchObject({
    instance_id: "i-100000",
    title: "Order 100000",
    state: "idle",
    cost: null,
    position: 2,
    touched_at: new Date(100_000_005).toISOString(),
  });
  const key = { agent: "a", instance_id: "i-1", session: "default" };
  expect(store.read(key)).toMatchObject([{ type: "message" }, sampleNote]);
  expect(store.listAll({ limit: 1, instance_id: "i-1" }).sessions[0]?.title).toBeUndefined();
  await store.append({ key, expected: 2, entries: [sampleNote] });
  expect(store.info(key)?.position).toBe(3);
  store.close();
});

test("deleting a session makes the file smaller", async () => {
  const file = join(folder, "smaller.db");
  const store = new SqliteSessionStore({ file });
  const key = { agent: "a", instance_id: "1", session: "default" };
  const value = "x".repeat(500_000);
  const timestamp = "2026-11-20T10:00:00.000Z";
  await store.append({
    key,
    expected: 0,
    entries: [{ version: 1, type: "note", name: "n", value, timestamp }],
  });
  expect(await store.deleteUntouched(key, Date.now() + 1_000)).toBe(true);
  store.close();
  expect(readFileSync(file).length).toBeLessThan(100_000);
});

/** The transactions in a file's write-ahead log; the last page of each one has the size of the file. */
function commitsIn(file: string): number {
  const log = readFileSync(`${file}-wal`);
  const pageSize = log.readUInt32BE(8);
  let commits = 0;
  for (let frame = 32; frame < log.length; frame += 24 + pageSize) {
    if (log.readUInt32BE(frame + 4) > 0) commits += 1;
  }
  return commits;
}

test("concurrent appends share one transaction, and a refused one does not affect the others", async () => {
  const together = join(folder, "together.db");
  const store = new SqliteSessionStore({ file: together });
  const key = (session: string) => ({ agent: "a", instance_id: "1", session });
  const note = (value: unknown) =>
    ({ version: 1, type: "note", name: "n", value, timestamp: "2026-11-20T10:00:00.000Z" }) as const;
  await store.append({ key: key("old"), expected: 0, entries: [note(0)] });
  const circle: { self?: unknown } = {};
  circle.self = circle;
  const before = commitsIn(together);
  const outcomes = await Promise.allSettled([
    store.append({ key: key("new"), expected: 0, entries: [note(1), note(2)] }),
    store.append({ key: key("old"), expected: 7, entries: [note(3)] }),
    store.append({ key: key("old"), expected: 1, entries: [note(4)] }),
    store.append({ key: key("none"), expected: 0, entries: [note(circle)] }),
    store.append({ key: key("old"), expected: 2, entries: [note(5), note(6)] }),
    store.append({ key: key("new"), expected: 0, entries: [note(7)] }),
    store.append({ key: key("new"), expected: 2, entries: [note(8)], parent: key("old") }),
  ]);
  expect(outcomes.map(({ status }) => status === "fulfilled")).toEqual([
    true,
    false,
    true,
    false,
    true,
    false,
    true,
  ]);
  expect(commitsIn(together)).toBe(before + 1);
  const valuesOf = (session: string) =>
    store.read(key(session)).map((entry) => "value" in entry && entry.value);
  expect(["old", "new", "none"].map(valuesOf)).toEqual([[0, 4, 5, 6], [1, 2, 8], []]);
  store.close();
});

test("pending appends are written before a delete, and before the file is closed", async () => {
  const file = join(folder, "ordered.db");
  const store = new SqliteSessionStore({ file });
  const key = { agent: "a", instance_id: "1", session: "default" };
  const other = { ...key, session: "other" };
  const entries = [
    { version: 1, type: "note", name: "n", value: 1, timestamp: "2026-11-20T10:00:00.000Z" },
  ] as const;
  const appended = [
    store.append({ key, expected: 0, entries }),
    store.append({ key: other, expected: 0, entries }),
  ];
  const deleted = store.delete(key);
  const last = store.append({ key: other, expected: 1, entries });
  store.close();
  await Promise.all([...appended, deleted, last]);
  const again = new SqliteSessionStore({ file });
  expect([again.read(key).length, again.read(other).length]).toEqual([0, 2]);
  again.close();
});

test("another process's lock delays writes in order, and blocks neither reads nor this process", async () => {
  const locked = join(folder, "locked.db");
  const store = new SqliteSessionStore({ file: locked });
  const key = { agent: "a", instance_id: "1", session: "default" };
  const note = (value: number) =>
    ({ version: 1, type: "note", name: "n", value, timestamp: "2026-11-20T10:00:00.000Z" }) as const;
  await store.append({ key, expected: 0, entries: [note(0)] });
  const other = new DatabaseSync(locked);
  other.exec("BEGIN IMMEDIATE");
  const messages: string[] = [];
  const writes = [
    store.append({ key, expected: 1, entries: [note(1)] }),
    store.append({ key, expected: 2, entries: [note(2), note(3)] }),
    store.append({ key, expected: 2, entries: [note(4)] }),
    store.delete({ ...key, session: "none" }),
  ].map((write) =>
    Promise.resolve(write).then(
      () => messages.push("written"),
      (error: KitError) => messages.push(error.code),
    ),
  );
  for (let turn = 0; turn < 3; turn += 1) await delay(10);
  expect(store.read(key)).toHaveLength(1);
  messages.push("unlocked");
  other.exec("COMMIT");
  other.close();
  await Promise.all(writes);
  expect(messages).toEqual(["unlocked", "written", "written", "conflict", "written"]);
  expect(store.info(key)?.position).toBe(4);
  store.close();
});

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterAll, expect, test } from "vitest";
import { sessionStoreContract } from "../contract.suite.ts";
import { SqliteSessionStore } from "./sqlite-store.ts";

const folder = mkdtempSync(join(tmpdir(), "kit-store-"));
afterAll(() => rmSync(folder, { recursive: true }));
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

test("two stores on one file see each other, and refuse each other's position", () => {
  const shared = join(folder, "shared.db");
  const first = new SqliteSessionStore({ file: shared });
  const second = new SqliteSessionStore({ file: shared });
  const key = { agent: "a", instance_id: "1", session: "default" };
  const entry = {
    version: 1,
    type: "note",
    name: "n",
    value: 1,
    timestamp: "2026-11-20T10:00:00.000Z",
  } as const;
  first.append({ key, expected: 0, entries: [entry] });
  expect(second.read(key)).toEqual([entry]);
  second.append({ key, expected: 1, entries: [entry] });
  expect(() => first.append({ key, expected: 1, entries: [entry] })).toThrow(
    expect.objectContaining({ code: "conflict" }),
  );
  first.close();
  second.close();
});

test("a file that is no session store is refused and left as it is", () => {
  const foreign = join(folder, "foreign.db");
  writeFileSync(foreign, "not a database, but somebody's data".repeat(50));
  expect(() => new SqliteSessionStore({ file: foreign })).toThrow(
    expect.objectContaining({ code: "unavailable" }),
  );
});

test("a file that is destroyed while it is used is `unavailable`, to read and to write", () => {
  const destroyed = join(folder, "destroyed.db");
  const store = new SqliteSessionStore({ file: destroyed });
  const key = { agent: "a", instance_id: "1", session: "default" };
  const entry = {
    version: 1,
    type: "note",
    name: "n",
    value: 1,
    timestamp: "2026-11-20T10:00:00.000Z",
  } as const;
  store.append({ key, expected: 0, entries: [entry] });
  const other = new DatabaseSync(destroyed);
  other.exec("PRAGMA wal_checkpoint(TRUNCATE)");
  other.close();
  writeFileSync(destroyed, Buffer.alloc(65_536, "no database "));
  const unavailable = expect.objectContaining({ code: "unavailable" });
  expect(() => store.append({ key, expected: 1, entries: [entry] })).toThrow(unavailable);
  expect(() => store.read(key)).toThrow(unavailable);
  expect(() => store.info(key)).toThrow(unavailable);
  expect(() => store.list(key)).toThrow(unavailable);
  expect(() => store.delete(key)).toThrow(unavailable);
  store.close();
});

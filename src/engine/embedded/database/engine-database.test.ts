import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterAll, expect, test } from "vitest";
import { testFolder } from "../../../testing/test-folder.ts";
import { migrations, openDatabase } from "./engine-database.ts";

const root = testFolder(afterAll);
const folder = (): string => mkdtempSync(join(root, "folder-"));
const refused = expect.objectContaining({ code: "unavailable" });

test("a missing folder is created, and its content is read back", () => {
  const deepFolder = join(folder(), "deep", "down");
  const first = openDatabase(deepFolder);
  first.exec("UPDATE dispatch_load SET waiting = 3");
  first.close();
  const second = openDatabase(deepFolder);
  expect(second.prepare("SELECT waiting FROM dispatch_load").get()).toEqual({ waiting: 3 });
  second.close();
});

test("a file that is not a database, or belongs to another program, is refused and not changed", () => {
  const text = folder();
  writeFileSync(join(text, "engine.db"), "notes of a user ".repeat(500));
  expect(() => openDatabase(text)).toThrow(refused);
  expect(readFileSync(join(text, "engine.db"), "utf8")).toBe("notes of a user ".repeat(500));

  const foreign = folder();
  const database = new DatabaseSync(join(foreign, "engine.db"));
  database.exec("CREATE TABLE mine (a)");
  database.close();
  const before = readFileSync(join(foreign, "engine.db"));
  expect(() => openDatabase(foreign)).toThrow(refused);
  expect(readFileSync(join(foreign, "engine.db"))).toEqual(before);
});

test("a store of an older kit is upgraded, and keeps its content", () => {
  const old = folder();
  const database = new DatabaseSync(join(old, "engine.db"));
  database.exec(`${migrations[0]} PRAGMA application_id = ${0x6b697471}; PRAGMA user_version = 1;`);
  database.exec(`INSERT INTO dispatches (dispatch_id, agent, instance_id, session, status, accepted_at, input)
    VALUES ('d1', 'a', 'i', 's', 'queued', 0, '1'), ('d2', 'a', 'i', 's', 'completed', 0, '1')`);
  database.exec("UPDATE dispatch_load SET waiting = 3");
  const waits = "SELECT name FROM sqlite_schema WHERE name = 'run_journal_open'";
  database.close();
  const now = openDatabase(old);
  expect(now.prepare("PRAGMA user_version").get()).toEqual({ user_version: migrations.length });
  expect(now.prepare(waits).get()).toEqual({ name: "run_journal_open" });
  expect(now.prepare("SELECT waiting FROM dispatch_load").get()).toEqual({ waiting: 3 });
  expect(now.prepare("SELECT dispatch_id, trace FROM dispatches").all()).toEqual([
    { dispatch_id: "d1", trace: null },
    { dispatch_id: "d2", trace: null },
  ]);
  expect(now.prepare("SELECT * FROM dispatch_shares").all()).toEqual([{ owner: "instance/a/i", waiting: 1 }]);
  now.close();
});

test("a store of a newer kit is refused", () => {
  const target = folder();
  const database = openDatabase(target);
  database.exec("PRAGMA user_version = 999");
  database.close();
  expect(() => openDatabase(target)).toThrow(refused);
});

test("a store with a damaged first page is refused, and not deleted", () => {
  const target = folder();
  openDatabase(target).close();
  const file = join(target, "engine.db");
  const bytes = readFileSync(file);
  bytes.fill(7, 100, 2_000);
  writeFileSync(file, bytes);
  expect(() => openDatabase(target)).toThrow(refused);
  expect(readFileSync(file)).toEqual(bytes);
});

import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterAll, expect, test } from "vitest";
import { testFolder } from "../testing/test-folder.ts";
import { threadsAtOnce } from "../testing/threads-at-once.ts";
import { isBusy, isFileFault, StoreFaults, sqliteFault } from "./database-file.ts";
import { openStore, type StoreDefinition } from "./open-store.ts";
import { Connection, createTransaction, type Database, pragma, query } from "./statements.ts";

const root = testFolder(afterAll);
let count = 0;
const place = (): string => {
  count += 1;
  return join(root, `${count}.db`);
};

const notes = "CREATE TABLE notes (text TEXT NOT NULL) STRICT;";
const first: StoreDefinition = {
  store: "The notes",
  applicationId: 77,
  create: notes,
  upgrades: [],
  hint: "Update kit.",
};
const authors = "ALTER TABLE notes ADD COLUMN author TEXT;";
const third: StoreDefinition = {
  ...first,
  create: notes + authors,
  upgrades: [authors, "UPDATE notes SET author = 'unknown' WHERE author IS NULL;"],
};
const open = (definition: StoreDefinition, file: string | undefined): Database =>
  openStore(definition, file, (database) => database.exec("PRAGMA busy_timeout = 0"));
const refused = (message: string) =>
  expect.objectContaining({ code: "unavailable", message: expect.stringContaining(message) });

test("a store that several connections create at the same time opens for each", async () => {
  const folder = mkdtempSync(join(root, "race-"));
  const errors = await threadsAtOnce({
    rounds: 60,
    data: { folder, definition: third, module: new URL("open-store.ts", import.meta.url).href },
    setUp: "const { openStore } = await import(data.module)",
    body: `openStore(data.definition, data.folder + "/" + round + ".db", (database) =>
      database.exec("PRAGMA journal_mode = WAL")).close()`,
  });
  expect(errors).toEqual([]);
});

test("a store is created once, and keeps its content", () => {
  const file = place();
  const created = open(first, file);
  created.exec("INSERT INTO notes VALUES ('a')");
  created.close();
  const again = open(first, file);
  expect(query<{ text: string }>(again, "SELECT text FROM notes").all()).toEqual([{ text: "a" }]);
  again.close();
});

test("a store of an older kit gets each upgrade once, in order", () => {
  const file = place();
  const old = open(first, file);
  old.exec("INSERT INTO notes VALUES ('a')");
  old.close();
  for (let opened = 0; opened < 2; opened += 1) {
    const now = open(third, file);
    expect(pragma(now, "user_version")).toBe(3);
    expect(now.prepare("SELECT * FROM notes").all()).toEqual([{ text: "a", author: "unknown" }]);
    now.close();
  }
});

test("a failed upgrade leaves the store unchanged", () => {
  const file = place();
  open(first, file).close();
  const broken = { ...third, upgrades: [authors, "UPDATE nothing SET a = 1"] };
  expect(() => open(broken, file)).toThrow();
  const now = open(third, file);
  expect(pragma(now, "user_version")).toBe(3);
  now.close();
});

test("a store of a newer kit is refused", () => {
  const file = place();
  open(third, file).close();
  expect(() => open(first, file)).toThrow(refused("newer kit"));
});

test.each([
  ["has a mark of its own", "PRAGMA application_id = 78; CREATE TABLE mine (a)"],
  ["has no mark", "CREATE TABLE mine (a)"],
  ["numbers its own versions", "CREATE TABLE mine (a); PRAGMA user_version = 1"],
])("a database of another program is refused and not changed where it %s", (_, sql) => {
  const file = place();
  const foreign = new DatabaseSync(file);
  foreign.exec(sql);
  foreign.close();
  const before = readFileSync(file);
  expect(() => open(third, file)).toThrow(refused("another program"));
  expect(readFileSync(file)).toEqual(before);
});

test("a file that is not a database is refused and not changed", () => {
  const file = place();
  writeFileSync(file, "notes of a user ".repeat(500));
  expect(() => open(first, file)).toThrow(refused("damaged, or is not a file of kit"));
  expect(readFileSync(file, "utf8")).toBe("notes of a user ".repeat(500));
});

test("a missing folder is created only if the store's definition asks for it", () => {
  const file = join(root, "not", "there", "notes.db");
  expect(() => open(first, file)).toThrow(expect.objectContaining({ code: "store_unavailable" }));
  open({ ...first, makesFolder: true }, file).close();
});

test("a shrinking store is created so, and a store in memory needs no file", () => {
  const file = place();
  const store = open({ ...first, shrinks: true }, file);
  expect(pragma(store, "auto_vacuum")).toBe(2);
  store.close();
  open(first, undefined).close();
});

test("an error in a transaction undoes all of it", () => {
  const store = open(first, undefined);
  const transaction = createTransaction(store);
  const failing = (): never => {
    store.exec("INSERT INTO notes VALUES ('a')");
    throw new Error("no");
  };
  expect(() => transaction(failing)).toThrow("no");
  expect(transaction(() => query(store, "INSERT INTO notes VALUES ('b')").run())).toBe(1);
  expect(store.prepare("SELECT text FROM notes").all()).toEqual([{ text: "b" }]);
  store.close();
});

test("a connection returns rows as arrays, and throws SQLite's error for a locked file", () => {
  const file = place();
  open(first, file).close();
  const [writer, other] = [new Connection(file, { timeoutMs: 0 }), new Connection(file, { timeoutMs: 0 })];
  writer.transaction(() => {
    writer.run("INSERT INTO notes VALUES (?)", "a");
    let thrown: unknown;
    try {
      other.transaction(() => undefined);
    } catch (error) {
      thrown = error;
    }
    expect([isBusy(thrown), isFileFault(thrown)]).toEqual([true, true]);
  });
  expect(other.all<[string]>("SELECT text FROM notes")).toEqual([["a"]]);
  expect(other.get("SELECT text FROM notes WHERE text = ?", "b")).toBeUndefined();
  for (const connection of [writer, other]) connection.close();
});

test("faults of the file become errors of the store, other errors stay unchanged", () => {
  const faults = new StoreFaults({ store: "The notes", hint: "Look at the disk.", repair: "Restore it." });
  const sqlite = (errcode: number): Error => Object.assign(new Error("x"), { errcode });
  expect(faults.toError(sqlite(13))).toMatchObject({ code: "store_unavailable", hint: "Look at the disk." });
  expect(faults.toError(sqlite(11))).toMatchObject({ code: "unavailable", hint: "Restore it." });
  const constraint = sqlite(19);
  expect(faults.toError(constraint)).toBe(constraint);
  expect(sqliteFault(new Error("x"))).toBeUndefined();
  expect(sqliteFault(sqlite(4874))?.reason).toBe("the disk is full");
});

test("an outage keeps its start time until a write succeeds", () => {
  const faults = new StoreFaults({ store: "The notes", hint: "", repair: "" });
  const complete = Object.assign(new Error("x"), { errcode: 13 });
  const since = (): unknown => (faults.toError(complete) as { meta: { since: string } }).meta.since;
  const start = since();
  expect(since()).toBe(start);
  faults.passed();
  expect(Date.parse(String(since()))).toBeGreaterThanOrEqual(Date.parse(String(start)));
});

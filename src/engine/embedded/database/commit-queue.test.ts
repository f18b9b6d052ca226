import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterAll, expect, test } from "vitest";
import { StoreFaults } from "../../../sqlite/database-file.ts";
import type { Database } from "../../../sqlite/statements.ts";
import { testFolder } from "../../../testing/test-folder.ts";
import { CommitQueue } from "./commit-queue.ts";

const root = testFolder(afterAll);
const faults = new StoreFaults({ store: "The store", hint: "", repair: "" });
let count = 0;

function open(): { database: DatabaseSync; file: string; rows: () => unknown[] } {
  count += 1;
  const file = join(root, `${count}.db`);
  const database = new DatabaseSync(file, { timeout: 0 });
  database.exec("PRAGMA journal_mode = WAL; CREATE TABLE rows (value ANY UNIQUE) STRICT;");
  return {
    database,
    file,
    rows: () =>
      database
        .prepare("SELECT value FROM rows")
        .all()
        .map((row) => row.value),
  };
}

const insert = (value: string | number) => (database: Database) => {
  database.prepare("INSERT INTO rows VALUES (?)").run(value);
  return value;
};

test("writes of one turn are one transaction, in the order of the calls", async () => {
  const { database, file, rows } = open();
  const other = new DatabaseSync(file);
  const queue = new CommitQueue(database, { faults });
  const seen: unknown[] = [];
  const inspect = other.prepare("SELECT count(*) AS count FROM rows");
  const all = [1, 2, 3].map((value) =>
    queue.commit((connection) => {
      seen.push(inspect.get()?.count);
      return insert(value)(connection);
    }),
  );
  expect(await Promise.all(all)).toEqual([1, 2, 3]);
  expect(rows()).toEqual([1, 2, 3]);
  expect(seen).toEqual([0, 0, 0]);
  other.close();
});

test("a write that throws undoes only its own changes", async () => {
  const { database, rows } = open();
  const queue = new CommitQueue(database, { faults });
  const failure = new Error("mine");
  const results = await Promise.allSettled([
    queue.commit(insert(1)),
    queue.commit((connection) => {
      insert(2)(connection);
      throw failure;
    }),
    queue.commit(insert(1)),
    queue.commit(insert(3)),
  ]);
  expect(results.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "rejected", "fulfilled"]);
  expect(results[1]).toMatchObject({ reason: failure });
  expect(rows()).toEqual([1, 3]);
});

test("the queue waits for the lock of another process without blocking this one, and then reports it", async () => {
  const { database, file, rows } = open();
  const queue = new CommitQueue(database, { faults, lockPatienceMs: 100 });
  const other = new DatabaseSync(file);
  other.exec("BEGIN IMMEDIATE");
  const refused = [queue.commit(insert(1)), queue.commit(insert(2))].map((one) =>
    one.catch((error: unknown) => error),
  );
  for (const error of await Promise.all(refused)) {
    expect(error).toMatchObject({ code: "store_unavailable", meta: { retry_after_s: 5 } });
  }
  const waiting = Promise.all([queue.commit(insert(3)), queue.commit(insert(4))]);
  setImmediate(() => {
    // Later writes come after those that wait for the lock.
    void queue.commit(insert(5));
    other.exec("COMMIT");
  });
  await waiting;
  await queue.idle();
  expect(rows()).toEqual([3, 4, 5]);
  other.close();
});

test("a full store refuses the whole transaction, and accepts the next once it has room", async () => {
  const { database, rows } = open();
  const queue = new CommitQueue(database, { faults });
  const pages = Number(database.prepare("PRAGMA page_count").get()?.page_count);
  database.exec(`PRAGMA max_page_count = ${pages + 1}`);
  const results = await Promise.allSettled([
    queue.commit(insert("a")),
    queue.commit(insert("b".repeat(50_000))),
  ]);
  for (const result of results) expect(result).toMatchObject({ reason: { code: "store_unavailable" } });
  expect(rows()).toEqual([]);
  database.exec("PRAGMA max_page_count = 1000");
  await queue.commit(insert("c"));
  expect(rows()).toEqual(["c"]);
});

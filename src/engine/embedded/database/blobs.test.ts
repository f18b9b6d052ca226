import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { testFolder } from "../../../testing/test-folder.ts";
import { createBlobStore } from "./blobs.ts";
import { openDatabase } from "./engine-database.ts";

const root = testFolder(afterAll);

const largest = 256 * 1024 - 2;
const hour = 3_600_000;

function open() {
  const folder = mkdtempSync(join(root, "engine-"));
  const database = openDatabase(folder);
  const blobFolder = join(folder, "blobs");
  const blobs = createBlobStore(blobFolder, database);
  const insert = database.prepare(
    "INSERT INTO dispatches (dispatch_id, agent, instance_id, session, status, accepted_at, input) VALUES (?, '', '', '', 'queued', 0, ?)",
  );
  return { database, blobFolder, blobs, insert: (id: string, input: string) => insert.run(id, input) };
}

test("a value is inline up to 256 KiB of UTF-8, and a larger one is a file", async () => {
  const { blobs, blobFolder } = open();
  for (const text of ["x".repeat(largest), "é".repeat(largest / 2)]) {
    expect(await blobs.store(text)).toBe(JSON.stringify(text));
  }
  expect(readdirSync(blobFolder)).toEqual([]);
  for (const text of ["x".repeat(largest + 1), "é".repeat(largest / 2 + 1)]) {
    const stored = await blobs.store(text);
    expect(stored.length).toBeLessThan(100);
    expect(blobs.load(stored)).toBe(text);
  }
  expect(readdirSync(blobFolder).length).toBe(2);
});

test("the same content is stored once, also by concurrent writers, and no draft is left", async () => {
  const { blobs, blobFolder } = open();
  const value = { text: "x".repeat(300_000) };
  const stored = await Promise.all(Array.from({ length: 8 }, () => blobs.store(value)));
  expect(new Set(stored).size).toBe(1);
  expect(readdirSync(blobFolder).length).toBe(1);
});

test("a file is removed once no row names it, and never while it can be needed", async () => {
  const { blobs, blobFolder, database, insert } = open();
  const stored = await blobs.store("x".repeat(300_000));
  const [name = ""] = readdirSync(blobFolder);
  const file = join(blobFolder, name);
  const later = Date.now() + 2 * hour;
  insert("a", stored);
  insert("b", stored);
  await blobs.sweep(later);
  database.exec("DELETE FROM dispatches WHERE dispatch_id = 'a'");
  await blobs.sweep(later);
  expect(existsSync(file)).toBe(true);
  database.exec("UPDATE dispatches SET input = 'null', result = input WHERE dispatch_id = 'b'");
  await blobs.sweep(later);
  expect(existsSync(file)).toBe(true);
  database.exec("DELETE FROM dispatches WHERE dispatch_id = 'b'");
  // Its row can be about to be written.
  await blobs.sweep(Date.now());
  expect(existsSync(file)).toBe(true);
  utimesSync(file, new Date(0), new Date(0));
  await blobs.store("x".repeat(300_000));
  await blobs.sweep(Date.now());
  expect(existsSync(file)).toBe(true);
  await blobs.sweep(later);
  expect(existsSync(file)).toBe(false);
  expect(() => blobs.load(stored)).toThrow(expect.objectContaining({ code: "internal_error" }));
});

test("a draft of a killed process is removed too", async () => {
  const { blobs, blobFolder } = open();
  writeFileSync(join(blobFolder, "4f1c.tmp"), "half of it");
  await blobs.sweep(Date.now() + 2 * hour);
  expect(readdirSync(blobFolder)).toEqual([]);
});

test("a failing disk is reported as unavailable, and no draft is left", async () => {
  const { blobFolder, blobs } = open();
  const large = "x".repeat(300_000);
  rmSync(blobFolder, { recursive: true });
  writeFileSync(blobFolder, "in the way");
  await expect(blobs.store(large)).rejects.toMatchObject({
    code: "store_unavailable",
    meta: { retry_after_s: 5 },
  });
  rmSync(blobFolder);
  mkdirSync(blobFolder);
  expect(blobs.load(await blobs.store(large))).toBe(large);
  expect(readdirSync(blobFolder)).toHaveLength(1);
});

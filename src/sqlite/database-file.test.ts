import { spawnSync } from "node:child_process";
import { chmodSync, mkdirSync, renameSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterAll, expect, onTestFinished, test } from "vitest";
import { testFolder } from "../testing/test-folder.ts";
import { DatabaseFile, databaseOpenError, refuseEmptyDatabase } from "./database-file.ts";

const root = testFolder(afterAll);
let count = 0;

function openOne(): { readonly folder: string; readonly file: string; readonly watched: DatabaseFile } {
  count += 1;
  const folder = join(root, `${count}`);
  mkdirSync(folder);
  const file = join(folder, "some.db");
  const database = new DatabaseSync(file);
  database.exec("PRAGMA journal_mode = WAL; CREATE TABLE one (a)");
  onTestFinished(() => database.close());
  return { folder, file, watched: new DatabaseFile({ store: "The store", file }) };
}

const gone = expect.objectContaining({
  code: "store_unavailable",
  message: expect.stringContaining("deleted, moved or replaced"),
});

test.each([
  ["its folder is deleted", ({ folder }: { folder: string }) => rmSync(folder, { recursive: true })],
  ["its folder is moved", ({ folder }) => renameSync(folder, `${folder}-moved`)],
  ["the file is deleted", ({ file }: { file: string }) => rmSync(file)],
  ["its log is deleted", ({ file }) => rmSync(`${file}-wal`)],
  [
    "the file is replaced",
    ({ file }) => {
      rmSync(file);
      writeFileSync(file, "");
    },
  ],
] as readonly [string, (place: { folder: string; file: string }) => void][])(
  "it is noticed that %s",
  (_, act) => {
    const place = openOne();
    place.watched.check();
    expect(place.watched.problem()).toBeUndefined();
    act(place);
    expect(() => place.watched.check()).toThrow(gone);
    expect(place.watched.problem()).toEqual(gone);
  },
);

test("a restored file is accepted again", () => {
  const { folder, watched } = openOne();
  renameSync(folder, `${folder}-away`);
  expect(() => watched.check()).toThrow(gone);
  renameSync(`${folder}-away`, folder);
  watched.check();
});

test("a database in memory is never missing", () => {
  new DatabaseFile({ store: "The store", file: ":memory:" }).check();
  refuseEmptyDatabase({ store: "The store", file: ":memory:" });
});

test("an empty file is not a new database, unless another process is creating it now", () => {
  const file = join(root, "empty.db");
  writeFileSync(file, "");
  refuseEmptyDatabase({ store: "The store", file });
  utimesSync(file, 0, 0);
  const empty = expect.objectContaining({ code: "unavailable", message: expect.stringContaining("0 bytes") });
  expect(() => refuseEmptyDatabase({ store: "The store", file })).toThrow(empty);
});

const cannotOpen = Object.assign(new Error("unable to open database file"), { errcode: 14 });
const messageOf = (file: string, cause: unknown = cannotOpen): string =>
  databaseOpenError({ store: "The store", file }, cause).message;

test("only damage that SQLite reports is called damage", () => {
  const file = join(root, "any.db");
  for (const errcode of [11, 26, 11 + 256]) {
    expect(messageOf(file, Object.assign(new Error("x"), { errcode }))).toContain("is damaged");
  }
  for (const errcode of [5, 8, 10, 13, 14, 15, 14 + 256]) {
    const error = databaseOpenError({ store: "The store", file }, Object.assign(new Error("x"), { errcode }));
    expect(error.code).toBe("store_unavailable");
    expect(`${error.message} ${error.hint}`).not.toMatch(/damaged|move it away|remove/i);
  }
});

test("the error of a database that cannot be opened gives the reason", () => {
  const missing = join(root, "missing");
  expect(messageOf(join(missing, "x.db"))).toContain("the folder missing does not exist");
  mkdirSync(join(root, "folder.db"));
  expect(messageOf(join(root, "folder.db"))).toContain("a folder is where its file should be");
  writeFileSync(join(root, "in-the-way"), "");
  expect(messageOf(join(root, "in-the-way", "x.db"))).toContain("cannot be");
});

const isRoot = process.getuid?.() === 0;

test.skipIf(!isRoot)("the error names a file of another user", () => {
  const file = join(root, "foreign.db");
  writeFileSync(file, "x");
  chmodSync(root, 0o755);
  chmodSync(file, 0o600);
  const code = `
    process.setuid(65534);
    const { databaseOpenError } = await import(${JSON.stringify(new URL("./database-file.ts", import.meta.url).href)});
    console.log(databaseOpenError({ store: "The store", file: ${JSON.stringify(file)} }, undefined).message);`;
  const loaded = `import(${JSON.stringify(new URL("./database-file.ts", import.meta.url).href)}).then(() => 0);`;
  const { stdout } = spawnSync(process.execPath, ["--input-type=module", "-e", `await ${loaded}\n${code}`]);
  expect(String(stdout)).toContain("belongs to another user");
});

test("the error names too many open files", () => {
  const url = JSON.stringify(new URL("./database-file.ts", import.meta.url).href);
  const code = `
    const { databaseOpenError } = await import(${url});
    const { openSync } = await import("node:fs");
    const file = ${JSON.stringify(join(root, "healthy.db"))};
    try { for (;;) openSync(process.execPath, "r"); } catch {}
    const message = databaseOpenError({ store: "The store", file }, undefined).message;
    process._rawDebug(message);`;
  const { stderr } = spawnSync("sh", [
    "-c",
    `ulimit -n 64; exec "$0" --input-type=module -e "$1"`,
    process.execPath,
    code,
  ]);
  expect(String(stderr)).toContain("too many files open");
});

import { fork } from "node:child_process";
import { once } from "node:events";
import { cpSync, mkdirSync, rmSync, statSync, truncateSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { setTimeout } from "node:timers/promises";
import { afterAll, expect, test } from "vitest";
import { systemClock } from "../../base/clock.ts";
import type { KitError } from "../../base/kit-error.ts";
import { createTransaction } from "../../sqlite/statements.ts";
import { testFolder } from "../../testing/test-folder.ts";
import { createEmbeddedEngine } from "./create-embedded-engine.ts";
import { openDatabase } from "./database/engine-database.ts";
import { createLostWork } from "./database/lost-work.ts";
import { openNotes } from "./testing/open-notes.ts";

const root = testFolder(afterAll);

/** More rounds find more: `KIT_FAULT_ROUNDS=300 vitest run --project campaigns src/engine/embedded/lost-work.campaign.test.ts`. */
const rounds = Number(process.env.KIT_FAULT_ROUNDS ?? 4);

interface Place {
  readonly state: string;
  readonly folder: string;
  readonly notes: string;
}

function placeIn(state: string): Place {
  mkdirSync(join(state, "engine"), { recursive: true });
  return { state, folder: join(state, "engine"), notes: join(state, "notes.db") };
}

let placeCount = 0;
const place = (): Place => {
  placeCount += 1;
  return placeIn(join(root, String(placeCount), ".kit"));
};

/** Work until some inputs are done and some time has passed, then the end of the process without a chance to clean up. */
async function workUntilKilled(
  { folder, notes }: Place,
  { inputs, ms, hurry = 100 }: { readonly inputs: number; readonly ms: number; readonly hurry?: number },
): Promise<void> {
  const script = new URL("testing/notes-process.ts", import.meta.url);
  const child = fork(script, [folder, notes, String(hurry)], { execArgv: [] });
  const closed = once(child, "close");
  await new Promise<void>((resolve) => {
    child.on("message", (done) => {
      if (Number(done) >= inputs) resolve();
    });
    child.once("close", () => resolve());
  });
  await setTimeout(ms);
  child.kill("SIGKILL");
  expect((await closed)[1]).toBe("SIGKILL");
}

/** Opens the files as a server does at its start, and ends. */
async function startedOn({ folder, notes }: Place): Promise<KitError | undefined> {
  const database = openNotes(notes);
  const engine = createEmbeddedEngine({ folder, beside: [notes] });
  await engine.start({ run: async () => undefined, dispatch: async () => undefined });
  const found = engine.warning?.();
  await engine.drain({ timeoutMs: 0 });
  database.close();
  return found;
}

const cutHalf = (file: string): void => truncateSync(file, Math.floor(statSync(file).size / 2));

test.each([
  ["half of engine.db-wal is cut", "engine/engine.db", (file: string) => cutHalf(`${file}-wal`)],
  ["engine.db-wal is deleted", "engine/engine.db", (file: string) => rmSync(`${file}-wal`)],
  ["notes.db-wal is deleted", "notes.db", (file: string) => rmSync(`${file}-wal`)],
  ["half of notes.db-wal is cut", "notes.db", (file: string) => cutHalf(`${file}-wal`)],
  ["events.db-wal is deleted", "engine/events.db", (file: string) => rmSync(`${file}-wal`)],
  [
    "engine.db is deleted",
    "engine/engine.db",
    (file: string) => ["", "-wal", "-shm"].map((end) => rmSync(file + end)),
  ],
])("%s: the next start says so once, and works", async (_name, name, damage) => {
  const where = place();
  // Little enough for SQLite not to begin the log again from its start: then its end would be old.
  await workUntilKilled(where, { inputs: 20, ms: 20 });
  damage(join(where.state, name));
  const found = await startedOn(where);
  expect(found?.message).toContain(`.kit/${name} lacks `);
  expect(found?.message).toMatch(/at least \d+ transactions? until 2\d{3}-/);
  expect(found?.message.match(/lacks/g)).toHaveLength(1);
  expect(found?.hint).toContain("restore all files of .kit from one backup");
  expect(found?.message).not.toContain(root);
  expect(await startedOn(where)).toBeUndefined();
});

test("an older copy of one file is noticed, one of all files is not", async () => {
  const where = place();
  await workUntilKilled(where, { inputs: 20, ms: 100 });
  expect(await startedOn(where)).toBeUndefined();
  const backup = placeIn(join(root, "backup", ".kit"));
  cpSync(where.state, backup.state, { recursive: true });
  await workUntilKilled(where, { inputs: 20, ms: 100 });
  expect(await startedOn(where)).toBeUndefined();
  for (const name of ["engine/engine.db", "notes.db"]) {
    const mixed = place();
    cpSync(where.state, mixed.state, { recursive: true });
    cpSync(join(backup.state, name), join(mixed.state, name));
    expect((await startedOn(mixed))?.message).toContain(`.kit/${name} lacks what kit wrote after 2`);
  }
  expect(await startedOn(backup)).toBeUndefined();
});

test(`${rounds} processes killed at any moment lose nothing`, async () => {
  const where = place();
  for (let round = 0; round < rounds; round += 1) {
    await workUntilKilled(where, { inputs: 1 + Math.random() * 60, ms: Math.random() * 30, hurry: 1_000 });
    expect(await startedOn(where)).toBeUndefined();
  }
  const database = new DatabaseSync(join(where.folder, "engine.db"));
  const { count } = database.prepare("SELECT count FROM progress WHERE other = '../notes.db'").get() ?? {};
  expect(Number(count)).toBeGreaterThan(rounds);
  database.close();
});

test("the files show no loss between any two steps of a mark, also when its transaction fails", async () => {
  const { state, folder, notes } = place();
  const database = openDatabase(folder);
  const store = openNotes(notes);
  const lostWork = createLostWork({ folder, others: [notes], database, clock: systemClock });
  const transaction = createTransaction(database);
  let copies = 0;
  const expectNoLoss = (): void => {
    copies += 1;
    const copy = placeIn(join(root, `step-${copies}`, ".kit"));
    cpSync(state, copy.state, { recursive: true });
    const copied = openDatabase(copy.folder);
    const check = createLostWork({
      folder: copy.folder,
      others: [copy.notes],
      database: copied,
      clock: systemClock,
    });
    check.check();
    expect(check.problem()).toBeUndefined();
    check.close();
    copied.close();
  };
  const failure = new Error("full");
  for (let round = 0; round < 12; round += 1) {
    if (round % 3 !== 1) store.exec("INSERT INTO notes VALUES (1)");
    if (round % 3 !== 2) lostWork.worked();
    if (round % 5 === 4) store.exec("BEGIN IMMEDIATE");
    const marked = lostWork.mark(async (write) => {
      expectNoLoss();
      const value = transaction(() => {
        const written = write();
        if (round % 4 === 3) throw failure;
        return written;
      });
      expectNoLoss();
      return value;
    });
    if (store.isTransaction) store.exec("COMMIT");
    await marked.catch((error: unknown) => expect(error).toBe(failure));
    expectNoLoss();
  }
  expect(copies).toBeGreaterThan(30);
  lostWork.close();
  store.close();
  database.close();
});

test("files of an older kit, without the table, open without a report", async () => {
  const where = place();
  await workUntilKilled(where, { inputs: 5, ms: 0 });
  const laterSteps = `DROP INDEX waiting_calls_by_session; DROP INDEX runs_by_time; DROP INDEX dispatches_by_time;
    ALTER TABLE run_journal DROP COLUMN begun_at;`;
  for (const [name, later, steps] of [
    ["engine.db", laterSteps, 3],
    ["events.db", "", 1],
  ] as const) {
    const database = new DatabaseSync(join(where.folder, name));
    const version = Number(database.prepare("PRAGMA user_version").get()?.user_version);
    database.exec(`${later} DROP TABLE progress; PRAGMA user_version = ${version - steps}`);
    database.close();
  }
  const notes = new DatabaseSync(where.notes);
  notes.exec("DROP TABLE progress");
  notes.close();
  expect(await startedOn(where)).toBeUndefined();
  await workUntilKilled(where, { inputs: 5, ms: 50 });
  rmSync(join(where.folder, "engine.db-wal"));
  expect((await startedOn(where))?.message).toContain(".kit/engine/engine.db lacks ");
});

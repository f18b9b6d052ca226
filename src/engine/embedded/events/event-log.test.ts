import { mkdtempSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterAll, expect, test } from "vitest";
import { KitError } from "../../../base/kit-error.ts";
import type { KitEvent } from "../../../protocol/event.ts";
import { createManualClock } from "../../../testing/manual-clock.ts";
import { textDelta } from "../../../testing/sample-records.ts";
import { testFolder } from "../../../testing/test-folder.ts";
import type { OpenEventLog } from "../../cases/event-log-cases.ts";
import { eventLogContract } from "../../events.suite.ts";
import type { Lease } from "../../shared/engine-base.ts";
import type { EventRetention, StoredEventLog } from "../../shared/events/event-log.ts";
import { openEventLog } from "./event-log.ts";

const root = testFolder(afterAll);
const newFolder = (): string => mkdtempSync(join(root, "log-"));
const stream = "agent/reviewer/pr-7";

eventLogContract({ name: "The log in a folder", create: () => openSubject(newFolder(), 1) });
eventLogContract({ name: "The log in memory", create: () => openSubject(undefined, 1) });

function openSubject(folder: string | undefined, fence: number): OpenEventLog {
  const clock = createManualClock();
  const { lease, lose } = createLease(fence);
  const log = openEventLog({ folder, clock, lease });
  const subject = { log, settle: () => clock.advance(200), close: async () => log.close() };
  if (folder === undefined) return subject;
  const reopen = (): OpenEventLog => openSubject(folder, fence + 1);
  return {
    ...subject,
    reopen,
    async loseWriter(append) {
      append();
      lose();
      return reopen();
    },
  };
}

function createLease(fence: number): { lease: Lease; lose(): void; regain(fence: number): void } {
  let current = { fence, controller: new AbortController() };
  const lease: Lease = {
    get fence() {
      return current.fence;
    },
    get signal() {
      return current.controller.signal;
    },
  };
  return {
    lease,
    lose: () => current.controller.abort(new KitError({ code: "lease_lost", message: "Gone." })),
    regain: (next) => {
      current = { fence: next, controller: new AbortController() };
    },
  };
}

function openNew(retention: Partial<EventRetention> = {}, clock = createManualClock()): StoredEventLog {
  return openEventLog({ folder: newFolder(), clock, lease: createLease(1).lease, retention });
}

async function indexesOf(log: StoredEventLog, after = 0): Promise<readonly number[]> {
  return (await log.read(stream, { after, limit: 1_000 })).map(({ index }) => index);
}

const lost = expect.objectContaining({ code: "lease_lost" });

test("events are on disk within 100 ms without a flush", async () => {
  const folder = newFolder();
  const clock = createManualClock();
  const writer = openEventLog({ folder, clock, lease: createLease(1).lease });
  const reader = openEventLog({ folder, clock, lease: createLease(0).lease });
  writer.append(stream, textDelta(1));
  expect(await indexesOf(reader)).toEqual([]);
  await clock.advance(100);
  expect(await indexesOf(reader)).toEqual([1]);
  await reader.close();
  await writer.close();
});

test("a reader follows the writer of another log, and sees the end of the stream", async () => {
  const folder = newFolder();
  const clock = createManualClock();
  const writer = openEventLog({ folder, clock, lease: createLease(1).lease });
  const reader = openEventLog({ folder, clock, lease: createLease(0).lease });
  const seen: number[] = [];
  const following = (async () => {
    for await (const { index } of reader.subscribe(stream)) seen.push(index);
  })();
  for (let index = 1; index <= 10; index += 1) {
    writer.append(stream, textDelta(index));
    await clock.advance(70);
  }
  writer.append(stream, textDelta(11));
  writer.end(stream);
  await clock.advance(300);
  await following;
  expect(seen).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]);
  await reader.close();
  await writer.close();
});

test("a process without the lease can read, but not write", async () => {
  const folder = newFolder();
  const clock = createManualClock();
  const log = openEventLog({ folder, clock, lease: createLease(0).lease });
  expect(() => log.append(stream, textDelta(1))).toThrow(lost);
  expect(() => log.end(stream)).toThrow(lost);
  expect(await log.last(stream)).toBe(0);
  await log.close();
});

test("once another process writes, the earlier writer cannot, and its indexes are not used again", async () => {
  const folder = newFolder();
  const clock = createManualClock();
  const frozen = openEventLog({ folder, clock, lease: createLease(1).lease });
  frozen.append(stream, textDelta(1));
  await frozen.flush();
  frozen.append(stream, textDelta(2));
  const next = openEventLog({ folder, clock, lease: createLease(2).lease });
  const floor = await next.last(stream);
  expect(floor).toBe(10_001);
  await expect(frozen.flush()).rejects.toThrow(lost);
  expect(() => frozen.append(stream, textDelta(3))).toThrow(lost);
  next.append(stream, textDelta(floor + 1));
  await frozen.close();
  expect(await indexesOf(next)).toEqual([1, 10_002]);
  await next.close();
  const third = openEventLog({ folder, clock, lease: createLease(3).lease });
  expect(await third.last(stream)).toBe(10_002);
  await third.close();
});

test("events that waited while the lease was lost are written once it is regained", async () => {
  const folder = newFolder();
  const clock = createManualClock();
  const leaseControl = createLease(1);
  const log = openEventLog({ folder, clock, lease: leaseControl.lease });
  log.append(stream, textDelta(1));
  leaseControl.lose();
  expect(() => log.append(stream, textDelta(2))).toThrow(lost);
  await clock.advance(100);
  leaseControl.regain(2);
  expect(await log.last(stream)).toBe(1);
  log.append(stream, textDelta(2));
  await log.close();
  const again = openEventLog({ folder, clock, lease: createLease(3).lease });
  expect(await indexesOf(again)).toEqual([1, 2]);
  await again.close();
});

test("while another program locks the log, readers and writers continue, and the events reach the disk once it is free", async () => {
  const folder = newFolder();
  const clock = createManualClock();
  const log = openEventLog({ folder, clock, lease: createLease(1).lease });
  log.append(stream, textDelta(1));
  await log.flush();
  const other = new DatabaseSync(join(folder, "events.db"));
  other.exec("BEGIN IMMEDIATE");
  log.append(stream, textDelta(2));
  await expect(log.flush()).rejects.toMatchObject({ code: "store_unavailable" });
  expect(await indexesOf(log)).toEqual([1, 2]);
  // The same holds for a new stream, and for its existing readers.
  const received: number[] = [];
  const reading = (async () => {
    for await (const { index } of log.subscribe("run/new")) received.push(index);
  })();
  for (const index of [1, 2]) log.append("run/new", textDelta(index));
  expect(await log.last("run/new")).toBe(2);
  expect((await log.counts(["run/new"])).get("run/new")).toBe(2);
  other.exec("ROLLBACK");
  log.append("run/new", textDelta(3));
  log.end("run/new");
  await clock.advance(2_000);
  await reading;
  expect(received).toEqual([1, 2, 3]);
  const reader = openEventLog({ folder, clock, lease: createLease(0).lease });
  expect(await indexesOf(reader)).toEqual([1, 2]);
  expect((await reader.read("run/new")).map(({ index }) => index)).toEqual([1, 2, 3]);
  other.close();
  await reader.close();
  await log.close();
});

test("while another program locks the log, many events of many streams do not wait", async () => {
  const folder = newFolder();
  const log = openEventLog({ folder, clock: createManualClock(), lease: createLease(1).lease });
  log.append(stream, textDelta(1));
  await log.flush();
  const other = new DatabaseSync(join(folder, "events.db"));
  other.exec("BEGIN IMMEDIATE");
  // If each event waited for the disk, the test would exceed its time limit.
  for (let index = 1; index <= 6_000; index += 1) log.append(`run/${index % 500}`, textDelta(index));
  for (let index = 2; index <= 6_000; index += 1) log.append(stream, textDelta(index));
  other.exec("ROLLBACK");
  other.close();
  await log.flush();
  expect(await indexesOf(log, 5_990)).toHaveLength(10);
  await log.close();
});

test("the count of events includes those that are not on disk yet", async () => {
  const log = openNew();
  expect(await log.counts([stream])).toEqual(new Map());
  log.append(stream, textDelta(1));
  expect((await log.counts([stream])).get(stream)).toBe(1);
  await log.flush();
  log.append(stream, textDelta(7));
  expect((await log.counts([stream])).get(stream)).toBe(2);
  await log.close();
});

test("a stream keeps its newest events, up to its limit", async () => {
  const clock = createManualClock();
  const log = openNew({ maxEvents: 500 }, clock);
  for (let index = 1; index <= 5_000; index += 1) {
    log.append(stream, textDelta(index));
    if (index % 40 === 0) await log.flush();
  }
  await clock.advance(200);
  const [oldest] = await log.read(stream, { limit: 1 });
  expect(oldest?.index).toBeGreaterThan(4_300);
  expect(oldest?.index).toBeLessThanOrEqual(4_501);
  expect(await indexesOf(log, 4_600)).toHaveLength(400);
  await log.close();
});

test("above the size limit of all streams the oldest events are deleted, and the file shrinks", async () => {
  const clock = createManualClock();
  const folder = newFolder();
  const write = async (log: StoredEventLog, rounds: number): Promise<void> => {
    for (let index = 1; index <= rounds; index += 1) {
      for (const name of ["a", "b"]) {
        const last = await log.last(`agent/reviewer/${name}`);
        log.append(`agent/reviewer/${name}`, {
          ...textDelta(last + 1),
          text: "x".repeat(20_000),
        } as KitEvent);
      }
      if (index % 10 === 0) await log.flush();
    }
    await log.flush();
  };
  const size = (): number => statSync(join(folder, "events.db")).size;
  const roomy = openEventLog({ folder, clock, lease: createLease(1).lease });
  await write(roomy, 200);
  await clock.advance(1_000);
  await roomy.close();
  expect(size()).toBeGreaterThan(6_000_000);
  const maxBytes = 2_000_000;
  const log = openEventLog({ folder, clock, lease: createLease(2).lease, retention: { maxBytes } });
  await write(log, 10);
  await clock.advance(60_000);
  const indexes = (await log.read("agent/reviewer/a", { limit: 1_000 })).map(({ index }) => index);
  expect(indexes.at(-1)).toBe(210);
  expect(indexes.length).toBeGreaterThan(20);
  expect(indexes[0]).toBe(211 - indexes.length);
  await log.close();
  expect(size()).toBeLessThan(maxBytes * 1.3);
});

test("the log of an older kit shrinks too", async () => {
  const folder = newFolder();
  const clock = createManualClock();
  const before = openEventLog({ folder, clock, lease: createLease(1).lease });
  before.append(stream, textDelta(1));
  await before.close();
  const old = new DatabaseSync(join(folder, "events.db"));
  old.exec("PRAGMA journal_mode = DELETE; PRAGMA auto_vacuum = 0; VACUUM;");
  expect(old.prepare("PRAGMA auto_vacuum").get()).toEqual({ auto_vacuum: 0 });
  old.close();
  const log = openEventLog({ folder, clock, lease: createLease(2).lease });
  expect(await indexesOf(log, 0)).toEqual([1]);
  await log.close();
  const now = new DatabaseSync(join(folder, "events.db"));
  expect(now.prepare("PRAGMA auto_vacuum").get()).toEqual({ auto_vacuum: 2 });
  now.close();
});

test("a recorded event does not change when the caller changes its object", async () => {
  const log = openNew();
  const args = { path: "a.txt" };
  const call = { type: "tool_start", tool_call_id: "call_1", tool: "read", args } as const;
  log.append(stream, { ...textDelta(1), ...call } as KitEvent);
  args.path = "b.txt";
  expect(await log.read(stream)).toMatchObject([{ args: { path: "a.txt" } }]);
  const loop: { self?: unknown } = {};
  loop.self = loop;
  expect(() => log.append(stream, { ...textDelta(2), ...call, args: loop } as KitEvent)).toThrow();
  await log.flush();
  expect(await log.read(stream)).toMatchObject([{ args: { path: "a.txt" } }]);
  await log.close();
});

test("old events are deleted, and the stream's indexes continue", async () => {
  const clock = createManualClock();
  const log = openNew({ maxAgeMs: 3_600_000 }, clock);
  for (let index = 1; index <= 1_000; index += 1) log.append(stream, textDelta(index));
  await clock.advance(2 * 3_600_000);
  log.append("run/other", textDelta(1));
  await clock.advance(200);
  expect(await indexesOf(log)).toEqual([]);
  expect(await log.last(stream)).toBe(1_000);
  log.append(stream, textDelta(1_001));
  expect(await indexesOf(log)).toEqual([1_001]);
  await log.close();
});

test("readers finish when the log closes", async () => {
  const log = openNew();
  const waiting = log.subscribe(stream)[Symbol.asyncIterator]().next();
  await log.close();
  expect((await waiting).done).toBe(true);
});

test("a file that is not an event log is refused and not changed", () => {
  const folder = newFolder();
  writeFileSync(join(folder, "events.db"), "not a database, but a text file".repeat(50));
  expect(() => openEventLog({ folder, clock: createManualClock(), lease: createLease(1).lease })).toThrow(
    expect.objectContaining({ code: "unavailable" }),
  );
});

test("streams that begin at the same time are claimed in one write, before their first index is used", async () => {
  const folder = newFolder();
  const clock = createManualClock();
  const log = openEventLog({ folder, clock, lease: createLease(1).lease });
  const streams = Array.from({ length: 50 }, (_, index) => `agent/reviewer/${index}`);
  await log.begin(stream);
  const other = new DatabaseSync(join(folder, "events.db"));
  const rows = (): number => Number(other.prepare("SELECT count(*) AS n FROM streams").get()?.n);
  const begun = Promise.all(streams.map((name) => log.begin(name)));
  expect(rows()).toBe(1);
  await begun;
  expect(rows()).toBe(51);
  // If the process dies now, the next one does not use its indexes again.
  log.append(streams[0] ?? "", textDelta(1));
  const next = openEventLog({ folder, clock, lease: createLease(2).lease });
  expect(await next.last(streams[0] ?? "")).toBe(10_000);
  // A mere read leaves no row behind.
  expect(await next.last("agent/reviewer/never")).toBe(0);
  await next.close();
  expect(rows()).toBe(51);
  other.close();
});

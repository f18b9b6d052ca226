import fc from "fast-check";
import { expect, test } from "vitest";
import { systemClock } from "../../../base/clock.ts";
import { createManualClock } from "../../../testing/manual-clock.ts";
import type { JobEnd } from "./job.ts";
import { JobQueue } from "./job-queue.ts";

interface Begun {
  readonly id: string;
  readonly releaseSlot: () => () => void;
  end(end: JobEnd): void;
}

/** A queue whose jobs end when the test says so. */
function createBench(slots: number) {
  const queue = new JobQueue({ clock: systemClock, slots });
  const begun: Begun[] = [];
  const forgotten: string[] = [];
  return {
    queue,
    begun,
    forgotten,
    join(id: string, line: string, { owner = line, leavesLine = false } = {}): void {
      queue.join({
        id,
        line,
        owner,
        leavesLine,
        begin: (releaseSlot) => new Promise((resolve) => begun.push({ id, releaseSlot, end: resolve })),
        forget: () => forgotten.push(id),
      });
    },
    /** Ends the job that runs the longest. */
    async end(how: JobEnd = { ended: true }): Promise<void> {
      begun.shift()?.end(how);
      await new Promise(setImmediate);
    },
    running: () => begun.map(({ id }) => id),
  };
}

test("nothing begins before the queue is open, and then no more jobs than slots", async () => {
  const bench = createBench(2);
  for (const id of ["a", "b", "c"]) bench.join(id, id);
  expect(bench.running()).toEqual([]);
  expect(bench.queue.waiting()).toBe(3);
  bench.queue.open();
  expect(bench.running()).toEqual(["a", "b"]);
  await bench.end();
  expect(bench.running()).toEqual(["b", "c"]);
});

test("lines take turns, whatever the length of each", async () => {
  const bench = createBench(1);
  bench.queue.open();
  for (const id of ["a1", "a2", "a3", "b1", "c1", "b2"]) bench.join(id, id.slice(0, 1));
  const order: string[] = [];
  while (bench.begun.length > 0) {
    order.push(...bench.running());
    await bench.end();
  }
  expect(order).toEqual(["a1", "b1", "c1", "a2", "b2", "a3"]);
});

test("owners have equal shares of the slots, and the lines of one take turns", async () => {
  const bench = createBench(4);
  // One owner with many lines has queued its jobs long before the others.
  for (let number = 0; number < 40; number += 1)
    bench.join(`loud${number}`, `l${number % 10}`, { owner: "loud" });
  bench.queue.open();
  bench.join("b1", "b", { owner: "b" });
  bench.join("c1", "c", { owner: "c" });
  bench.join("c2", "d", { owner: "c" });
  expect(bench.running()).toEqual(["loud0", "loud1", "loud2", "loud3"]);
  for (let ends = 0; ends < 3; ends += 1) await bench.end();
  expect(bench.running()).toEqual(["loud3", "b1", "c1", "c2"]);
  await bench.end();
  // Only this owner has jobs left: each of its lines gets a turn before the first line gets another.
  expect(bench.running()).toEqual(["b1", "c1", "c2", "loud4"]);
  expect(bench.queue.waiting({ owner: "loud" })).toBe(35);
  expect(bench.queue.waiting({ owner: "c" })).toBe(0);
});

test("no owner gets all of many slots: the next owner begins at once", async () => {
  const bench = createBench(16);
  bench.queue.open();
  for (let number = 0; number < 40; number += 1) bench.join(`loud${number}`, `l${number}`, { owner: "loud" });
  expect(bench.running()).toHaveLength(14);
  for (let number = 0; number < 40; number += 1)
    bench.join(`other${number}`, `o${number}`, { owner: "other" });
  expect(bench.running()).toHaveLength(15);
  bench.join("third", "t", { owner: "third" });
  expect(bench.running()).toContain("third");
});

test.each([
  { slots: 7, owners: 1, each: 7 },
  { slots: 8, owners: 1, each: 7 },
  { slots: 9, owners: 1, each: 7 },
  { slots: 256, owners: 1, each: 224 },
  { slots: 256, owners: 2, each: 119 },
])("of $slots slots, $owners with much to do have $each each", ({ slots, owners, each }) => {
  const bench = createBench(slots);
  const names = ["a", "b"].slice(0, owners);
  for (let number = 0; number < slots; number += 1)
    for (const name of names) bench.join(`${name}${number}`, `${name}${number}`, { owner: name });
  bench.queue.open();
  const counts = names.map((name) => bench.running().filter((id) => id.startsWith(name)).length);
  expect(counts).toEqual(names.map(() => each));
});

test("an owner keeps its turn while more of its work joins", async () => {
  const bench = createBench(1);
  bench.queue.open();
  bench.join("busy", "busy");
  bench.join("a1", "a1", { owner: "a" });
  bench.join("b1", "b1", { owner: "b" });
  bench.join("a2", "a2", { owner: "a" });
  await bench.end();
  expect(bench.running()).toEqual(["a1"]);
});

test("an owner and a line without jobs are forgotten, with their measured times", async () => {
  const bench = createBench(1);
  bench.queue.open();
  bench.join("a1", "line", { owner: "a" });
  expect(bench.queue.retryDelay({ owner: "a" })).toBeGreaterThan(0);
  expect(bench.queue.retryDelay({ line: "line" })).toBeGreaterThan(0);
  await bench.end();
  expect(bench.queue.retryDelay({ owner: "a" })).toBeUndefined();
  expect(bench.queue.retryDelay({ line: "line" })).toBeUndefined();
});

test("a line has the turns of its first job's owner", async () => {
  const bench = createBench(1);
  bench.queue.open();
  bench.join("busy", "x", { owner: "x" });
  for (const id of ["a1", "a2"]) bench.join(id, "loud", { owner: "a" });
  bench.join("a3", "shared", { owner: "a" });
  bench.join("b1", "shared", { owner: "b" });
  bench.join("b2", "own", { owner: "b" });
  const order: string[] = [];
  while (bench.begun.length > 0) {
    order.push(...bench.running());
    await bench.end();
  }
  expect(order).toEqual(["busy", "a1", "b2", "a3", "b1", "a2"]);
});

test("a refused sender learns when to retry, from measured times and from the senders refused before", async () => {
  const clock = createManualClock();
  const queue = new JobQueue({ clock, slots: 2 });
  const ends: (() => void)[] = [];
  const join = (id: string, line: string): void =>
    queue.join({
      id,
      line,
      owner: "o",
      begin: () => new Promise((resolve) => ends.push(() => resolve({ ended: true }))),
    });
  for (let number = 0; number < 20; number += 1) join(`w${number}`, `l${number % 2}`);
  expect(queue.retryDelay({})).toBeUndefined();
  queue.open();
  // No job has ended yet.
  expect(queue.retryDelay({ owner: "o" })).toBe(1_000);
  for (let round = 0; round < 3; round += 1) {
    await clock.advance(8_000);
    for (const end of ends.splice(0)) end();
    await clock.advance(0);
  }
  await clock.advance(2_000);
  // Two jobs have run for two of eight seconds; one refused sender has come back.
  expect([1, 2, 3, 4].map(() => queue.retryDelay({ owner: "o" }))).toEqual([6_000, 6_000, 14_000, 14_000]);
  // Once all that wait now have begun, there is room, however many senders were refused.
  const later = Array.from({ length: 200 }, () => queue.retryDelay({ owner: "o" }) ?? 0);
  expect(Math.max(...later)).toBe(6_000 + 8_000 * Math.floor(queue.waiting({ owner: "o" }) / 2));
  expect(queue.retryDelay({ line: "l0" })).toBe(6_000);
  expect(queue.retryDelay({ line: "l0" })).toBe(14_000);
});

test("suspendable work is asked to release as many slots as are wanted, the oldest registration first", async () => {
  const bench = createBench(3);
  bench.queue.open();
  const requests: string[] = [];
  for (const id of ["a", "b", "c"]) {
    bench.join(id, id);
    bench.queue.onSlotWanted(() => requests.push(id));
  }
  const unregister = bench.queue.onSlotWanted(() => requests.push("unregistered"));
  unregister();
  expect(requests).toEqual([]);
  bench.join("d", "d");
  bench.join("a2", "a");
  expect(requests).toEqual(["a"]);
  await bench.end();
  expect([bench.running(), requests]).toEqual([
    ["b", "c", "d"],
    ["a", "b"],
  ]);
});

test("no slot is requested before the queue is open, nor a second one while the first is being released", async () => {
  const bench = createBench(3);
  const requests: string[] = [];
  for (const id of ["a", "b", "c"]) bench.join(id, id);
  bench.queue.onSlotWanted(() => requests.push("early"))();
  expect(requests).toEqual([]);
  bench.queue.open();
  for (const id of ["a", "b", "c"]) bench.queue.onSlotWanted(() => requests.push(id));
  for (const id of ["d", "e"]) bench.join(id, id);
  expect(requests).toEqual(["a", "b"]);
  await bench.end();
  expect(requests).toEqual(["a", "b"]);
});

test("a job that waits for two things has no slot while it waits for one of them", async () => {
  const bench = createBench(1);
  bench.queue.open();
  for (const id of ["a", "b", "c"]) bench.join(id, id);
  const [first] = bench.begun;
  first?.releaseSlot();
  first?.releaseSlot()();
  bench.begun.reverse();
  await bench.end();
  expect(bench.running()).toEqual(["a", "c"]);
});

test("slotsFree resolves once the last job with a slot has ended, and not before", async () => {
  const bench = createBench(2);
  bench.queue.open();
  for (const id of ["a", "b"]) bench.join(id, id);
  const slotsFree = bench.queue.slotsFree().then(() => bench.running());
  await bench.end();
  await bench.end();
  expect(await slotsFree).toEqual([]);
});

test("a job that releases its slot lets jobs of other lines begin, and resumes at once when it takes the slot back", async () => {
  const bench = createBench(1);
  bench.queue.open();
  for (const id of ["a1", "a2", "b", "c"]) bench.join(id, id.slice(0, 1));
  const [first] = bench.begun;
  // The job waits for two things, and takes the slot back after both.
  const backs = [first?.releaseSlot(), first?.releaseSlot()];
  expect(bench.running()).toEqual(["a1", "b"]);
  const idle = bench.queue.idle().then(() => bench.running());
  for (const back of [...backs, ...backs]) back?.();
  bench.begun.reverse();
  await bench.end();
  // The only slot is used by the resumed job.
  expect(bench.running()).toEqual(["a1"]);
  await bench.end();
  expect(bench.running()).toEqual(["c"]);
  // A job that ends without its slot releases nothing.
  const back = bench.begun[0]?.releaseSlot();
  expect(bench.running()).toEqual(["c", "a2"]);
  await bench.end();
  back?.();
  bench.join("d", "d");
  expect(bench.running()).toEqual(["a2"]);
  await bench.end();
  await bench.end();
  expect(await idle).toEqual([]);
  bench.join("e", "e");
  const slotsFree = bench.queue.slotsFree().then(() => bench.running());
  bench.begun[0]?.releaseSlot();
  expect(await slotsFree).toEqual(["e"]);
});

test("a job that waits for a retry keeps its line, releases its slot, and can begin early", async () => {
  const bench = createBench(1);
  bench.queue.open();
  bench.join("a1", "a");
  bench.join("a2", "a");
  await bench.end({ retryAt: Date.now() + 3_600_000 });
  expect(bench.running()).toEqual([]);
  expect(bench.queue.waiting({ line: "a" })).toBe(2);
  bench.join("b1", "b");
  expect(bench.running()).toEqual(["b1"]);
  for (const id of ["a1", "a1", "a2"]) bench.queue.hasten({ id, line: "a" });
  await bench.end();
  expect(bench.running()).toEqual(["a1"]);
  await bench.end({ retryAt: Date.now() + 3_600_000 });
  expect(bench.queue.leave({ id: "a1", line: "a" })).toBe(true);
  expect(bench.running()).toEqual(["a2"]);
  expect(bench.queue.leave({ id: "a2", line: "a" })).toBe(false);
  await bench.end({ retryAt: 0 });
  while (bench.begun.length === 0) await new Promise(setImmediate);
  expect(bench.running()).toEqual(["a2"]);
});

test("a closed queue forgets waiting jobs, and a line continues only after its running job", async () => {
  const bench = createBench(2);
  bench.queue.open();
  for (const id of ["a1", "a2", "b1"]) bench.join(id, id.slice(0, 1));
  bench.queue.close({ clear: true });
  expect(bench.forgotten).toEqual(["a2"]);
  expect(bench.queue.waiting()).toBe(0);
  const idle = bench.queue.idle();
  bench.join("a3", "a");
  bench.queue.open();
  expect(bench.running()).toEqual(["a1", "b1"]);
  await bench.end({ retryAt: 0 });
  while (bench.begun.length < 2) await new Promise(setImmediate);
  expect(bench.running()).toContain("b1");
  while (bench.begun.length > 0) await bench.end();
  await idle;
});

test("lines keep their order, run one job at a time within the slots, and lose none, whatever joins, leaves and ends", async () => {
  const step = fc.oneof(
    {
      weight: 4,
      arbitrary: fc.record({ kind: fc.constant("join" as const), line: fc.integer({ max: 3, min: 0 }) }),
    },
    { weight: 3, arbitrary: fc.record({ kind: fc.constant("end" as const), which: fc.nat() }) },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant("retry" as const), which: fc.nat() }) },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant("leave" as const), which: fc.nat() }) },
  );
  const property = fc.asyncProperty(
    fc.integer({ min: 1, max: 3 }),
    fc.array(step, { maxLength: 60 }),
    async (slots, steps) => {
      const queue = new JobQueue({ clock: systemClock, slots });
      queue.open();
      const running = new Map<string, (end: JobEnd) => void>();
      const left = new Set<string>();
      const joined: string[] = [];
      const finished: string[] = [];
      const check = (line: string, number: number): void => {
        expect(running.size).toBeLessThan(slots);
        for (const id of running.keys()) expect(id.startsWith(`${line}:`)).toBe(false);
        for (const id of joined.filter((one) => one.startsWith(`${line}:`))) {
          if (Number(id.split(":")[1]) < number) expect(finished.includes(id) || left.has(id)).toBe(true);
        }
      };
      const endOne = async (which: number, end: JobEnd): Promise<void> => {
        const ids = [...running.keys()];
        const id = ids[which % Math.max(1, ids.length)];
        const resolve = id === undefined ? undefined : running.get(id);
        if (id === undefined || resolve === undefined) return;
        running.delete(id);
        if ("ended" in end) finished.push(id);
        resolve(end);
        await new Promise(setImmediate);
      };
      for (const one of steps) {
        if (one.kind === "join") {
          const line = String(one.line);
          const number = joined.length;
          const id = `${line}:${number}`;
          joined.push(id);
          queue.join({
            id,
            line,
            // Several principals can send inputs to one session.
            owner: number % 3 === 0 ? "guest" : line,
            begin: () => {
              check(line, number);
              return new Promise((resolve) => running.set(id, resolve));
            },
          });
        } else if (one.kind === "leave") {
          const id = joined[one.which % Math.max(1, joined.length)];
          if (id === undefined || left.has(id)) continue;
          // The next job of the line can begin before `leave` returns.
          left.add(id);
          if (!queue.leave({ id, line: id.split(":")[0] ?? "" })) left.delete(id);
        } else await endOne(one.which, one.kind === "end" ? { ended: true } : { retryAt: 0 });
      }
      while (finished.length + left.size < joined.length) {
        await endOne(0, { ended: true });
        await new Promise(setImmediate);
      }
      expect(queue.waiting()).toBe(0);
      await queue.idle();
    },
  );
  await fc.assert(property, { numRuns: 100 });
});

test("a job that releases its slot can also leave its line: the next job begins, and another one keeps its place", async () => {
  const bench = createBench(1);
  bench.queue.open();
  for (const id of ["parent", "other", "child"]) bench.join(id, "suspects", { leavesLine: true });
  const resume = bench.begun[0]?.releaseSlot();
  expect(bench.running()).toEqual(["parent", "other"]);
  resume?.();
  // It is in no line: its end begins no job, and the line waits for the job that runs.
  await bench.end();
  expect(bench.running()).toEqual(["other"]);
  await bench.end();
  expect(bench.running()).toEqual(["child"]);
  await bench.end();
  expect(bench.queue.waiting()).toBe(0);
  await bench.queue.idle();
});

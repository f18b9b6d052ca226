import fc from "fast-check";
import { afterEach, describe, expect, test } from "vitest";
import type { KitEvent } from "../protocol/event.ts";
import type { EventLog } from "./contract.ts";

/** How the suite comes to a log. */
export interface EventLogSubject {
  readonly name: string;
  /** An empty log that may be written. */
  readonly create: () => OpenEventLog | Promise<OpenEventLog>;
  /** How many orders of calls the property test tries; default 60. */
  readonly rounds?: number;
}

export interface OpenEventLog {
  readonly log: EventLog;
  /** Waits until all events are on disk, and unused streams have left memory. */
  settle(): Promise<void>;
  /** Closes it in order; readers get to their end. */
  close(): Promise<void>;
  /** Opens the same data again; after `close`. Absent where data ends with the process. */
  reopen?(): OpenEventLog | Promise<OpenEventLog>;
}

const stream = "agent/reviewer/pr-7";

/** The promises of `EventLog`. */
export function eventLogContract(subject: EventLogSubject): void {
  describe(`${subject.name} as an event log`, () => {
    const opened: OpenEventLog[] = [];
    const open = async (): Promise<OpenEventLog> => {
      const log = await subject.create();
      opened.push(log);
      return log;
    };
    afterEach(async () => {
      for (const log of opened.splice(0)) await log.close();
    });

    test("a stream without events has 0 as its last index, and reads as empty", async () => {
      const { log } = await open();
      expect(await log.last(stream)).toBe(0);
      expect(await log.read(stream)).toEqual([]);
    });

    test("an event can be read at once, and reads the same from disk", async () => {
      const { log, settle } = await open();
      const event = delta(1, 'a "quoted" \u2028 text, 🌍 \ud800');
      log.append(stream, event);
      expect(await log.last(stream)).toBe(1);
      expect(await log.read(stream)).toEqual([event]);
      await settle();
      expect(await log.read(stream)).toEqual([event]);
      expect(await log.last(stream)).toBe(1);
    });

    test("an index that is not above the last is a conflict, and changes nothing", async () => {
      const { log, settle } = await open();
      log.append(stream, delta(5));
      for (const index of [5, 4]) {
        expect(() => log.append(stream, delta(index))).toThrow(expect.objectContaining({ code: "conflict" }));
      }
      await settle();
      expect(() => log.append(stream, delta(5))).toThrow(expect.objectContaining({ code: "conflict" }));
      expect(await indexes(log)).toEqual([5]);
    });

    test("streams are strangers to each other", async () => {
      const { log } = await open();
      log.append("agent/a/1", delta(1, "a"));
      log.append("agent/a/11", delta(1, "b"));
      await log.flush();
      log.append("agent/a/1", delta(2, "c"));
      expect((await log.read("agent/a/1")).map(textOf)).toEqual(["a", "c"]);
      expect((await log.read("agent/a/11")).map(textOf)).toEqual(["b"]);
    });

    test("reading takes a place to start, a limit and types", async () => {
      const { log, settle } = await open();
      for (let index = 1; index <= 400; index += 1)
        log.append(stream, index % 50 === 0 ? idle(index) : said(index));
      await settle();
      for (let index = 401; index <= 500; index += 1)
        log.append(stream, index % 50 === 0 ? idle(index) : said(index));
      expect((await log.read(stream)).map(indexOf)).toEqual(range(1, 100));
      expect((await log.read(stream, { after: 398, limit: 4 })).map(indexOf)).toEqual(range(399, 402));
      expect((await log.read(stream, { after: 500 })).map(indexOf)).toEqual([]);
      const idles = await log.read(stream, { types: ["idle", "aborted"], after: 60, limit: 9 });
      expect(idles.map(indexOf)).toEqual([100, 150, 200, 250, 300, 350, 400, 450, 500]);
      for (const limit of [0, 1_001, 1.5]) {
        await expect(log.read(stream, { limit })).rejects.toMatchObject({ code: "invalid_request" });
      }
    });

    test("a subscriber gets what was, then what comes, and is through when the stream ends", async () => {
      const { log, settle } = await open();
      log.append(stream, delta(1));
      await settle();
      log.append(stream, delta(2));
      const reader = log.subscribe(stream)[Symbol.asyncIterator]();
      expect((await reader.next()).value).toEqual(delta(1));
      expect((await reader.next()).value).toEqual(delta(2));
      const third = reader.next();
      log.append(stream, delta(3));
      expect((await third).value).toEqual(delta(3));
      const end = reader.next();
      log.end(stream);
      expect(await end).toEqual({ done: true, value: undefined });
      expect(await collect(log, 1)).toEqual([2, 3]);
      await settle();
      expect(await collect(log, 1)).toEqual([2, 3]);
    });

    test("a stream that goes on after its end is open again", async () => {
      const { log } = await open();
      log.append(stream, delta(1));
      log.end(stream);
      log.append(stream, delta(2));
      const reader = log.subscribe(stream, { after: 2 })[Symbol.asyncIterator]();
      const next = reader.next();
      log.append(stream, delta(3));
      expect((await next).value.index).toBe(3);
      await reader.return?.();
    });

    test("a stream that ended before it said anything is at its end for later readers too", async () => {
      const { log, settle } = await open();
      log.end(stream);
      expect(await collect(log, 0)).toEqual([]);
      await settle();
      expect(await collect(log, 0)).toEqual([]);
    });

    test("a subscriber of a stream that does not exist yet waits for it", async () => {
      const { log } = await open();
      const next = log.subscribe(stream)[Symbol.asyncIterator]().next();
      log.append(stream, delta(1));
      expect((await next).value).toEqual(delta(1));
    });

    test("a signal ends a subscription, waiting or not", async () => {
      const { log } = await open();
      log.append(stream, delta(1));
      const stop = new AbortController();
      const reader = log.subscribe(stream, { signal: stop.signal })[Symbol.asyncIterator]();
      await reader.next();
      const waiting = reader.next();
      stop.abort(new Error("enough"));
      expect((await waiting).done).toBe(true);
      expect((await reader.next()).done).toBe(true);
      const late = log.subscribe(stream, { signal: stop.signal })[Symbol.asyncIterator]();
      expect((await late.next()).done).toBe(true);
    });

    test("a reader may ask for several events before it has the first", async () => {
      const { log } = await open();
      const reader = log.subscribe(stream)[Symbol.asyncIterator]();
      const asked = [reader.next(), reader.next(), reader.next()];
      for (const index of [1, 2, 3]) log.append(stream, delta(index));
      expect((await Promise.all(asked)).map(({ value }) => indexOf(value))).toEqual([1, 2, 3]);
      await reader.return?.();
    });

    test("a reader that stops early, even while it waits, gets its end", async () => {
      const { log } = await open();
      log.append(stream, delta(1));
      for await (const event of log.subscribe(stream)) {
        expect(event.index).toBe(1);
        break;
      }
      const reader = log.subscribe(stream, { after: 1 })[Symbol.asyncIterator]();
      const waiting = reader.next();
      await reader.return?.();
      expect((await waiting).done).toBe(true);
    });

    test("a deleted stream is gone, its readers get to their end, and it may begin anew", async () => {
      const { log, settle } = await open();
      for (let index = 1; index <= 300; index += 1) log.append(stream, delta(index));
      await settle();
      const behind = log.subscribe(stream)[Symbol.asyncIterator]();
      await behind.next();
      const waiting = log.subscribe(stream, { after: 300 })[Symbol.asyncIterator]().next();
      await log.delete(stream);
      expect((await waiting).done).toBe(true);
      expect(await log.read(stream)).toEqual([]);
      expect(await log.last(stream)).toBe(0);
      log.append(stream, delta(1, "anew"));
      expect((await log.read(stream)).map(textOf)).toEqual(["anew"]);
      const rest: number[] = [];
      for (let next = await behind.next(); next.done !== true; next = await behind.next())
        rest.push(next.value.index);
      expect(rest).toEqual(range(2, rest.length + 1));
      await log.delete("run/unknown");
    });

    test("a slow reader of a long stream misses nothing and delays no other reader", async () => {
      const { log, settle } = await open();
      const slow = log.subscribe(stream)[Symbol.asyncIterator]();
      const seen: number[] = [];
      for (let index = 1; index <= 20_000; index += 1) {
        log.append(stream, delta(index));
        if (index % 997 === 0) seen.push((await slow.next()).value.index);
        if (index % 5_000 === 0) await settle();
      }
      log.end(stream);
      for (let next = await slow.next(); next.done !== true; next = await slow.next())
        seen.push(next.value.index);
      expect(seen).toEqual(range(1, 20_000));
    });

    test("each reader gets every event once and in order, whatever readers do, and whenever it is written", async () => {
      await fc.assert(
        fc.asyncProperty(
          fc.array(step, { maxLength: 60 }),
          fc.array(fc.nat({ max: 40 })),
          async (steps, late) => {
            await checkReaders(await subject.create(), steps, late);
          },
        ),
        { numRuns: subject.rounds ?? 60 },
      );
    });

    test("after a clean end a stream goes on where it was, without a gap", async (context) => {
      const first = await open();
      if (first.reopen === undefined) return context.skip("This log lives in memory.");
      first.log.append(stream, delta(1));
      first.log.append(stream, delta(2));
      await first.close();
      const again = await first.reopen();
      opened.push(again);
      expect(await again.log.last(stream)).toBe(2);
      again.log.append(stream, delta(3));
      expect(await indexes(again.log)).toEqual([1, 2, 3]);
    });
  });
}

type Step =
  | { readonly kind: "append"; readonly count: number }
  | { readonly kind: "read"; readonly reader: number; readonly count: number }
  | { readonly kind: "reconnect"; readonly reader: number }
  | { readonly kind: "flush" | "settle" | "reopen" };

const readers = 3;
const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ kind: fc.constant("append" as const), count: fc.integer({ min: 1, max: 300 }) }),
  fc.record({
    kind: fc.constant("read" as const),
    reader: fc.nat({ max: readers - 1 }),
    count: fc.integer({ min: 1, max: 200 }),
  }),
  fc.record({ kind: fc.constant("reconnect" as const), reader: fc.nat({ max: readers - 1 }) }),
  fc.record({ kind: fc.constantFrom("flush" as const, "settle" as const, "reopen" as const) }),
);

async function checkReaders(
  first: OpenEventLog,
  steps: readonly Step[],
  late: readonly number[],
): Promise<void> {
  let open = first;
  let written = 0;
  const seen: number[][] = Array.from({ length: readers }, () => []);
  const iterators: (AsyncIterator<KitEvent> | undefined)[] = [];
  const iteratorOf = (reader: number): AsyncIterator<KitEvent> => {
    iterators[reader] ??= open.log
      .subscribe(stream, { after: seen[reader]?.at(-1) ?? 0 })
      [Symbol.asyncIterator]();
    return iterators[reader];
  };
  for (const action of steps) {
    switch (action.kind) {
      case "append":
        for (let count = 0; count < action.count; count += 1) open.log.append(stream, delta(++written));
        break;
      case "read": {
        const own = seen[action.reader] ?? [];
        for (let count = 0; count < action.count && own.length < written; count += 1) {
          own.push((await iteratorOf(action.reader).next()).value.index);
        }
        break;
      }
      case "reconnect":
        await iterators[action.reader]?.return?.();
        iterators[action.reader] = undefined;
        break;
      case "flush":
        await open.log.flush();
        break;
      case "settle":
        await open.settle();
        break;
      case "reopen":
        if (open.reopen === undefined) break;
        await open.close();
        open = await open.reopen();
        iterators.length = 0;
        break;
    }
  }
  const rest = Array.from({ length: readers }, async (_, reader) => {
    const iterator = iteratorOf(reader);
    for (let next = await iterator.next(); next.done !== true; next = await iterator.next()) {
      seen[reader]?.push(next.value.index);
    }
  });
  for (let count = 0; count < 5; count += 1) open.log.append(stream, delta(++written));
  open.log.end(stream);
  await Promise.all(rest);
  for (const own of seen) expect(own).toEqual(range(1, written));
  for (const after of late) expect(await collect(open.log, after)).toEqual(range(after + 1, written));
  await open.close();
}

function range(first: number, last: number): readonly number[] {
  return Array.from({ length: Math.max(0, last - first + 1) }, (_, offset) => first + offset);
}

function delta(index: number, text = `word ${index} `): KitEvent {
  return { ...context(index), type: "text_delta", text, turn_id: "turn_1" };
}

function said(index: number): KitEvent {
  return { ...context(index), type: "log", level: "info", message: `said ${index}` };
}

function idle(index: number): KitEvent {
  return { ...context(index), type: "idle" };
}

function context(index: number): Omit<Extract<KitEvent, { type: "idle" }>, "type"> {
  const timestamp = "2026-11-21T10:00:00.000Z";
  return {
    index,
    timestamp,
    agent: "reviewer",
    instance_id: "pr-7",
    session: "default",
    operation_id: "op_1",
  };
}

function indexOf(event: KitEvent): number {
  return event.index;
}

function textOf(event: KitEvent): string {
  return event.type === "text_delta" ? event.text : "";
}

async function indexes(log: EventLog): Promise<readonly number[]> {
  return (await log.read(stream)).map(indexOf);
}

async function collect(log: EventLog, after: number): Promise<readonly number[]> {
  const seen: number[] = [];
  for await (const event of log.subscribe(stream, { after })) seen.push(event.index);
  return seen;
}

import { deepEqual, equal, notEqual, ok, rejects, throws } from "node:assert/strict";
import type { ContractCase } from "../../base/contract-case.ts";
import type { KitEvent } from "../../protocol/event.ts";
import type { EventLog } from "../event-log-contract.ts";
import { collect, delta, idle, indexes, indexOf, range, said, stream, textOf } from "./sample-events.ts";

/** Opens the logs of the cases. */
export interface EventLogSubject {
  /** Opens an empty, writable log. */
  readonly create: () => OpenEventLog | Promise<OpenEventLog>;
  /** The number of random call sequences that one case tries; default 60. */
  readonly rounds?: number;
}

/** The log of one case. */
export interface OpenEventLog {
  readonly log: EventLog;
  /** Waits until all events are on disk, and unused streams have left memory. */
  settle(): Promise<void>;
  /** Closes the log cleanly; its readers end. */
  close(): Promise<void>;
  /** Opens the same data again, after `close`. Absent if the data ends with the process. */
  reopen?(): OpenEventLog | Promise<OpenEventLog>;
  /**
   * Calls `append`, takes the right to write from this log before the events of `append` are written, and returns the log,
   * here or in another process, that has it then. Absent if the data ends with the process.
   */
  loseWriter?(append: () => void): Promise<OpenEventLog>;
}

/** Opens logs for one case; the runner closes them after it. */
interface LogTools {
  create(): Promise<OpenEventLog>;
  closeAfter(log: OpenEventLog): void;
  readonly rounds: number;
}

/**
 * The promises of `EventLog`, the `events` of an engine, as tests for any runner. Each case creates a log and closes it at
 * its end.
 *
 * @example
 * import { test } from "node:test";
 * import { eventLogCases, type OpenEventLog } from "kit/testing";
 *
 * declare const openMyLog: () => Promise<OpenEventLog>;
 * for (const { name, run } of eventLogCases({ create: openMyLog })) test(name, run);
 */
export function eventLogCases({ create, rounds = 60 }: EventLogSubject): readonly ContractCase[] {
  return Object.entries(checks).map(([name, check]) => ({
    name,
    async run() {
      const opened: OpenEventLog[] = [];
      const closeAfter = (log: OpenEventLog): void => void opened.push(log);
      const tools: LogTools = {
        rounds,
        closeAfter,
        async create() {
          const log = await create();
          closeAfter(log);
          return log;
        },
      };
      try {
        await check(tools);
      } finally {
        for (const log of opened) await log.close();
      }
    },
  }));
}

const checks: Readonly<Record<string, (tools: LogTools) => Promise<void>>> = {
  "a stream without events has 0 as its last index, and reads as empty": async ({ create }) => {
    const { log } = await create();
    equal(await log.last(stream), 0);
    deepEqual(await log.read(stream), []);
  },
  "an event can be read at once, and reads the same from disk": async ({ create }) => {
    const { log, settle } = await create();
    const event = delta(1, 'a "quoted" \u2028 text, 🌍 \ud800');
    log.append(stream, event);
    equal(await log.last(stream), 1);
    deepEqual(await log.read(stream), [event]);
    await settle();
    deepEqual(await log.read(stream), [event]);
    equal(await log.last(stream), 1);
  },
  "an index that is not above the last is a conflict, and changes nothing": async ({ create }) => {
    const { log, settle } = await create();
    log.append(stream, delta(5));
    for (const index of [5, 4]) {
      throws(() => log.append(stream, delta(index)), { code: "conflict" });
    }
    await settle();
    throws(() => log.append(stream, delta(5)), { code: "conflict" });
    deepEqual(await indexes(log), [5]);
  },
  "streams do not affect each other": async ({ create }) => {
    const { log } = await create();
    log.append("agent/a/1", delta(1, "a"));
    log.append("agent/a/11", delta(1, "b"));
    await log.flush();
    log.append("agent/a/1", delta(2, "c"));
    deepEqual((await log.read("agent/a/1")).map(textOf), ["a", "c"]);
    deepEqual((await log.read("agent/a/11")).map(textOf), ["b"]);
  },
  "a read starts after an index, and accepts a limit and types": async ({ create }) => {
    const { log, settle } = await create();
    for (let index = 1; index <= 400; index += 1)
      log.append(stream, index % 50 === 0 ? idle(index) : said(index));
    await settle();
    for (let index = 401; index <= 500; index += 1)
      log.append(stream, index % 50 === 0 ? idle(index) : said(index));
    deepEqual((await log.read(stream)).map(indexOf), range(1, 100));
    deepEqual((await log.read(stream, { after: 398, limit: 4 })).map(indexOf), range(399, 402));
    deepEqual((await log.read(stream, { after: 500 })).map(indexOf), []);
    const idles = await log.read(stream, { types: ["idle", "aborted"], after: 60, limit: 9 });
    deepEqual(idles.map(indexOf), [100, 150, 200, 250, 300, 350, 400, 450, 500]);
    for (const limit of [0, 1_001, 1.5]) {
      await rejects(log.read(stream, { limit }), { code: "invalid_request" });
    }
  },
  "a subscriber gets the past events, then new ones, and finishes when the stream ends": async ({
    create,
  }) => {
    const { log, settle } = await create();
    log.append(stream, delta(1));
    await settle();
    log.append(stream, delta(2));
    const reader = log.subscribe(stream)[Symbol.asyncIterator]();
    deepEqual((await reader.next()).value, delta(1));
    deepEqual((await reader.next()).value, delta(2));
    const third = reader.next();
    log.append(stream, delta(3));
    deepEqual((await third).value, delta(3));
    const end = reader.next();
    log.end(stream);
    deepEqual(await end, { done: true, value: undefined });
    deepEqual(await collect(log, 1), [2, 3]);
    await settle();
    deepEqual(await collect(log, 1), [2, 3]);
  },
  "an append after the end opens a stream again": async ({ create }) => {
    const { log } = await create();
    log.append(stream, delta(1));
    log.end(stream);
    log.append(stream, delta(2));
    const reader = log.subscribe(stream, { after: 2 })[Symbol.asyncIterator]();
    const next = reader.next();
    log.append(stream, delta(3));
    equal((await next).value.index, 3);
    await reader.return?.();
  },
  "a stream that ended without events has ended for later readers too": async ({ create }) => {
    const { log, settle } = await create();
    log.end(stream);
    deepEqual(await collect(log, 0), []);
    await settle();
    deepEqual(await collect(log, 0), []);
  },
  "a subscriber of a stream that does not exist yet waits for its events": async ({ create }) => {
    const { log } = await create();
    const next = log.subscribe(stream)[Symbol.asyncIterator]().next();
    log.append(stream, delta(1));
    deepEqual((await next).value, delta(1));
  },
  "a signal ends a subscription, waiting or not": async ({ create }) => {
    const { log } = await create();
    log.append(stream, delta(1));
    const stop = new AbortController();
    const reader = log.subscribe(stream, { signal: stop.signal })[Symbol.asyncIterator]();
    await reader.next();
    const waiting = reader.next();
    stop.abort(new Error("enough"));
    equal((await waiting).done, true);
    equal((await reader.next()).done, true);
    const late = log.subscribe(stream, { signal: stop.signal })[Symbol.asyncIterator]();
    equal((await late.next()).done, true);
  },
  "a reader can request several events before it gets the first": async ({ create }) => {
    const { log } = await create();
    const reader = log.subscribe(stream)[Symbol.asyncIterator]();
    const requests = [reader.next(), reader.next(), reader.next()];
    for (const index of [1, 2, 3]) log.append(stream, delta(index));
    deepEqual(
      (await Promise.all(requests)).map(({ value }) => indexOf(value)),
      [1, 2, 3],
    );
    await reader.return?.();
  },
  "a reader that stops early, even while it waits, finishes": async ({ create }) => {
    const { log } = await create();
    log.append(stream, delta(1));
    for await (const event of log.subscribe(stream)) {
      equal(event.index, 1);
      break;
    }
    const reader = log.subscribe(stream, { after: 1 })[Symbol.asyncIterator]();
    const waiting = reader.next();
    await reader.return?.();
    equal((await waiting).done, true);
  },
  "a deleted stream is empty, its readers finish, and it can begin again": async ({ create }) => {
    const { log, settle } = await create();
    for (let index = 1; index <= 300; index += 1) log.append(stream, delta(index));
    await settle();
    const slowReader = log.subscribe(stream)[Symbol.asyncIterator]();
    await slowReader.next();
    const waiting = log.subscribe(stream, { after: 300 })[Symbol.asyncIterator]().next();
    await log.delete(stream);
    equal((await waiting).done, true);
    deepEqual(await log.read(stream), []);
    equal(await log.last(stream), 0);
    log.append(stream, delta(1, "anew"));
    deepEqual((await log.read(stream)).map(textOf), ["anew"]);
    const rest: number[] = [];
    for (let next = await slowReader.next(); next.done !== true; next = await slowReader.next())
      rest.push(next.value.index);
    deepEqual(rest, range(2, rest.length + 1));
    await log.delete("run/unknown");
  },
  "a slow reader of a long stream misses nothing and delays no other reader": async ({ create }) => {
    const { log, settle } = await create();
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
    deepEqual(seen, range(1, 20_000));
  },
  "each reader gets every event once and in order, whatever other readers do, and whenever events are written":
    async ({ create, rounds }) => {
      const random = createRandom(1);
      for (let round = 0; round < rounds; round += 1) {
        const steps = Array.from({ length: random(30) }, () => randomStep(random));
        const late = Array.from({ length: random(10) }, () => random(40));
        await checkReaders(await create(), steps, late);
      }
    },
  "a stream has an id, which a new stream of the same name does not have": async ({ create }) => {
    const { log, settle } = await create();
    deepEqual(await log.state(stream), { id: undefined, highest: 0 });
    log.append(stream, delta(1));
    equal((await log.state(stream)).highest, 1);
    await settle();
    const { id } = await log.state(stream);
    equal(typeof id, "string");
    const reader = log.subscribe(stream, { id })[Symbol.asyncIterator]();
    equal((await reader.next()).value.index, 1);
    await log.delete(stream);
    equal((await reader.next()).done, true);
    deepEqual(await log.state(stream), { id: undefined, highest: 0 });
    for (let index = 1; index <= 3; index += 1) log.append(stream, delta(index, "anew"));
    await settle();
    const next = await log.state(stream);
    notEqual(next.id, id);
    equal(next.highest, 3);
    equal((await log.subscribe(stream, { after: 1, id })[Symbol.asyncIterator]().next()).done, true);
    const rest = log.subscribe(stream, { after: 1, id: next.id })[Symbol.asyncIterator]();
    equal((await rest.next()).value.index, 2);
    await rest.return?.();
  },
  "the indexes of events that were lost with their writer are not given again, and readers that had them go on":
    async ({ create, closeAfter }) => {
      const first = await create();
      if (first.loseWriter === undefined) return;
      for (let index = 1; index <= 3; index += 1) first.log.append(stream, delta(index));
      await first.settle();
      const { id } = await first.log.state(stream);
      const live = first.log.subscribe(stream)[Symbol.asyncIterator]();
      const seen = Array.from({ length: 7 }, async () => (await live.next()).value?.index);
      const again = await first.loseWriter(() => {
        for (let index = 4; index <= 6; index += 1) first.log.append(stream, delta(index));
      });
      closeAfter(again);
      const { log } = again;
      const state = await log.state(stream);
      equal(state.id, id);
      ok(state.highest >= 6, `highest ${state.highest}`);
      const late = log.subscribe(stream, { after: 6, id })[Symbol.asyncIterator]();
      const next = late.next();
      const last = await log.last(stream);
      ok(last >= 6, `last ${last}`);
      throws(() => log.append(stream, delta(last)), { code: "conflict" });
      log.append(stream, said(last + 1));
      equal((await next).value.index, last + 1);
      if (log === first.log) deepEqual(await Promise.all(seen), [...range(1, 6), last + 1]);
      await Promise.all([late.return?.(), live.return?.()]);
      await again.settle();
      deepEqual(await indexes(log), [...range(1, 3), last + 1]);
    },
  "after a clean close a stream continues at the next index, without a gap": async ({
    create,
    closeAfter,
  }) => {
    const first = await create();
    if (first.reopen === undefined) return;
    first.log.append(stream, delta(1));
    first.log.append(stream, delta(2));
    await first.close();
    const again = await first.reopen();
    closeAfter(again);
    equal(await again.log.last(stream), 2);
    equal((await again.log.state(stream)).highest, 2);
    again.log.append(stream, delta(3));
    deepEqual(await indexes(again.log), [1, 2, 3]);
  },
};

type Step =
  | { readonly kind: "append"; readonly count: number }
  | { readonly kind: "read"; readonly reader: number; readonly count: number }
  | { readonly kind: "reconnect"; readonly reader: number }
  | { readonly kind: "flush" | "settle" | "reopen" };

const readers = 3;

function randomStep(random: Random): Step {
  switch (random(4)) {
    case 0:
      return { kind: "append", count: 1 + random(300) };
    case 1:
      return { kind: "read", reader: random(readers), count: 1 + random(200) };
    case 2:
      return { kind: "reconnect", reader: random(readers) };
    default:
      return { kind: (["flush", "settle", "reopen"] as const)[random(3)] ?? "flush" };
  }
}

type Random = (below: number) => number;

/** Returns whole numbers from 0 to `below` - 1, the same in every run. */
function createRandom(seed: number): Random {
  let state = seed >>> 0;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

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
  for (const own of seen) deepEqual(own, range(1, written));
  for (const after of late) deepEqual(await collect(open.log, after), range(after + 1, written));
  await open.close();
}

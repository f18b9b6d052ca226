import fc from "fast-check";
import { expect, test } from "vitest";
import type { KitEvent } from "./event.ts";
import { type DeltaEvent, EventBuffer, toDelta } from "./event-buffer.ts";

let index = 0;
const at = { agent: "a", instance_id: "1", session: "s", timestamp: "2026-01-01T00:00:00.000Z" };
const delta = (text: string, turn = "t1"): KitEvent => {
  index += 1;
  return { ...at, type: "text_delta", index, operation_id: "op_1", turn_id: turn, text };
};
const idle = (): KitEvent => {
  index += 1;
  return { ...at, type: "idle", index, operation_id: "op_1" };
};
const whole = { deltaOf: toDelta, ofDelta: (event: KitEvent) => event };
const textOf = (events: readonly KitEvent[]): string =>
  events.map((event) => toDelta(event)?.text ?? "|").join("");

test("a late reader gets every text in order, with any deltas joined", async () => {
  const piece = fc.oneof(fc.constant(undefined), fc.tuple(fc.string(), fc.constantFrom("t1", "t2")));
  await fc.assert(
    fc.asyncProperty(fc.array(piece), fc.nat(5), fc.nat(20), async (pieces, joinBeyond, readAt) => {
      const buffer = new EventBuffer({ ...whole, joinBeyond });
      const sent: KitEvent[] = [];
      const read: KitEvent[] = [];
      for (const [number, given] of pieces.entries()) {
        const event = given === undefined ? idle() : delta(...given);
        sent.push(event);
        buffer.push(event);
        if (number === readAt) read.push(...((await buffer.take()) ?? []));
      }
      buffer.end();
      for await (const event of buffer) read.push(event);
      expect(textOf(read)).toBe(textOf(sent));
      expect(read.at(-1)?.index).toBe(sent.at(-1)?.index);
    }),
  );
});

test("deltas of other turns, and events between them, are never joined", async () => {
  const buffer = new EventBuffer({ ...whole, joinBeyond: 0 });
  for (const event of [delta("a"), delta("b"), delta("c", "t2"), idle(), delta("d", "t2")])
    buffer.push(event);
  expect((await buffer.take())?.map((event) => toDelta(event)?.text)).toEqual(["ab", "c", undefined, "d"]);
});

test("a buffer over its limit drops its items, ends, and reports it once", async () => {
  let overflows = 0;
  const buffer = new EventBuffer({
    ...whole,
    joinBeyond: 0,
    limit: { maxLength: 10, lengthOf: () => 4, onOverflow: () => (overflows += 1) },
  });
  for (const text of ["123", "4567", "890"]) buffer.push(delta(text));
  buffer.push(delta("late"));
  expect(await buffer.take()).toBeUndefined();
  expect(overflows).toBe(1);
});

test("a read event no longer counts against the limit", async () => {
  const limit = { maxLength: 4, lengthOf: () => 4, onOverflow: () => expect.unreachable() };
  const buffer = new EventBuffer({ ...whole, limit });
  for (const text of ["a", "b", "c"]) {
    buffer.push(idle());
    expect(await buffer.take()).toHaveLength(1);
    expect(text).toBeTruthy();
  }
});

test("readers get the remaining items, then the error; a waiting reader is woken", async () => {
  const buffer = new EventBuffer(whole);
  const waiting = buffer.take();
  buffer.push(idle());
  expect(await waiting).toHaveLength(1);
  buffer.push(idle());
  buffer.fail(new Error("gone"));
  expect(await buffer.take()).toHaveLength(1);
  await expect(buffer.take()).rejects.toThrow("gone");
});

test("two readers share the items: each gets one that the other does not", async () => {
  const buffer = new EventBuffer(whole);
  const readers = [buffer[Symbol.asyncIterator](), buffer[Symbol.asyncIterator]()];
  const reads = readers.map((reader) => reader.next());
  buffer.push(idle());
  buffer.push(idle());
  const items = await Promise.all(reads);
  expect(new Set(items.map(({ value }) => value?.index)).size).toBe(2);
});

test("a joined delta has the newest typed result of its parts", async () => {
  const buffer = new EventBuffer({ ...whole, joinBeyond: 0 });
  const typed = (partial_result: unknown): KitEvent => ({
    ...(delta("x") as DeltaEvent & { type: "text_delta" }),
    partial_result,
  });
  for (const event of [typed({ a: 1 }), typed({ a: 12 }), delta("y")]) buffer.push(event);
  expect(await buffer.take()).toMatchObject([{ text: "xxy", partial_result: { a: 12 } }]);
});

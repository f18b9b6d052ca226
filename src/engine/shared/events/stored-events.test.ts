import fc from "fast-check";
import { expect, test } from "vitest";
import type { KitEvent } from "../../../protocol/event.ts";
import { textDelta } from "../../../testing/sample-records.ts";
import { decodeEvents, eventAfter, joinDeltas, type StoredEvent, toBatches } from "./stored-events.ts";

const name = fc.constantFrom("a", "b");
const maybe = fc.option(name, { nil: undefined });
const common = {
  timestamp: fc.constantFrom("2026-11-21T10:00:00.000Z", "2026-11-21T10:00:00.001Z"),
  agent: maybe,
  instance_id: name,
  session: maybe,
  operation_id: name,
  run_id: maybe,
  turn_id: maybe,
  task_id: maybe,
};
const body = fc.oneof(
  fc.record({ type: fc.constantFrom("text_delta", "reasoning_delta"), text: fc.string({ maxLength: 9 }) }),
  fc.record({
    type: fc.constant("text_delta"),
    text: fc.string({ maxLength: 9 }),
    partial_result: fc.object(),
  }),
  fc.record({ type: fc.constant("idle") }),
  fc.record({ type: fc.constant("command_end"), command: fc.string(), exit_code: fc.constant(null) }),
  fc.record({ type: fc.constant("log"), message: fc.string(), data: fc.jsonValue() }),
);
/** Events of one stream; indexes rise, mostly by one. */
const stream = fc
  .array(fc.tuple(fc.record(common), body, fc.constantFrom(1, 1, 1, 7)), { minLength: 1, maxLength: 300 })
  .map((drawn): readonly KitEvent[] => {
    let index = 0;
    return drawn.map(([context, eventBody, step]) => {
      index += step;
      return JSON.parse(JSON.stringify({ ...eventBody, ...context, index }));
    });
  });

test("events of any content are read as they were written, in rows of bounded size", () => {
  const property = fc.property(stream, (events) => {
    const rows = toBatches(events);
    expect(rows.flatMap(({ data }) => decodeEvents(data))).toEqual(events);
    expect(rows.map(({ events: count }) => count).reduce((sum, count) => sum + count)).toBe(events.length);
    expect(rows.map(({ last }) => last)).toEqual(rows.map(({ last }) => last).toSorted((a, b) => a - b));
    for (const row of rows) expect(row.events).toBeLessThanOrEqual(128);
  });
  fc.assert(property);
});

test("events that are joined once or twice have the same content from every index on", () => {
  const property = fc.property(stream, fc.nat(300), (events, cut) => {
    const halves = [events.slice(0, cut), events.slice(cut)].flatMap((half) => joinDeltas(half, true).events);
    for (const stored of [halves, joinDeltas(halves).events, joinDeltas(halves, true).events]) {
      for (const { index: after } of [{ index: 0 }, ...events]) {
        const rest = stored.map((event) => eventAfter(event, after)).filter((event) => event !== undefined);
        expect(textsOf(rest)).toEqual(textsOf(events.filter(({ index }) => index > after)));
        const received = events.filter(({ index }) => index <= after);
        expect(partialOf([...received, ...rest])).toEqual(partialOf(events));
        expect(rest.every((event) => !("parts" in event))).toBe(true);
      }
    }
  });
  fc.assert(property, { numRuns: 30 });
});

/** The newest typed result. */
function partialOf(events: readonly KitEvent[]): unknown {
  return events
    .map((event) => (event.type === "text_delta" ? event.partial_result : undefined))
    .findLast((value) => value !== undefined);
}

test("a turn of a thousand deltas is one event of some hundred bytes more than its text", () => {
  const deltas = Array.from({ length: 1_000 }, (_, at) => delta(at + 1, "four"));
  const { events, open } = joinDeltas([...deltas, { ...delta(1_001, ""), type: "idle" } as KitEvent]);
  expect(events.map(({ index }) => index)).toEqual([1_000, 1_001]);
  expect(open).toBeUndefined();
  expect(toBatches(events)[0]?.data.length).toBeLessThan(4_000 + 2_000 + 500);
});

test("the arguments that a model writes are not stored", () => {
  const call = { tool_call_id: "call_1", tool: "look" };
  const written = { ...delta(2, "{"), ...call, type: "tool_args_delta" } as KitEvent;
  const end = { ...delta(4, ""), type: "idle" } as KitEvent;
  expect(joinDeltas([delta(1, "a"), written, { ...written, index: 3 }, end]).events).toEqual([
    delta(1, "a"),
    end,
  ]);
});

test("the last deltas are not joined, because more can follow", () => {
  const deltas = [delta(1, "a"), delta(2, "b")];
  expect(joinDeltas(deltas)).toEqual({ events: deltas, open: { from: 1, last: deltas[1], deltas: 2 } });
});

test("rows of complete events, which an earlier version wrote, are read", () => {
  const events = [delta(1, "a"), delta(2, "b")];
  expect(decodeEvents(JSON.stringify(events))).toEqual(events);
});

function delta(index: number, text: string): StoredEvent {
  return { ...textDelta(index), turn_id: "turn_1", text };
}

/** The content of events, independent of how deltas are split. */
function textsOf(events: readonly KitEvent[]): string {
  return events.map((event) => ("text" in event ? event.text : `|${event.type} ${event.index}|`)).join("");
}

import { expect, test } from "vitest";
import type { KitEvent } from "../../../src/protocol/event.ts";
import type { Reply } from "./campaign-clients.ts";
import type { Effect } from "./campaign-project.ts";
import { type Campaign, checkTold } from "./check-told.ts";

const dispatch = (number: number): Reply => ({ what: "dispatch", id: `d${number}`, line: "a", number });
const effect = (what: Effect["what"], name: string, more: Partial<Effect> = {}): Effect => ({
  what,
  name,
  key: name,
  at: 1,
  pid: 7,
  ...more,
});
const event = (index: number, type: string): KitEvent => ({ index, type, operation_id: "o" }) as KitEvent;

/** A campaign in which every promise was kept, with the parts of a test. */
function breachesOf(parts: Partial<Campaign>): readonly string[] {
  const kept: Campaign = {
    replies: [dispatch(1), dispatch(2)],
    effects: [effect("keep", "a#1"), effect("note", "a#2")],
    wakes: [],
    received: [{ instance: "a", events: [event(1, "idle"), event(2, "turn")] }],
    ended: new Map([
      ["d1", { status: "completed" }],
      ["d2", { status: "completed" }],
    ]),
    histories: new Map([["a", ["#1", "Done with #1.", "#2", "Done with #2."]]]),
    logs: new Map([["a", [event(1, "idle"), event(2, "turn")]]]),
  };
  return checkTold({ ...kept, ...parts }).map(({ breach }) => breach);
}

test("kept promises are no finding", () => {
  expect(breachesOf({})).toEqual([]);
});

test("accepted work that is unknown, open or failed is lost, stuck or dead", () => {
  const ends = (status: string) =>
    breachesOf({
      ended: new Map([
        ["d1", { status }],
        ["d2", { status: "completed" }],
      ]),
    });
  expect(ends("missing")).toEqual(["lost"]);
  expect(ends("waiting")).toEqual(["stuck"]);
  expect(ends("failed")).toEqual(["dead"]);
});

test("a call that must not be repeated is done twice if it began twice, another one only under another key", () => {
  expect(breachesOf({ effects: [effect("note", "a#2"), effect("note", "a#2")] })).toEqual(["twice"]);
  expect(breachesOf({ effects: [effect("keep", "a#1"), effect("keep", "a#1")] })).toEqual([]);
  expect(breachesOf({ effects: [effect("keep", "a#1"), effect("keep", "a#1", { key: "k" })] })).toEqual([
    "twice",
  ]);
});

test("a step begins before the steps after it, unless its process hung in it until then", () => {
  const steps = (at: number, wakes: Campaign["wakes"] = []) =>
    breachesOf({
      effects: [effect("step", "p before", { at }), effect("step", "p after", { at: 5 })],
      wakes,
    });
  expect(steps(4)).toEqual([]);
  expect(steps(6)).toEqual(["out of order"]);
  expect(steps(6, [{ pid: 7, at: 6 }])).toEqual([]);
  expect(steps(6, [{ pid: 8, at: 6 }])).toEqual(["out of order"]);
  expect(steps(9_000, [{ pid: 7, at: 6 }])).toEqual(["out of order"]);
});

test("a decision that was told is what happens", () => {
  const decisions = (approved: readonly boolean[], paid: boolean) =>
    breachesOf({
      replies: approved.map((one): Reply => ({ what: "decision", instance: "p", approved: one })),
      effects: paid ? [effect("pay", "p#1")] : [],
    });
  expect(decisions([true], true)).toEqual([]);
  expect(decisions([false], false)).toEqual([]);
  expect(decisions([false], true)).toEqual(["told otherwise"]);
  expect(decisions([true], false)).toEqual(["told otherwise"]);
  expect(decisions([true, false], true)).toEqual(["told otherwise"]);
});

test("an input is in its history once, in order, with its answer", () => {
  const history = (...texts: readonly string[]) => breachesOf({ histories: new Map([["a", texts]]) });
  expect(history("#1", "Done with #1.", "#2")).toEqual(["lost"]);
  expect(history("#1", "Done with #1.", "#1", "#2", "Done with #2.")).toEqual(["twice"]);
  expect(history("#2", "Done with #2.", "#1", "Done with #1.")).toEqual(["out of order"]);
});

test("a reader gets each index once, rising, and what the log has", () => {
  const received = (...events: readonly KitEvent[]) =>
    breachesOf({ received: [{ instance: "a", events: [...events] }] });
  expect(received(event(1, "idle"), event(2, "turn"), event(1, "idle"))).toEqual(["twice"]);
  expect(received(event(2, "turn"))).toEqual(["lost"]);
  expect(received(event(1, "turn"), event(2, "turn"))).toEqual(["twice"]);
});

test("a cancelled input is cancelled, and its effect does not begin afterwards", () => {
  const cancelled = (status: string, effects: readonly Effect[]) =>
    breachesOf({
      replies: [{ what: "cancel", id: "c", line: "c", number: 5, at: 10 }],
      effects,
      ended: new Map([["c", { status }]]),
    });
  expect(cancelled("cancelled", [])).toEqual([]);
  expect(cancelled("completed", [])).toEqual(["told otherwise"]);
  expect(cancelled("cancelled", [effect("keep", "c#5", { at: 5_000 })])).toEqual(["told otherwise"]);
});

test("a call that can be repeated is never refused", () => {
  expect(breachesOf({ replies: [{ what: "refused", call: "prompt", code: "c", message: "m" }] })).toEqual([
    "told otherwise",
  ]);
});

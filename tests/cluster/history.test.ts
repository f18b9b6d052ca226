import { expect, test } from "vitest";
import { checkHistory, type HistoryEntry } from "./harness/history.ts";

/** Two inputs of a line: the first is interrupted with its node, and repeated by another node, which then does the second. */
const sound: readonly HistoryEntry[] = [
  { what: "owned", at: 1, shard: 7, fence: 10 },
  { what: "accepted", at: 10, id: "a", line: "x" },
  { what: "accepted", at: 12, id: "b", line: "x" },
  { what: "claimed", at: 20, id: "a", line: "x", shard: 7, fence: 10, status: "running" },
  { what: "begin", at: 21, line: "x", node: 1, effect: "a" },
  { what: "killed", at: 30, node: 1 },
  { what: "owned", at: 200, shard: 7, fence: 11 },
  { what: "claimed", at: 210, id: "a", line: "x", shard: 7, fence: 11, status: "running" },
  { what: "begin", at: 211, line: "x", node: 2, effect: "a" },
  { what: "end", at: 240, line: "x", node: 2, effect: "a" },
  { what: "settled", at: 245, id: "a", line: "x", shard: 7, fence: 11, status: "completed" },
  { what: "claimed", at: 250, id: "b", line: "x", shard: 7, fence: 11, status: "running" },
  { what: "begin", at: 251, line: "x", node: 2, effect: "b" },
  { what: "end", at: 260, line: "x", node: 2, effect: "b" },
  { what: "settled", at: 262, id: "b", line: "x", shard: 7, fence: 11, status: "completed" },
];

/** The valid history with entries removed, changed or added. */
function broken(change: (entry: HistoryEntry) => readonly HistoryEntry[]): readonly string[] {
  return checkHistory(sound.flatMap(change)).map(({ kind }) => kind);
}

test("a history in which a node was killed and another did its work is valid", () => {
  expect(checkHistory(sound)).toEqual([]);
});

test("an input with a receipt that is never settled counts as lost", () => {
  expect(broken((entry) => (entry.what === "settled" && entry.id === "b" ? [] : [entry]))).toEqual(["lost"]);
});

test("an executed input that no sender knows is reported", () => {
  expect(broken((entry) => (entry.what === "accepted" && entry.id === "b" ? [] : [entry]))).toEqual([
    "unknown",
  ]);
});

test("an input that is settled twice is reported", () => {
  const twice = (entry: HistoryEntry) =>
    entry.what === "settled" && entry.id === "b" ? [entry, { ...entry, at: 270 }] : [entry];
  expect(broken(twice)).toEqual(["settled twice"]);
});

test("a settlement with the fence of a replaced owner is reported", () => {
  const stale = (entry: HistoryEntry) =>
    entry.what === "settled" && entry.id === "a" ? [{ ...entry, fence: 10 }] : [entry];
  expect(broken(stale)).toEqual(["settled by a stale owner"]);
});

test("an input that is claimed before the previous one of its session is settled is reported", () => {
  const early = (entry: HistoryEntry) =>
    entry.what === "claimed" && entry.id === "b" ? [{ ...entry, at: 230 }] : [entry];
  expect(broken(early)).toEqual(["out of order"]);
});

test("concurrent effects of two nodes in one session are an overlap, unless the first node was killed, frozen or had lost its lease", () => {
  const alive = (entry: HistoryEntry) => (entry.what === "killed" ? [] : [entry]);
  expect(new Set(broken(alive))).toEqual(new Set(["overlap"]));
  const loss: HistoryEntry = { what: "lost", at: 40, line: "x", node: 1, effect: "a" };
  expect(broken((entry) => (entry.what === "killed" ? [loss] : [entry]))).toEqual([]);
  expect(broken((entry) => (entry.what === "killed" ? [{ ...entry, what: "frozen" }] : [entry]))).toEqual([]);
});

test("a fence that does not increase and a claim with an old fence are reported", () => {
  const same = (entry: HistoryEntry) =>
    entry.what === "owned" && entry.fence === 11 ? [{ ...entry, fence: 10 }] : [entry];
  expect(broken(same)).toEqual(["fence fell"]);
  const old = (entry: HistoryEntry) =>
    (entry.what === "claimed" || entry.what === "settled") && entry.id === "b"
      ? [{ ...entry, fence: 9 }]
      : [entry];
  expect(broken(old)).toEqual(["fence fell"]);
});

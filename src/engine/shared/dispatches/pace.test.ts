import { expect, test } from "vitest";
import { createPace } from "./pace.ts";

test("a crowd of attempts begins a few at a time, in order, with turns of the event loop in between", async () => {
  const pace = createPace(3);
  const begun: number[] = [];
  const perTurn: number[] = [];
  const crowd = Array.from({ length: 8 }, (_, index) => pace().then(() => begun.push(index)));
  while (begun.length < crowd.length) {
    const before = begun.length;
    await new Promise(setImmediate);
    perTurn.push(begun.length - before);
  }
  expect(begun).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
  // The first three begin without a turn, the next three in the first turn.
  expect(perTurn).toEqual([6, 2]);
});

test("after a quiet turn the full number begins at once", async () => {
  const pace = createPace(2);
  for (let time = 0; time < 3; time += 1) {
    const begun: number[] = [];
    const both = Promise.all([pace().then(() => begun.push(1)), pace().then(() => begun.push(2))]);
    queueMicrotask(() => queueMicrotask(() => expect(begun).toEqual([1, 2])));
    await both;
    await new Promise(setImmediate);
    await new Promise(setImmediate);
  }
});

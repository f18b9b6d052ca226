import { setImmediate as nextTurn } from "node:timers/promises";
import { expect, test } from "vitest";
import { armLater, disarm, type Timed } from "./late-timers.ts";

function createWork() {
  const work = {
    timers: 0,
    earlier: undefined as Timed | undefined,
    later: undefined as Timed | undefined,
    arm(): void {
      work.timers += 1;
    },
  };
  return work;
}

test("work that has not ended by the next turn of the event loop gets its timer, once", async () => {
  const work = createWork();
  armLater(work);
  await Promise.resolve();
  expect(work.timers).toBe(0);
  await nextTurn();
  await nextTurn();
  expect(work.timers).toBe(1);
});

test("work that ends before gets none, whichever other work there is", async () => {
  const works = Array.from({ length: 4 }, createWork);
  for (const work of works) armLater(work);
  for (const at of [1, 3]) disarm(works[at] ?? createWork());
  await nextTurn();
  expect(works.map(({ timers }) => timers)).toEqual([1, 0, 1, 0]);
});

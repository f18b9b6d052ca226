import { expect, test } from "vitest";
import { createManualClock } from "../../../testing/manual-clock.ts";
import { JobQueue } from "./job-queue.ts";

test("the queue of a late process begins no job, and the pause changes no hint to senders", async () => {
  const clock = createManualClock();
  let isLate = false;
  const queue = new JobQueue({ clock, slots: 1, isLate: () => isLate });
  const ends: (() => void)[] = [];
  for (let number = 0; number < 20; number += 1)
    queue.join({
      id: `w${number}`,
      line: `l${number}`,
      owner: "o",
      begin: () => new Promise((resolve) => ends.push(() => resolve({ ended: true }))),
    });
  queue.open();
  await clock.advance(5_000);
  isLate = true;
  ends.pop()?.();
  await clock.advance(5_000);
  expect(ends).toEqual([]);
  const late = queue.retryDelay({ owner: "o" }) ?? 0;
  isLate = false;
  await clock.advance(100);
  expect(ends).toHaveLength(1);
  expect(late).toBe(5_000);
});

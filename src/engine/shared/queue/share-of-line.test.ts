import { expect, test } from "vitest";
import { systemClock } from "../../../base/clock.ts";
import { KitError } from "../../../base/kit-error.ts";
import { defaultLimits } from "../engine-base.ts";
import { JobQueue } from "./job-queue.ts";
import { checkShare } from "./share-of-line.ts";

const queue = new JobQueue({ clock: systemClock, slots: 1 });

/** The error for one more input, if `ofOwner` of `all` inputs in a line of ten places belong to the owner. */
function faultOf(
  ofOwner: number,
  all: number,
  { owner = "principal/ann", share }: { readonly owner?: string; readonly share?: number } = {},
): KitError | undefined {
  const limits = {
    ...defaultLimits,
    waiting: 10,
    ...(share === undefined ? {} : { waitingPerOwner: share }),
  };
  try {
    checkShare({ all, ofOwner }, owner, { limits, queue, jobs: "inputs" });
    return undefined;
  } catch (error) {
    if (error instanceof KitError) return error;
    throw error;
  }
}

test("an owner can use as many places as it leaves free", () => {
  const refused = (ofOwner: number, all: number): boolean => faultOf(ofOwner, all) !== undefined;
  expect([refused(4, 4), refused(5, 5)]).toEqual([false, true]);
  expect([refused(2, 6), refused(3, 7), refused(4, 7)]).toEqual([false, true, true]);
  // An owner without waiting work gets the last place.
  expect([refused(0, 9), refused(1, 9)]).toEqual([false, true]);
});

test("a configured share replaces this rule, and is at least one place", () => {
  expect([faultOf(8, 8, { share: 9 }), faultOf(0, 9, { share: 0 })]).toEqual([undefined, undefined]);
  expect(faultOf(2, 2, { share: 2 })?.code).toBe("too_many_requests");
});

test("a full queue is `unavailable`, and a used-up share names its owner and when to retry", () => {
  expect(faultOf(0, 10)).toMatchObject({
    code: "unavailable",
    message: "Too many inputs are waiting. Try again later.",
    meta: { scope: "engine", retry_after_s: expect.any(Number) },
  });
  expect(faultOf(5, 5)).toMatchObject({
    code: "too_many_requests",
    message: "You have 5 waiting inputs, the most that one principal may have.",
    meta: { scope: "principal", waiting: 5, retry_after_s: expect.any(Number) },
  });
  expect(faultOf(5, 5, { owner: "instance/echo/1" })).toMatchObject({
    message: "This instance has 5 waiting inputs, the most that one instance may have.",
    meta: { scope: "instance" },
  });
});

import { getEventListeners } from "node:events";
import { expect, test } from "vitest";
import { createManualClock } from "../testing/manual-clock.ts";
import { endsWithin, linkSignals, onAbort, raceSignal, withDeadline } from "./abort.ts";

const never = new Promise<never>(() => undefined);

function listenersOf(signal: AbortSignal): number {
  return getEventListeners(signal, "abort").length;
}

test("a listener is called once with the signal's reason, also if the signal has already fired", () => {
  const controller = new AbortController();
  const received: unknown[] = [];
  onAbort(controller.signal, (reason) => received.push(reason));
  const stop = onAbort(controller.signal, () => received.push("removed"));
  stop();
  controller.abort("now");
  onAbort(controller.signal, (reason) => received.push(`late: ${reason}`));
  onAbort(undefined, () => received.push("none"))();
  expect(received).toEqual(["now", "late: now"]);
});

test("a race with a signal settles with the first of the two, and removes its listener", async () => {
  const controller = new AbortController();
  expect(await raceSignal(Promise.resolve(1), controller.signal)).toBe(1);
  await expect(raceSignal(Promise.reject(new Error("own")), controller.signal)).rejects.toThrow("own");
  expect(listenersOf(controller.signal)).toBe(0);
  const raced = raceSignal(never, controller.signal);
  controller.abort(new Error("stopped"));
  await expect(raced).rejects.toThrow("stopped");
  await expect(raceSignal(Promise.reject(new Error("own")), controller.signal)).rejects.toThrow("stopped");
  expect(await raceSignal(Promise.resolve(2), undefined)).toBe(2);
});

test("a linked signal fires with the first source that fires, and with its reason", () => {
  const [one, other] = [new AbortController(), new AbortController()];
  const { signal } = linkSignals([one.signal, undefined, other.signal]);
  other.abort("other");
  one.abort("one");
  expect(signal.reason).toBe("other");
  expect(linkSignals([one.signal]).signal.reason).toBe("one");
});

test("an unlinked signal does not fire with its sources, and can still be fired itself", () => {
  const source = new AbortController();
  const link = linkSignals([source.signal]);
  link.unlink();
  source.abort("late");
  expect(link.signal.aborted).toBe(false);
  link.abort("own");
  expect(link.signal.reason).toBe("own");
});

test("a source has one listener, however many signals were linked to it", () => {
  const source = new AbortController();
  for (let count = 0; count < 100; count += 1) linkSignals([source.signal]).unlink();
  expect(listenersOf(source.signal)).toBe(1);
});

test("work that takes too long is rejected at its deadline, and its signal fires", async () => {
  const clock = createManualClock();
  const reasons: unknown[] = [];
  const work = withDeadline(
    (signal) => {
      onAbort(signal, (reason) => reasons.push(reason));
      return never;
    },
    { ms: 100, clock, onTimeout: () => new Error("too slow") },
  );
  work.catch(() => undefined);
  await clock.advance(99);
  expect(reasons).toEqual([]);
  await clock.advance(1);
  await expect(work).rejects.toThrow("too slow");
  expect(reasons).toEqual([new Error("too slow")]);
});

test("the reason of a signal wins over the error of the aborted work", async () => {
  const controller = new AbortController();
  const work = withDeadline(
    (signal) => new Promise((_, reject) => onAbort(signal, () => reject(new Error("of the work")))),
    { signal: controller.signal, onTimeout: () => new Error("never") },
  );
  controller.abort(new Error("of the caller"));
  await expect(work).rejects.toThrow("of the caller");
});

test("work that ends in time keeps its outcome, and its timer is cleared", async () => {
  const clock = createManualClock();
  const inTime = { ms: 100, clock, onTimeout: () => new Error("too slow") };
  expect(await withDeadline(() => "now", inTime)).toBe("now");
  expect(await withDeadline(Promise.resolve("soon"), inTime)).toBe("soon");
  const thrown = withDeadline(() => {
    throw new Error("at once");
  }, inTime);
  await expect(thrown).rejects.toThrow("at once");
  // A timer of Node would keep this process for a month.
  expect(await withDeadline(() => 1, { ms: 2 ** 31, onTimeout: () => new Error("too slow") })).toBe(1);
});

test("work does not start after its caller has aborted, and rejections of work in progress are handled", async () => {
  const limit = { ms: 100, signal: AbortSignal.abort(new Error("gone")), onTimeout: () => new Error() };
  let begun = false;
  const work = withDeadline(() => {
    begun = true;
  }, limit);
  await expect(work).rejects.toThrow("gone");
  expect(begun).toBe(false);
  await expect(withDeadline(Promise.reject(new Error("own")), limit)).rejects.toThrow("gone");
});

test("endsWithin resolves as soon as the work ends", async () => {
  const clock = createManualClock();
  expect(await endsWithin(100, Promise.resolve(), clock)).toBe(true);
  expect(await endsWithin(100, Promise.reject(new Error("failed")), clock)).toBe(true);
  const late = endsWithin(100, never, clock);
  await clock.advance(100);
  expect(await late).toBe(false);
});

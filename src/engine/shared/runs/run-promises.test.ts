import { setImmediate } from "node:timers/promises";
import fc from "fast-check";
import { expect, test } from "vitest";
import { createDeliveries } from "./run-promises.ts";

const never = () => () => undefined;

test("ends are delivered in order, whatever order they are added in", async () => {
  await fc.assert(
    fc.asyncProperty(fc.shuffledSubarray([1, 2, 3, 4, 5, 6, 7, 8], { minLength: 8 }), async (order) => {
      const reported: number[] = [];
      const idle = Promise.withResolvers<void>();
      const deliveries = createDeliveries({
        whenStalled: never,
        onIdle: () => (reported.length === order.length ? idle.resolve() : undefined),
      });
      for (const [index, endedAs] of order.entries()) {
        deliveries.add(endedAs, () => reported.push(endedAs));
        if (index % 3 === 0) await setImmediate();
      }
      await idle.promise;
      expect(reported).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
      expect(deliveries.busy).toBe(false);
    }),
  );
});

test("all code that awaits one end runs before the next is delivered", async () => {
  const order: string[] = [];
  const done = Promise.withResolvers<void>();
  const deliveries = createDeliveries({ whenStalled: never, onIdle: () => undefined });
  const follow = async (name: string, ticks: number): Promise<void> => {
    for (let tick = 0; tick < ticks; tick += 1) await Promise.resolve();
    order.push(name);
    if (name === "second") done.resolve();
  };
  deliveries.add(1, () => void follow("first", 50));
  deliveries.add(2, () => void follow("second", 0));
  await done.promise;
  expect(order).toEqual(["first", "second"]);
});

test("an outcome that the workflow does not request delays later outcomes only for a limited time", async () => {
  const reported: number[] = [];
  let giveUp: () => void = () => undefined;
  const deliveries = createDeliveries({
    whenStalled: (callback) => {
      giveUp = callback;
      return () => undefined;
    },
    onIdle: () => undefined,
  });
  deliveries.add(3, () => reported.push(3));
  deliveries.add(2, () => reported.push(2));
  await setImmediate();
  expect(reported).toEqual([]);
  giveUp();
  expect(reported).toEqual([2]);
  deliveries.add(1, () => reported.push(1));
  await setImmediate();
  await setImmediate();
  expect(reported).toEqual([2, 1, 3]);
});

test("nothing is delivered once it is closed", async () => {
  const deliveries = createDeliveries({ whenStalled: never, onIdle: () => undefined });
  deliveries.add(1, () => {
    throw new Error("told");
  });
  deliveries.close();
  deliveries.add(2, () => undefined);
  await setImmediate();
  expect(deliveries.busy).toBe(false);
});

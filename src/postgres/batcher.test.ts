import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { Batcher } from "./batcher.ts";

const spacingMs = 100;

test("calls during a statement share the next one", async () => {
  const { batcher, sizes } = counting();
  const first = ask(batcher, 10);
  await first;
  const second = ask(batcher, 5);
  await sleep(1);
  await Promise.all([second, ask(batcher, 5)]);
  expect(sizes).toEqual([10, 10]);
});

test("after a statement with few items the next one begins at once", async () => {
  const { batcher, sizes } = counting();
  const began = performance.now();
  for (let turn = 0; turn < 20; turn += 1) await ask(batcher, 1);
  expect(sizes).toHaveLength(20);
  expect(performance.now() - began).toBeLessThan(20 * spacingMs);
});

test("a refused item rejects only its caller", async () => {
  const batcher = new Batcher<number, number>(async (all) =>
    all.map((one) => (one === 2 ? new Error("two") : one)),
  );
  const ends = await Promise.allSettled([batcher.add(1), batcher.add(2), batcher.add(3)]);
  expect(ends.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
});

function counting() {
  const sizes: number[] = [];
  const batcher = new Batcher<number, number>(
    async (all) => {
      sizes.push(all.length);
      return [...all];
    },
    { spacingMs },
  );
  return { batcher, sizes };
}

async function ask(batcher: Batcher<number, number>, count: number): Promise<void> {
  await Promise.all(Array.from({ length: count }, (_, one) => batcher.add(one)));
}

import { mkdtempSync } from "node:fs";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { type Clock, systemClock } from "../../base/clock.ts";
import { testFolder } from "../../testing/test-folder.ts";
import type { Engine } from "../contract.ts";
import { createEmbeddedEngine } from "./create-embedded-engine.ts";

const root = testFolder(afterAll);

const handlers = { dispatch: async () => undefined, run: async () => undefined };

async function open(folder: string | undefined, clock?: Clock): Promise<Engine> {
  const engine = createEmbeddedEngine({
    folder,
    clock,
  });
  await engine.start(handlers);
  return engine;
}

test.each([undefined, mkdtempSync(join(root, "engine-"))])(
  "work with the same key is done once (%s)",
  async (folder) => {
    const engine = await open(folder);
    let count = 0;
    const held = Promise.withResolvers<void>();
    const work = async (): Promise<unknown> => {
      count += 1;
      await held.promise;
      return { count };
    };
    const meanwhile = [engine.once("a", work), engine.once("a", work), engine.once("a", work)];
    held.resolve();
    expect(await Promise.all(meanwhile)).toEqual([{ count: 1 }, { count: 1 }, { count: 1 }]);
    expect(await engine.once("a", work)).toEqual({ count: 1 });
    expect(await engine.once("b", work)).toEqual({ count: 2 });
    await engine.drain();
    await expect(engine.once("a", work)).rejects.toMatchObject({ code: "unavailable" });
  },
);

test("a failed attempt is repeated for each later caller", async () => {
  const engine = await open(undefined);
  let count = 0;
  const work = async (): Promise<unknown> => {
    count += 1;
    if (count === 1) throw new Error("not yet");
    return count;
  };
  const both = await Promise.allSettled([engine.once("a", work), engine.once("a", work)]);
  expect(both.map(({ status }) => status)).toEqual(["rejected", "rejected"]);
  expect([await engine.once("a", work), await engine.once("a", work)]).toEqual([2, 2]);
  await engine.drain();
});

test("an outcome survives the process, also a large one, and any text can be a key", async () => {
  const folder = mkdtempSync(join(root, "engine-"));
  const large = { text: "x".repeat(300_000) };
  const keys = ["__proto__", "constructor", "a", "A", "", "a\nb"];
  const before = await open(folder);
  for (const key of keys) await before.once(key, async () => ({ ...large, key }));
  await before.drain();
  const after = await open(folder);
  for (const key of keys) {
    expect(await after.once(key, () => Promise.reject(new Error("again")))).toEqual({ ...large, key });
  }
  await after.drain();
});

test("work of another process is unavailable, and is resumed when that process is gone", async () => {
  const folder = mkdtempSync(join(root, "engine-"));
  let ahead = 0;
  const clock: Clock = {
    now: () => Date.now() + ahead,
    elapsed: () => performance.now() + ahead,
    sleep: systemClock.sleep,
  };
  const engine = await open(folder);
  const other = createEmbeddedEngine({ folder, clock });
  const release = Promise.withResolvers<string>();
  const first = engine.once("a", () => release.promise);
  await expect
    .poll(() => other.once("a", async () => "second").catch(({ code }) => code))
    .toBe("unavailable");
  ahead = 60_000;
  expect(await other.once("a", async () => "second")).toBe("second");
  release.resolve("first");
  // The process that was taken for dead gets the outcome of the other one.
  expect(["first", "second"]).toContain(await first);
  expect(await engine.once("a", async () => "third")).toBe("second");
  await Promise.all([engine.drain(), other.drain()]);
});

test("an outcome is removed with other ended work", async () => {
  let ahead = 0;
  let minute = Promise.withResolvers<void>();
  const clock: Clock = {
    now: () => Date.now() + ahead,
    elapsed: () => performance.now() + ahead,
    sleep: (ms, signal) =>
      ms === 60_000
        ? Promise.race([minute.promise, systemClock.sleep(3_600_000, signal)])
        : systemClock.sleep(ms, signal),
  };
  const engine = createEmbeddedEngine({ clock, limits: { leaseMs: 1e12 } });
  await engine.start(handlers);
  await engine.once("a", async () => 1);
  ahead = 6 * 24 * 3_600_000;
  expect(await engine.once("a", async () => 2)).toBe(1);
  ahead = 8 * 24 * 3_600_000;
  const passMinute = async (): Promise<unknown> => {
    minute.resolve();
    minute = Promise.withResolvers();
    await new Promise(setImmediate);
    return await engine.once("a", async () => 2);
  };
  await expect.poll(passMinute).toBe(2);
  await engine.drain();
});

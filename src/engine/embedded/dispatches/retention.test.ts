import { expect, test } from "vitest";
import { type Clock, systemClock } from "../../../base/clock.ts";
import { createEmbeddedEngine } from "../create-embedded-engine.ts";

const day = 24 * 3_600_000;
const key = { agent: "worker", instance_id: "i", session: "default" };

/** A clock that can be put forward, whose minutes pass when the test says so. */
function createTestClock(): Clock & { forward(ms: number): void; passMinute(): void } {
  let offset = 0;
  let minute = Promise.withResolvers<void>();
  return {
    now: () => Date.now() + offset,
    elapsed: () => performance.now() + offset,
    sleep: (ms, signal) =>
      ms === 60_000
        ? Promise.race([minute.promise, systemClock.sleep(3_600_000, signal)])
        : systemClock.sleep(ms, signal),
    forward(ms) {
      offset += ms;
    },
    passMinute() {
      minute.resolve();
      minute = Promise.withResolvers();
    },
  };
}

test("ended dispatches are removed after seven days, in batches; waiting ones stay, and keys are free again", async () => {
  const clock = createTestClock();
  const engine = createEmbeddedEngine({ clock, limits: { waitingPerSession: 2_000, leaseMs: 100 * day } });
  let isHeld = false;
  await engine.start({
    run: async () => undefined,
    dispatch: async ({ signal }, { input }) => {
      if (input === "broken") throw new Error("broken");
      if (isHeld) await new Promise((_, reject) => signal.addEventListener("abort", reject, { once: true }));
    },
  });
  const old = { ...key, input: "broken", idempotency_key: "k" };
  const broken = await engine.admit(old);
  const receipts = await Promise.all(
    Array.from({ length: 1_200 }, (_, input) => engine.admit({ ...key, input })),
  );
  await Promise.all(receipts.map(({ dispatch_id }) => engine.awaitDispatch(dispatch_id)));
  isHeld = true;
  await engine.admit({ ...key, input: "runs" });
  await engine.admit({ ...key, input: "waits" });

  clock.forward(6 * day);
  clock.passMinute();
  await new Promise(setImmediate);
  expect((await engine.getDispatch(broken.dispatch_id))?.status).toBe("failed");
  clock.forward(1.1 * day);
  while ((await engine.listDispatches({ limit: 1_000 })).items.length > 2) {
    clock.passMinute();
    await new Promise(setImmediate);
  }
  const { items } = await engine.listDispatches();
  expect(items.map(({ input }) => input)).toEqual(["waits", "runs"]);
  expect((await engine.admit(old)).dispatch_id).not.toBe(broken.dispatch_id);
  await engine.drain({ timeoutMs: 0 });
});

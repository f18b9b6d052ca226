import { expect, test } from "vitest";
import { type Clock, systemClock } from "../../../base/clock.ts";
import { createId } from "../../../base/id.ts";
import { createEmbeddedEngine } from "../create-embedded-engine.ts";

const day = 24 * 3_600_000;
const key = { agent: "worker", instance_id: "i", session: "default" };

/** A clock whose minutes the test advances. */
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

test("ended dispatches are removed after seven days, in batches; waiting ones stay, and keys can be used again", async () => {
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

test("deliveries are removed with ended work; the newest of each webhook stay, and unverified ones displace only unverified ones", async () => {
  const clock = createTestClock();
  const engine = createEmbeddedEngine({ clock, limits: { deliveriesPerWebhook: 1_000, leaseMs: 100 * day } });
  const log = engine.deliveries;
  await engine.start({ run: async () => undefined, dispatch: async () => undefined });
  const record = (webhook: string, delivery_id?: string) =>
    log?.record({
      record_id: createId("delivery"),
      webhook,
      received_at: new Date().toISOString(),
      outcome: delivery_id === undefined ? "refused" : "accepted",
      bytes: 1,
      delivery_id,
      dispatches: [],
      runs: [],
    });
  const sent = (count: number, webhook: string, id: (number: number) => string | undefined) =>
    Promise.all(Array.from({ length: count }, (_, number) => record(webhook, id(number))));
  await sent(3, "quiet", (number) => `quiet ${number}`);
  await sent(900, "loud", (number) => `loud ${number}`);
  for (let round = 0; round < 3; round += 1) {
    await sent(900, "loud", () => undefined);
    await log?.list({ limit: 1 });
  }
  const count = async (webhook: string, outcome: "accepted" | "refused"): Promise<number> => {
    let foundCount = 0;
    let cursor: string | undefined;
    do {
      const page = await log?.list({ webhook, outcome, limit: 1_000, cursor });
      foundCount += page?.items.length ?? 0;
      cursor = page?.next_cursor;
    } while (cursor !== undefined);
    return foundCount;
  };
  const pruned = async (outcome: "accepted" | "refused", expected: number): Promise<void> => {
    for (let turn = 0; turn < 1_000 && (await count("loud", outcome)) !== expected; turn += 1) {
      clock.passMinute();
      await new Promise(setImmediate);
    }
    expect(await count("loud", outcome)).toBe(expected);
  };
  await pruned("refused", 100);
  expect([await count("loud", "accepted"), await count("quiet", "accepted")]).toEqual([900, 3]);
  await sent(1_100, "loud", (number) => `again ${number}`);
  // The oldest unverified requests were removed first.
  await pruned("refused", 0);
  await pruned("accepted", 1_100);
  expect(await count("quiet", "accepted")).toBe(3);
  clock.forward(7.1 * day);
  await pruned("accepted", 0);
  expect((await log?.list())?.items).toEqual([]);
  await engine.drain({ timeoutMs: 0 });
});

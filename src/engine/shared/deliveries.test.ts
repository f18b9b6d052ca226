import { expect, test } from "vitest";
import { createId } from "../../base/id.ts";
import type { Delivery } from "../../protocol/dispatch.ts";
import { storeUnavailable } from "../../protocol/error-code.ts";
import { createManualClock, type ManualClock } from "../../testing/manual-clock.ts";
import { createEmbeddedEngine } from "../embedded/create-embedded-engine.ts";
import { Deliveries, type DeliveryRow, type DeliveryStore } from "./deliveries.ts";
import type { EngineBase } from "./engine-base.ts";

function delivery(some: Partial<Delivery> = {}): Delivery {
  return {
    record_id: createId("delivery"),
    webhook: "github",
    received_at: new Date().toISOString(),
    outcome: "accepted",
    bytes: 1,
    delivery_id: "msg",
    dispatches: [],
    runs: [],
    ...some,
  };
}

/** A store that can be unavailable. */
class Rows implements DeliveryStore {
  readonly rows = new Map<string, DeliveryRow>();
  readonly sizes: number[] = [];
  error: Error | undefined;

  async write(rows: readonly DeliveryRow[]): Promise<void> {
    this.sizes.push(rows.length);
    if (this.error !== undefined) throw this.error;
    for (const row of rows) this.rows.set(row.record_id, row);
  }

  async list() {
    if (this.error !== undefined) throw this.error;
    return { items: [] };
  }
}

function create(): { readonly rows: Rows; readonly log: Deliveries; readonly clock: ManualClock } {
  const rows = new Rows();
  const clock = createManualClock();
  return { rows, clock, log: new Deliveries({ time: clock } as unknown as EngineBase, rows) };
}

const outage = storeUnavailable({ store: "The engine's store", reason: "it is away", hint: "Wait." });

test("records of unverified requests share a write a moment later; a verified one is written at once, with all waiting ones", async () => {
  const { rows, log, clock } = create();
  const refuse = () => log.record(delivery({ outcome: "refused", delivery_id: undefined }));
  for (let count = 0; count < 30; count += 1) await refuse();
  expect(rows.sizes).toEqual([]);
  await clock.advance(250);
  expect(rows.sizes).toEqual([30]);
  for (let count = 0; count < 5; count += 1) await refuse();
  await log.record(delivery());
  expect(rows.sizes).toEqual([30, 6]);
  await clock.advance(1_000);
  expect(rows.sizes).toEqual([30, 6]);
  for (let count = 0; count < 5_000; count += 1) await refuse();
  await clock.advance(250);
  expect(rows.sizes).toEqual([30, 6, 1_000]);
});

test("while the store is unavailable no record is refused or delays its caller; the newest are written once it is back", async () => {
  const { rows, log, clock } = create();
  rows.error = outage;
  const first = delivery();
  await log.record(first);
  await log.record({ ...first, outcome: "failed" });
  const last = Array.from({ length: 1_500 }, () => delivery());
  for (const one of last) await log.record(one);
  expect(rows.sizes).toEqual([1]);
  await expect(log.list()).rejects.toBe(outage);
  await clock.advance(2_000);
  rows.error = undefined;
  await clock.advance(2_000);
  expect([...rows.rows.keys()]).toEqual(last.slice(-1_000).map(({ record_id }) => record_id));
  await log.record(first);
  expect(rows.sizes.at(-1)).toBe(1);
});

test("a record that the store refuses is dropped, and does not delay others", async () => {
  const { rows, log } = create();
  rows.error = new Error("This row is refused.");
  await log.record(delivery());
  rows.error = undefined;
  const next = delivery();
  await log.record(next);
  expect([...rows.rows.keys()]).toEqual([next.record_id]);
});

test("on one machine a record is written in the transaction of its work", async () => {
  let commits = 0;
  const engine = createEmbeddedEngine({ onCommit: () => (commits += 1) });
  const key = { agent: "worker", instance_id: "i", session: "default" };
  const written = engine.deliveries?.record(delivery({ outcome: "open" }));
  await engine.admit({ ...key, input: 1 });
  await written;
  expect(commits).toBe(1);
  await engine.once("key", async () => {
    void engine.deliveries?.record(delivery());
    return { status: 202 };
  });
  expect(commits).toBe(3);
  await engine.drain({ timeoutMs: 0 });
});

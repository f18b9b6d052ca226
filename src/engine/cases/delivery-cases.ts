import assert from "node:assert/strict";
import type { ContractCase } from "../../base/contract-case.ts";
import { createId } from "../../base/id.ts";
import type { Delivery } from "../../protocol/dispatch.ts";
import type { DeliveryRecords, Engine } from "../contract.ts";
import { type EngineCheck, type EngineSubject, sessionKey, toCases } from "./engine-check.ts";

/** The promises about records of deliveries. An engine without such records passes. */
export function deliveryCases(subject: EngineSubject): readonly ContractCase[] {
  return toCases(subject, { fresh, lasting });
}

function delivery(some: Partial<Delivery> = {}): Delivery {
  return {
    record_id: createId("delivery"),
    webhook: "github",
    received_at: new Date().toISOString(),
    outcome: "accepted",
    status: 202,
    duration_ms: 3,
    bytes: 17,
    delivery_id: "msg_1",
    dispatches: [],
    runs: [],
    ...some,
  };
}

async function listed(
  log: DeliveryRecords,
  filter: Parameters<DeliveryRecords["list"]>[0] = {},
): Promise<readonly string[]> {
  return (await log.list(filter)).items.map(({ record_id }) => record_id);
}

const fresh: Readonly<Record<string, EngineCheck>> = {
  "deliveries are listed newest first, filtered, in pages": async (tools) => {
    const { deliveries: log } = await tools.create();
    if (log === undefined) return;
    assert.deepEqual((await log.list()).items, []);
    const kinds = [
      { outcome: "accepted", delivery_id: "a" },
      { outcome: "refused", status: 401, webhook: "slack", delivery_id: undefined },
      { outcome: "failed", status: 500, webhook: "slack", delivery_id: "a" },
      { outcome: "open", status: undefined, delivery_id: "b" },
    ] as const;
    const all = Array.from({ length: 12 }, (_, index) => delivery(kinds[index % 4]));
    for (const record of all) await log.record(record);
    const newest = all.toReversed();
    const idsOf = (test: (one: Delivery) => boolean) => newest.filter(test).map(({ record_id }) => record_id);
    assert.deepEqual((await log.list()).items, JSON.parse(JSON.stringify(newest)));
    assert.deepEqual(
      await listed(log, { webhook: "slack" }),
      idsOf(({ webhook }) => webhook === "slack"),
    );
    for (const { outcome } of kinds)
      assert.deepEqual(
        await listed(log, { outcome }),
        idsOf((one) => one.outcome === outcome),
      );
    assert.deepEqual(
      await listed(log, { delivery_id: "a" }),
      idsOf((one) => one.delivery_id === "a"),
    );
    assert.deepEqual(
      await listed(log, { webhook: "slack", outcome: "failed", delivery_id: "a" }),
      idsOf(({ outcome }) => outcome === "failed"),
    );
    assert.deepEqual(await listed(log, { webhook: "slack", outcome: "accepted" }), []);
    for (const filter of [{}, { webhook: "slack" }, { outcome: "refused" }] as const) {
      const found: string[] = [];
      let cursor: string | undefined;
      do {
        const page = await log.list({ ...filter, limit: 2, cursor });
        assert.ok(page.items.length <= 2);
        found.push(...page.items.map(({ record_id }) => record_id));
        cursor = page.next_cursor;
      } while (cursor !== undefined);
      assert.deepEqual(found, await listed(log, filter));
    }
    for (const limit of [0, 1_001, 1.5])
      await assert.rejects(log.list({ limit }), { code: "invalid_request" });
    for (const cursor of ["", "~", "delivery_", "' OR 1"])
      await assert.rejects(log.list({ cursor }), { code: "invalid_request" });
  },

  "an open delivery ends once, and never becomes open again": async (tools) => {
    const { deliveries: log } = await tools.create();
    if (log === undefined) return;
    const ended = delivery({ dispatches: ["dispatch_1"], runs: ["run_1"], node: "node_1" });
    const open = { ...ended, outcome: "open", status: undefined, dispatches: [] } as const;
    await log.record(open);
    assert.deepEqual(await listed(log, { outcome: "open" }), [ended.record_id]);
    await log.record(ended);
    await log.record(open);
    assert.deepEqual((await log.list()).items, [ended]);
    assert.deepEqual(await listed(log, { outcome: "open" }), []);
    // The reply was changed after the first record.
    await log.record({ ...ended, outcome: "failed", status: 503 });
    assert.deepEqual(await listed(log, { outcome: "failed" }), [ended.record_id]);
    assert.equal((await log.list()).items.length, 1);
    const both = delivery({ delivery_id: "msg_2" });
    await Promise.all([log.record({ ...both, outcome: "open" }), log.record(both)]);
    assert.deepEqual(await listed(log, { delivery_id: "msg_2", outcome: "accepted" }), [both.record_id]);
  },

  "a delivery stores any text of its sender, and large deliveries come in smaller pages": async (tools) => {
    const { deliveries: log } = await tools.create();
    if (log === undefined) return;
    const odd = delivery({ delivery_id: "\0 \ud800 ' OR 1; -- \u202e 💥 é", webhook: "%_\\" });
    await log.record(odd);
    assert.deepEqual(await listed(log, { delivery_id: odd.delivery_id, webhook: "%_\\" }), [odd.record_id]);
    assert.equal((await log.list()).items[0]?.delivery_id, odd.delivery_id);
    assert.deepEqual(await listed(log, { webhook: "%" }), []);
    const error = { type: "invalid_request", message: "x".repeat(3_000_000) };
    for (let index = 0; index < 4; index += 1) await log.record(delivery({ outcome: "refused", error }));
    const page = await log.list();
    assert.ok(page.items.length > 0 && page.items.length < 4 && page.next_cursor !== undefined);
  },
};

const lasting: Readonly<Record<string, EngineCheck>> = {
  "deliveries survive a restart, also unverified ones": async (tools) => {
    const engine = await tools.create();
    if (engine.deliveries === undefined) return;
    const verified = delivery();
    const refused = delivery({ outcome: "refused", status: 401, delivery_id: undefined });
    await engine.deliveries.record(verified);
    await engine.deliveries.record(refused);
    await engine.drain({ timeoutMs: 0 });
    const again = await tools.reopen();
    assert.deepEqual(await logOf(again), [refused.record_id, verified.record_id]);
  },

  "an open delivery is written together with its work, and each process lists it": async (tools) => {
    const engine = await tools.create();
    if (engine.deliveries === undefined) return;
    const one = delivery({ outcome: "open", status: undefined });
    await Promise.all([engine.deliveries.record(one), engine.admit({ ...sessionKey, input: "hello" })]);
    const other = await tools.reopen();
    assert.deepEqual(await logOf(other), [one.record_id]);
    assert.equal((await other.listDispatches()).items.length, 1);
  },
};

async function logOf({ deliveries }: Engine): Promise<readonly string[]> {
  return deliveries === undefined ? [] : await listed(deliveries);
}

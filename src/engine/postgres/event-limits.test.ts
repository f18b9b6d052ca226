import { randomBytes } from "node:crypto";
import { expect, test } from "vitest";
import { createId } from "../../base/id.ts";
import { agentStream } from "../../protocol/session-name.ts";
import { postgresForTests } from "../../testing/postgres-for-tests.ts";
import { handlers } from "../cases/engine-check.ts";
import { createPostgresEngine } from "./create-postgres-engine.ts";
import { openEngineDatabase } from "./engine-database.ts";
import { PostgresEventRows } from "./event-rows.ts";
import type { PostgresBase } from "./postgres-base.ts";
import { createDeliveryRows, pruneDeliveries } from "./small-stores.ts";

const server = postgresForTests();

test("above the limits of a stream and of all bytes the oldest events are deleted, and readers get a gap", async () => {
  const target = { url: server.url, schema: "event_limits" };
  const engine = await createPostgresEngine(target);
  await engine.start(handlers({}));
  const stream = agentStream("a", "1");
  await engine.events.begin(stream);
  for (let index = 1; index <= 40; index += 1) {
    engine.events.append(stream, {
      type: "log",
      level: "info",
      message: randomBytes(5_000).toString("hex"),
      index,
      timestamp: "2026-01-01T00:00:00.000Z",
      instance_id: "1",
      operation_id: "op",
      session: "default",
    });
    await engine.events.flush();
  }
  const database = await openEngineDatabase(target);
  const rows = new PostgresEventRows({ database } as PostgresBase);
  const indexes = async () => (await engine.events.read(stream, { limit: 100 })).map(({ index }) => index);
  const limits = { beforeMs: 0, maxEvents: 30, maxBytes: Number.MAX_SAFE_INTEGER };
  while (await rows.remove(limits));
  const remaining = await database.row<{ events: number; first: number }>(
    "SELECT (SELECT events FROM $s.streams) AS events, (SELECT min(first) FROM $s.batches) AS first",
  );
  expect(remaining).toEqual({ events: 30, first: 11 });
  while (await rows.remove({ ...limits, maxBytes: 150_000 }));
  const left = await database.row<{ count: number }>("SELECT count(*) FROM $s.batches");
  expect(left?.count).toBeLessThanOrEqual(15);
  expect((await indexes()).at(-1)).toBe(40);
  await engine.drain({ timeoutMs: 0 });
  await database.close();
});

test("old deliveries and those beyond the newest of a webhook are deleted; unverified ones displace only unverified ones", async () => {
  const database = await openEngineDatabase({ url: server.url, schema: "delivery_limits" });
  const rows = createDeliveryRows({ database });
  const write = (count: number, webhook: string, delivery_id: string | null) =>
    rows.write(
      Array.from({ length: count }, () => {
        const record_id = createId("delivery");
        return { record_id, webhook, outcome: "accepted", delivery_id, record: "{}" } as const;
      }),
    );
  await write(3, "quiet", "sent");
  await write(95, "loud", "sent");
  await write(600, "loud", null);
  const limits = { deliveriesPerWebhook: 100 } as PostgresBase["limits"];
  const counts = async () =>
    await database.rows(
      `SELECT webhook, delivery_id, count(*)::int AS count FROM $s.deliveries
       GROUP BY webhook, delivery_id ORDER BY webhook, delivery_id`,
    );
  await pruneDeliveries({ database, limits }, Date.now() - 60_000);
  const quiet = { webhook: "quiet", delivery_id: "sent", count: 3 };
  expect(await counts()).toEqual([
    { webhook: "loud", delivery_id: "sent", count: 95 },
    { webhook: "loud", delivery_id: null, count: 10 },
    quiet,
  ]);
  await write(300, "loud", "sent");
  await pruneDeliveries({ database, limits }, Date.now() - 60_000);
  expect(await counts()).toEqual([{ webhook: "loud", delivery_id: "sent", count: 110 }, quiet]);
  await pruneDeliveries({ database, limits }, Date.now() + 60_000);
  expect(await counts()).toEqual([]);
  await database.close();
});

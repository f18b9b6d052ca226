import { lowestId } from "../../base/id.ts";
import { Batcher } from "../../postgres/batcher.ts";
import {
  columnsOf,
  type DeliveryRow,
  type DeliveryStore,
  deliveryPage,
  isDeliveryId,
} from "../shared/deliveries.ts";
import { badCursor } from "../shared/read-page.ts";
import { readPageOf } from "./dispatch-rows.ts";
import type { PostgresBase } from "./postgres-base.ts";

/** The records of deliveries. Those of a moment share a statement. */
export function createDeliveryRows({ database }: Pick<PostgresBase, "database">): DeliveryStore {
  const batch = new Batcher<DeliveryRow, void>(async (all) => {
    // A statement may write a row once: the latest of an id has ended, where it has.
    const rows = [...new Map(all.map((row) => [row.record_id, row])).values()];
    await database.run(
      `INSERT INTO $s.deliveries (record_id, webhook, outcome, delivery_id, record)
       SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[])
       ON CONFLICT (record_id) DO UPDATE SET outcome = excluded.outcome, delivery_id = excluded.delivery_id,
         record = excluded.record WHERE excluded.outcome <> 'open'`,
      [
        rows.map(({ record_id }) => record_id),
        rows.map(({ webhook }) => webhook),
        rows.map(({ outcome }) => outcome),
        rows.map(({ delivery_id }) => delivery_id),
        rows.map(({ record }) => record),
      ],
    );
    return all.map(() => undefined);
  });
  return {
    async write(rows) {
      await Promise.all(rows.map((row) => batch.add(row)));
    },
    async list(filter) {
      const { cursor, limit } = filter;
      if (cursor !== undefined && !isDeliveryId(cursor)) throw badCursor();
      const columns = columnsOf(filter);
      const conditions = columns.map(([name], index) => `${name} = $${index + 2}`);
      const where = ["record_id < $1", ...conditions].join(" AND ");
      const values = [cursor ?? "~", ...columns.map(([, value]) => value)];
      const read = (most: number): Promise<DeliveryRow[]> =>
        database.rows<DeliveryRow>(
          `SELECT record_id, record FROM $s.deliveries WHERE ${where} ORDER BY record_id DESC LIMIT ${most}`,
          values,
        );
      return await readPageOf(read, { ...deliveryPage, limit });
    },
  };
}

/** Removes records that are older than a time (ms), and those beyond the newest of each webhook. */
export async function pruneDeliveries(
  { database, limits }: Pick<PostgresBase, "database" | "limits">,
  endedBefore: number,
): Promise<void> {
  const { deliveriesPerWebhook: most } = limits;
  const mostUnverified = Math.ceil(most / 10);
  await database.run("DELETE FROM $s.deliveries WHERE record_id < $1", [
    lowestId("delivery", Math.max(0, endedBefore)),
  ]);
  for (const [condition, count] of [
    ["delivery_id IS NULL AND", mostUnverified],
    // Strangers push out none but their own.
    ["", most + mostUnverified],
  ] as const)
    await database.run(
      `DELETE FROM $s.deliveries AS d USING (
         SELECT webhook, (
           SELECT record_id FROM $s.deliveries WHERE ${condition} webhook = w.webhook
           ORDER BY record_id DESC LIMIT 1 OFFSET $1
         ) AS last FROM (SELECT DISTINCT webhook FROM $s.deliveries) AS w
       ) AS beyond WHERE ${condition} d.webhook = beyond.webhook AND d.record_id <= beyond.last`,
      [count],
    );
}

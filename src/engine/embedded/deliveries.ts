import { lowestId } from "../../base/id.ts";
import { type Query, query } from "../../sqlite/statements.ts";
import {
  columnsOf,
  type DeliveryRow,
  type DeliveryStore,
  deliveryPage,
  isDeliveryId,
} from "../shared/deliveries.ts";
import type { EngineLimits } from "../shared/engine-base.ts";
import { badCursor, readPage } from "../shared/read-page.ts";
import type { EmbeddedBase, EnginePart } from "./embedded-base.ts";

const pruned = 500;

/** The records of deliveries in the engine's database. */
export function createDeliveryRows(
  base: EmbeddedBase,
  limits: EngineLimits,
): { readonly store: DeliveryStore; readonly part: EnginePart } {
  const { database } = base;
  const put = query(
    database,
    `INSERT INTO deliveries (record_id, webhook, outcome, delivery_id, record) VALUES (?, ?, ?, ?, ?)
     ON CONFLICT (record_id) DO UPDATE SET outcome = excluded.outcome, delivery_id = excluded.delivery_id,
       record = excluded.record WHERE excluded.outcome <> 'open'`,
  );
  const queries = new Map<string, Query<DeliveryRow>>();

  function find(columns: readonly string[], outcome: string | undefined): Query<DeliveryRow> {
    const sql = `SELECT record_id, record FROM deliveries INDEXED BY ${indexFor(columns, outcome)}
      WHERE ${columns.map((column) => `${column} = ? AND `).join("")}
      ${outcome === undefined || outcome === "accepted" ? "" : "outcome <> 'accepted' AND"}
      record_id < ? ORDER BY record_id DESC LIMIT ?`;
    let found = queries.get(sql);
    if (found === undefined) {
      found = query<DeliveryRow>(database, sql);
      queries.set(sql, found);
    }
    return found;
  }

  const store: DeliveryStore = {
    write: (rows) =>
      base.commit(() => {
        for (const { record_id, webhook, outcome, delivery_id, record } of rows)
          put.run(record_id, webhook, outcome, delivery_id, record);
      }),
    async list(filter) {
      const { cursor, limit, outcome } = filter;
      if (cursor !== undefined && !isDeliveryId(cursor)) throw badCursor();
      const columns = columnsOf(filter);
      const names = columns.map(([name]) => name);
      const values = columns.map(([, value]) => value);
      return readPage({
        ...deliveryPage,
        limit,
        rows: (most) => find(names, outcome).each(...values, cursor ?? "~", most),
      });
    },
  };
  const prune = createPrune(base, limits.deliveriesPerWebhook);
  const part: EnginePart = {
    start: async () => undefined,
    onForeignWrite: () => undefined,
    close: () => undefined,
    prune: async (endedBefore) => (await base.commit(() => prune(endedBefore), { fenced: true })) >= pruned,
  };
  return { store, part };
}

/** Removes what is old, and what is beyond the newest of a webhook, at most 500 of each; gives the largest count. */
function createPrune({ database }: EmbeddedBase, most: number): (endedBefore: number) => number {
  const old = query(
    database,
    `DELETE FROM deliveries WHERE record_id IN
       (SELECT record_id FROM deliveries WHERE record_id < ? ORDER BY record_id LIMIT ?)`,
  );
  const webhooks = query<Pick<DeliveryRow, "webhook">>(
    database,
    "SELECT DISTINCT webhook FROM deliveries INDEXED BY deliveries_by_webhook",
  );
  const beyond = (index: string, condition: string): Query<never> =>
    query(
      database,
      `DELETE FROM deliveries WHERE record_id IN (
         SELECT record_id FROM deliveries INDEXED BY ${index} WHERE ${condition} webhook = ?1 AND record_id <= (
           SELECT record_id FROM deliveries INDEXED BY ${index} WHERE ${condition} webhook = ?1
           ORDER BY record_id DESC LIMIT 1 OFFSET ?2
         ) LIMIT ?3)`,
    );
  const unverified = beyond("deliveries_unverified", "delivery_id IS NULL AND");
  const all = beyond("deliveries_by_webhook", "");
  const mostUnverified = Math.ceil(most / 10);
  return (endedBefore) => {
    const counts = [old.run(lowestId("delivery", Math.max(0, endedBefore)), pruned)];
    for (const { webhook } of webhooks.all()) {
      const ofStrangers = unverified.run(webhook, mostUnverified, pruned);
      counts.push(ofStrangers);
      // Strangers push out none but their own.
      if (ofStrangers < pruned) counts.push(all.run(webhook, most + mostUnverified, pruned));
    }
    return Math.max(...counts);
  };
}

/** Named, because SQLite's guess without statistics may be a walk over all deliveries. */
function indexFor(columns: readonly string[], outcome: string | undefined): string {
  if (columns.includes("delivery_id")) return "deliveries_by_sender";
  if (outcome !== undefined && outcome !== "accepted") return "deliveries_by_outcome";
  return columns.includes("webhook") ? "deliveries_by_webhook" : "deliveries_by_id";
}

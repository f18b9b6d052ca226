import { lowestId } from "../../base/id.ts";
import { Batcher } from "../../postgres/batcher.ts";
import {
  columnsOf,
  type DeliveryRow,
  type DeliveryStore,
  deliveryPage,
  isDeliveryId,
} from "../shared/deliveries.ts";
import { beingDone, type OutcomeStore } from "../shared/outcomes.ts";
import type { ScheduleRow, ScheduleStore } from "../shared/schedules.ts";
import { badCursor } from "../shared/stored-rows.ts";
import { readPageOf } from "./lists.ts";
import type { PostgresBase } from "./postgres-base.ts";

/** The rows of schedules. Any node can start an occurrence: its name is the key of its run, so only one run starts. */
export function createScheduleRows({ database, news }: PostgresBase): ScheduleStore {
  return {
    async first() {
      const row = await database.row<{ at: number | null }>("SELECT min(next_at) AS at FROM $s.schedules");
      return row?.at;
    },
    due: (now) =>
      database.rows<ScheduleRow>("SELECT * FROM $s.schedules WHERE next_at <= $1 ORDER BY next_at", [now]),
    all: () => database.rows<ScheduleRow>('SELECT * FROM $s.schedules ORDER BY name COLLATE "C"'),
    async put({ name, workflow, cron, timezone, next_at, payload }) {
      const row = await database.row<ScheduleRow>(
        `INSERT INTO $s.schedules AS old (name, workflow, cron, timezone, next_at, payload)
         VALUES ($1, $2, $3, $4, $5, $6)
         ON CONFLICT (name) DO UPDATE SET
           next_at = CASE WHEN old.cron = excluded.cron AND old.timezone IS NOT DISTINCT FROM excluded.timezone
             THEN old.next_at ELSE excluded.next_at END,
           workflow = excluded.workflow, cron = excluded.cron, timezone = excluded.timezone, payload = excluded.payload
         RETURNING *`,
        [name, workflow, cron, timezone, next_at, payload],
      );
      news.publish(["schedule"]);
      return row as ScheduleRow;
    },
    advance: ({ id, next_at }, next, runId) =>
      database.run("UPDATE $s.schedules SET next_at = $1, last_run_id = $2 WHERE id = $3 AND next_at = $4", [
        next,
        runId,
        id,
        next_at,
      ]),
    async remove(name) {
      const row = await database.row("DELETE FROM $s.schedules WHERE name = $1 RETURNING 1", [name]);
      news.publish(["schedule"]);
      return row !== undefined;
    },
  };
}

/** The outcomes of `Engine.once`. */
export function createOutcomeRows({ database, clock }: PostgresBase): OutcomeStore {
  return {
    async claimOrFind(key, claim, until) {
      const now = clock.now();
      // Returns no row if the key has an outcome or a valid claim.
      const claimed = await database.row(
        `INSERT INTO $s.outcomes AS old (outcome_key, claim, claimed_until) VALUES ($1, $2, $3)
         ON CONFLICT (outcome_key) DO UPDATE SET claim = excluded.claim, claimed_until = excluded.claimed_until
         WHERE old.value IS NULL AND old.claimed_until <= $4 RETURNING 1`,
        [key, claim, until, now],
      );
      if (claimed !== undefined) return undefined;
      const row = await database.row<{ value: string | null; at: number }>(
        "SELECT value, claimed_until AS at FROM $s.outcomes WHERE outcome_key = $1",
        [key],
      );
      if (row === undefined || row.value === null) throw beingDone((row?.at ?? now) - now);
      return row.value;
    },
    renew: (key, claim, until) =>
      database.run("UPDATE $s.outcomes SET claimed_until = $3 WHERE outcome_key = $1 AND claim = $2", [
        key,
        claim,
        until,
      ]),
    settle: (key, value) =>
      database.run(
        "UPDATE $s.outcomes SET value = $2, done_at = $3 WHERE outcome_key = $1 AND value IS NULL",
        [key, value, clock.now()],
      ),
    giveUp: (key, claim) =>
      database.run("DELETE FROM $s.outcomes WHERE outcome_key = $1 AND claim = $2 AND value IS NULL", [
        key,
        claim,
      ]),
  };
}

/** Records of deliveries. Concurrent writes share a statement. */
export function createDeliveryRows({ database }: Pick<PostgresBase, "database">): DeliveryStore {
  const batch = new Batcher<DeliveryRow, void>(async (all) => {
    // A statement can write a row only once, so the latest record of each id is kept.
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
    // Unverified records, which anyone can cause, never displace verified ones.
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

import { lowestId } from "../../base/id.ts";
import { type Query, query } from "../../sqlite/statements.ts";
import type { RunReceipt, RunRequest } from "../contract.ts";
import {
  columnsOf,
  type DeliveryRow,
  type DeliveryStore,
  deliveryPage,
  isDeliveryId,
} from "../shared/deliveries.ts";
import type { EngineLimits } from "../shared/engine-base.ts";
import { beingDone, type OutcomeStore } from "../shared/outcomes.ts";
import { type ScheduleRow, type ScheduleStore, Schedules, turnBack } from "../shared/schedules.ts";
import { badCursor, readPage } from "../shared/stored-rows.ts";
import type { EmbeddedBase, EnginePart } from "./embedded-base.ts";

/** Schedules in the engine's database: the lease holder starts their runs. */
export function createSchedules(
  base: EmbeddedBase,
  { startRun }: { readonly startRun: (request: RunRequest) => Promise<RunReceipt> },
): { readonly schedules: Schedules; readonly part: EnginePart } {
  const { clock, lease, stopping } = base;
  const sql = statements(base);
  let tenure: AbortSignal | undefined;

  const store: ScheduleStore = {
    first: async () => sql.first.get()?.at,
    due: async (now) => sql.due.all(now),
    all: async () => sql.all.all(),
    async put({ name, workflow, cron, timezone, next_at, payload }) {
      const row = await base.commit(() => sql.put.get(name, workflow, cron, timezone, next_at, payload));
      if (row === undefined) throw new Error("SQLite returned no row.");
      return row;
    },
    async advance({ id, next_at }, next, runId) {
      await base.commit(() => sql.advance.run(next, runId, id, next_at), { fenced: true });
    },
    remove: async (name) => (await base.commit(() => sql.remove.run(name))) > 0,
  };
  const schedules = new Schedules(base, {
    store,
    startRun,
    isWorking: () => tenure !== undefined && !tenure.aborted && tenure === lease.signal && !stopping.aborted,
  });

  /** Adapts the schedules to a clock that was set back. Call it in a transaction. */
  function followClock(): void {
    for (const row of sql.all.all()) {
      const turned = turnBack(row, clock.now());
      if (turned !== undefined) sql.turnBack.run(turned.next_at, turned.rounds, row.id);
    }
  }

  const part: EnginePart = {
    async start() {
      tenure = lease.signal;
      tenure.addEventListener("abort", () => schedules.stop(), { once: true });
      await base.commit(followClock, { fenced: true });
      await schedules.arm();
    },
    onForeignWrite: () => void schedules.arm().catch(() => undefined),
    async clockSet() {
      await base.commit(followClock, { fenced: true });
      await schedules.arm();
    },
    close: () => schedules.stop(),
  };
  return { schedules, part };
}

function statements({ database }: EmbeddedBase) {
  return {
    first: query<{ at: number | null }>(
      database,
      "SELECT min(next_at) AS at FROM schedules WHERE next_at IS NOT NULL",
    ),
    due: query<ScheduleRow>(database, "SELECT * FROM schedules WHERE next_at <= ? ORDER BY next_at"),
    all: query<ScheduleRow>(database, "SELECT * FROM schedules ORDER BY name"),
    // A schedule whose times are unchanged keeps its next occurrence, which may be overdue.
    put: query<ScheduleRow>(
      database,
      `INSERT INTO schedules (name, workflow, cron, timezone, next_at, payload) VALUES (?, ?, ?, ?, ?, ?)
       ON CONFLICT (name) DO UPDATE SET
         next_at = iif(cron = excluded.cron AND timezone IS excluded.timezone, next_at, excluded.next_at),
         workflow = excluded.workflow, cron = excluded.cron, timezone = excluded.timezone,
         payload = excluded.payload
       RETURNING *`,
    ),
    advance: query(
      database,
      "UPDATE schedules SET next_at = ?, last_run_id = ? WHERE id = ? AND next_at = ?",
    ),
    turnBack: query(database, "UPDATE schedules SET next_at = ?, round = round + ? WHERE id = ?"),
    remove: query(database, "DELETE FROM schedules WHERE name = ?"),
  };
}

/** Rows that one transaction deletes at most. */
const pruned = 500;

interface OutcomeRow {
  readonly claimed_until: number;
  readonly value: string | null;
}

/** The outcomes of `Engine.once` in the engine's database. */
export function createOutcomeRows(base: EmbeddedBase): {
  readonly store: OutcomeStore;
  readonly part: EnginePart;
} {
  const { database, clock, time } = base;
  const byKey = query<OutcomeRow>(
    database,
    "SELECT claimed_until, value FROM outcomes WHERE outcome_key = ?",
  );
  const take = query(
    database,
    `INSERT INTO outcomes (outcome_key, claim, claimed_until) VALUES (?, ?, ?)
     ON CONFLICT (outcome_key) DO UPDATE SET claim = excluded.claim, claimed_until = excluded.claimed_until`,
  );
  const renew = query(database, "UPDATE outcomes SET claimed_until = ? WHERE outcome_key = ? AND claim = ?");
  const settle = query(
    database,
    "UPDATE outcomes SET value = ?, done_at = ? WHERE outcome_key = ? AND value IS NULL",
  );
  const giveUp = query(
    database,
    "DELETE FROM outcomes WHERE outcome_key = ? AND claim = ? AND value IS NULL",
  );
  const prune = query(
    database,
    `DELETE FROM outcomes WHERE outcome_key IN (
       SELECT outcome_key FROM outcomes WHERE coalesce(done_at, claimed_until) < ? LIMIT ?)`,
  );
  const store: OutcomeStore = {
    claimOrFind: (key, claim, until) =>
      base.commit(() => {
        const now = time.now();
        const row = byKey.get(key);
        if (row !== undefined && row.value !== null) return row.value;
        if (row !== undefined && row.claimed_until > now) throw beingDone(row.claimed_until - now);
        take.run(key, claim, until);
        return undefined;
      }),
    async renew(key, claim, until) {
      await base.commit(() => renew.run(until, key, claim));
    },
    async settle(key, value) {
      await base.commit(() => settle.run(value, clock.now(), key));
    },
    async giveUp(key, claim) {
      await base.commit(() => giveUp.run(key, claim));
    },
  };
  const part: EnginePart = {
    start: async () => undefined,
    onForeignWrite: () => undefined,
    close: () => undefined,
    async prune(endedBefore) {
      return (await base.commit(() => prune.run(endedBefore, pruned), { fenced: true })) === pruned;
    },
  };
  return { store, part };
}

/** Records of deliveries in the engine's database. */
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
    let prepared = queries.get(sql);
    if (prepared === undefined) {
      prepared = query<DeliveryRow>(database, sql);
      queries.set(sql, prepared);
    }
    return prepared;
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

/**
 * Returns the function that removes old records, and records beyond the limit of a webhook: at most 500 of each kind. It
 * returns the largest of the counts.
 */
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
      const removed = unverified.run(webhook, mostUnverified, pruned);
      counts.push(removed);
      // Unverified records, which anyone can cause, never displace verified ones.
      if (removed < pruned) counts.push(all.run(webhook, most + mostUnverified, pruned));
    }
    return Math.max(...counts);
  };
}

/** The index to use. Without statistics SQLite can choose a scan over all deliveries, so the query names its index. */
function indexFor(columns: readonly string[], outcome: string | undefined): string {
  if (columns.includes("delivery_id")) return "deliveries_by_sender";
  if (outcome !== undefined && outcome !== "accepted") return "deliveries_by_outcome";
  return columns.includes("webhook") ? "deliveries_by_webhook" : "deliveries_by_id";
}

import { query } from "../../sqlite/statements.ts";
import type { RunReceipt, RunRequest } from "../contract.ts";
import { type ScheduleRow, type ScheduleStore, Schedules, turnBack } from "../shared/schedules.ts";
import type { EmbeddedBase, EnginePart } from "./embedded-base.ts";

/** Schedules in the engine's database: the holder of the lease starts their runs. */
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
      if (row === undefined) throw new Error("SQLite gave no row back.");
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

  /** In a transaction: has schedules go by a clock that was set back. */
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
    // A schedule that is declared again as it was keeps the occurrence that is due: it may have been missed.
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

import { isoTime } from "../../base/clock.ts";
import { KitError } from "../../base/kit-error.ts";
import type { ScheduleRecord } from "../../protocol/run.ts";
import { query } from "../../sqlite/statements.ts";
import type { Engine, RunReceipt, RunRequest } from "../contract.ts";
import type { EnginePart } from "../engine-base.ts";
import { nextOccurrence } from "../next-occurrence.ts";
import type { EmbeddedBase } from "./embedded-base.ts";
import { sleepUntil } from "./work/sleep-until.ts";

export type Schedules = EnginePart & Pick<Engine, "putSchedule" | "deleteSchedule" | "listSchedules">;

export interface SchedulesOptions {
  readonly startRun: (request: RunRequest) => Promise<RunReceipt>;
}

interface ScheduleRow {
  readonly id: number;
  readonly name: string;
  readonly workflow: string;
  readonly cron: string;
  readonly timezone: string | null;
  readonly next_at: number | null;
  readonly last_run_id: string | null;
  readonly payload: string | null;
  /** How often its times have passed again. */
  readonly round: number;
}

/** After a run that could not be started. */
const retryMs = 5_000;

/**
 * Starts runs at the times of cron expressions. Times that passed while no worker ran are made up for once. An
 * occurrence is named by schedule and time, so that it starts one run, whoever starts it and however often; when the
 * clock is set back by so much that several of a schedule's times pass again, they are other occurrences.
 */
export function createSchedules(base: EmbeddedBase, options: SchedulesOptions): Schedules {
  const { clock, lease, stopping, blobs } = base;
  const sql = statements(base);
  let tenure: AbortSignal | undefined;
  let timer: AbortController | undefined;
  let firing = false;

  function isWorking(): boolean {
    return tenure !== undefined && !tenure.aborted && tenure === lease.signal && !stopping.aborted;
  }

  /** Sets the one timer to the earliest occurrence of all. */
  function arm(leastMs = 0): void {
    timer?.abort();
    const at = isWorking() ? sql.first.get()?.at : undefined;
    if (at === null || at === undefined) return;
    timer = new AbortController();
    sleepUntil(clock, Math.max(at, clock.now() + leastMs), timer.signal).then(
      () => void fire(),
      () => undefined,
    );
  }

  async function fire(): Promise<void> {
    if (firing || !isWorking()) return;
    firing = true;
    let failed = false;
    try {
      for (const row of sql.due.all(clock.now())) failed = !(await startOccurrence(row)) || failed;
    } finally {
      firing = false;
    }
    arm(failed ? retryMs : 0);
  }

  /** False when it could not be started; it is tried again. */
  async function startOccurrence(row: ScheduleRow): Promise<boolean> {
    const at = Number(row.next_at);
    try {
      const runId = await startOnce(row, at);
      const next = nextOccurrence(toSpec(row), clock.now()) ?? null;
      await base.commit(() => sql.advance.run(next, runId ?? row.last_run_id, row.id, at), { fenced: true });
      return true;
    } catch {
      return false;
    }
  }

  async function startOnce(row: ScheduleRow, at: number): Promise<string | undefined> {
    const request = {
      workflow: row.workflow,
      payload: row.payload === null ? {} : blobs.load(row.payload),
      idempotency_key: `schedule:${row.name}:${isoTime(at)}${row.round === 0 ? "" : `#${row.round}`}`,
    };
    try {
      return (await options.startRun(request)).run_id;
    } catch (error) {
      // It was started before a crash, and the schedule was given another payload since.
      if (error instanceof KitError && error.code === "conflict") return undefined;
      throw error;
    }
  }

  /**
   * In a transaction: has schedules go by a clock that was set back. One of whose times several pass again keeps its
   * rhythm, and comes at them again; of one that comes more seldom, its time has passed, and is not done twice. What
   * never came was put down by a clock that was far ahead.
   */
  function followClock(): void {
    for (const row of sql.all.all()) {
      const first = nextOccurrence(toSpec(row), clock.now());
      if (row.next_at === null || first === undefined || first >= row.next_at) continue;
      const second = nextOccurrence(toSpec(row), first);
      if (row.last_run_id === null) sql.turnBack.run(first, 0, row.id);
      else if (second !== undefined && second < row.next_at) sql.turnBack.run(first, 1, row.id);
    }
  }

  function toRecord(row: ScheduleRow): ScheduleRecord {
    const { name, workflow, next_at, last_run_id, payload } = row;
    return {
      name,
      workflow,
      ...toSpec(row),
      ...(payload === null ? {} : { payload: blobs.load(payload) }),
      ...(next_at === null ? {} : { next_at: isoTime(next_at) }),
      ...(last_run_id === null ? {} : { last_run_id }),
    };
  }

  return {
    async putSchedule({ name, workflow, cron, timezone, payload }) {
      const next = nextOccurrence({ cron, timezone }, clock.now()) ?? null;
      const stored = payload === undefined ? null : await blobs.store(payload);
      const row = await base.commit(() => sql.put.get(name, workflow, cron, timezone ?? null, next, stored));
      arm();
      if (row === undefined) throw new Error("SQLite gave no row back.");
      return toRecord(row);
    },

    async deleteSchedule(name) {
      return (await base.commit(() => sql.remove.run(name))) > 0;
    },

    async listSchedules() {
      return sql.all.all().map(toRecord);
    },

    async start() {
      tenure = lease.signal;
      tenure.addEventListener("abort", () => timer?.abort(), { once: true });
      await base.commit(followClock, { fenced: true });
      arm();
    },

    onForeignWrite: () => arm(),

    async clockSet() {
      await base.commit(followClock, { fenced: true });
      arm();
    },

    close() {
      timer?.abort();
    },
  };
}

function toSpec({ cron, timezone }: ScheduleRow): Pick<ScheduleRecord, "cron" | "timezone"> {
  return timezone === null ? { cron } : { cron, timezone };
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

import { Cron } from "croner";
import { isoTime } from "../../base/clock.ts";
import { KitError } from "../../base/kit-error.ts";
import type { ScheduleRecord } from "../../protocol/run.ts";
import type { Engine, RunReceipt, RunRequest } from "../contract.ts";
import { sleepUntil } from "./durable-time.ts";
import type { EngineBase } from "./engine-base.ts";

/** The rows of schedules. Each write resolves once it is on disk. */
export interface ScheduleStore {
  /** When the first occurrence of all is due, in ms since 1970; null or undefined for none. */
  first(): Promise<number | null | undefined>;
  /** The schedules with a due occurrence, the earliest first. */
  due(now: number): Promise<readonly ScheduleRow[]>;
  /** All schedules, sorted by name. */
  all(): Promise<readonly ScheduleRow[]>;
  /**
   * Adds or replaces a schedule. If its times are unchanged, it keeps its next occurrence, which may be overdue.
   */
  put(schedule: NewSchedule): Promise<ScheduleRow>;
  /** Stores that the row's occurrence has started a run; does nothing if another process has stored that. */
  advance(row: ScheduleRow, next: number | null, runId: string | null): Promise<void>;
  remove(name: string): Promise<boolean>;
}

export type NewSchedule = Omit<ScheduleRow, "id" | "last_run_id" | "round">;

export interface ScheduleRow {
  readonly id: number;
  readonly name: string;
  readonly workflow: string;
  readonly cron: string;
  readonly timezone: string | null;
  readonly next_at: number | null;
  readonly last_run_id: string | null;
  /** The stored form of `Blobs.store`. */
  readonly payload: string | null;
  /** How often its times were repeated because the clock was set back. */
  readonly round: number;
}

export interface SchedulesOptions {
  readonly store: ScheduleStore;
  readonly startRun: (request: RunRequest) => Promise<RunReceipt>;
  /** Whether this process starts the runs of schedules now. */
  readonly isWorking: () => boolean;
}

/** Pause after a run that could not be started. */
const retryMs = 5_000;

/**
 * Starts runs at the times of cron expressions. If times passed while no worker ran, one run makes up for them. The name
 * of an occurrence consists of schedule and time and is the key of its run, so it starts one run even if several
 * processes start it. If the clock is set back so far that several of a schedule's times come again, these count as new
 * occurrences.
 */
export class Schedules implements Pick<Engine, "putSchedule" | "deleteSchedule" | "listSchedules"> {
  readonly #base: EngineBase;
  readonly #options: SchedulesOptions;
  #timer: AbortController | undefined;
  /** How often the timer was set: of two concurrent calls of `arm`, the later one counts. */
  #armed = 0;
  #firing = false;

  constructor(base: EngineBase, options: SchedulesOptions) {
    this.#base = base;
    this.#options = options;
  }

  async putSchedule(schedule: Parameters<Engine["putSchedule"]>[0]): Promise<ScheduleRecord> {
    const { name, workflow, cron, timezone, payload } = schedule;
    const { blobs, clock } = this.#base;
    const next_at = nextOccurrence({ cron, timezone }, clock.now()) ?? null;
    const stored = payload === undefined ? null : await blobs.store(payload);
    const row = await this.#options.store.put({
      name,
      workflow,
      cron,
      timezone: timezone ?? null,
      next_at,
      payload: stored,
    });
    await this.arm();
    return this.#toRecord(row);
  }

  async deleteSchedule(name: string): Promise<boolean> {
    return await this.#options.store.remove(name);
  }

  async listSchedules(): Promise<readonly ScheduleRecord[]> {
    return (await this.#options.store.all()).map((row) => this.#toRecord(row));
  }

  /** Sets the timer to the earliest occurrence of all schedules. */
  async arm(leastMs = 0): Promise<void> {
    const { clock } = this.#base;
    this.stop();
    const turn = this.#armed;
    if (!this.#options.isWorking()) return;
    const at = await this.#options.store.first();
    if (at === null || at === undefined || turn !== this.#armed) return;
    this.#timer = new AbortController();
    sleepUntil(clock, Math.max(at, clock.now() + leastMs), this.#timer.signal).then(
      () => void this.fire(),
      () => undefined,
    );
  }

  stop(): void {
    this.#armed += 1;
    this.#timer?.abort();
    this.#timer = undefined;
  }

  /** Starts the runs of due occurrences, and sets the timer to the next occurrence. */
  async fire(): Promise<void> {
    if (this.#firing || !this.#options.isWorking()) return;
    this.#firing = true;
    let failed = false;
    try {
      for (const row of await this.#options.store.due(this.#base.clock.now()))
        failed = !(await this.#startOccurrence(row)) || failed;
    } catch {
      failed = true;
    } finally {
      this.#firing = false;
    }
    await this.arm(failed ? retryMs : 0).catch(() => undefined);
  }

  /** False if the run could not be started; it is retried later. */
  async #startOccurrence(row: ScheduleRow): Promise<boolean> {
    try {
      const runId = await this.#startOnce(row, Number(row.next_at));
      const next = nextOccurrence(toSpec(row), this.#base.clock.now()) ?? null;
      await this.#options.store.advance(row, next, runId ?? row.last_run_id);
      return true;
    } catch {
      return false;
    }
  }

  async #startOnce(row: ScheduleRow, at: number): Promise<string | undefined> {
    const request = {
      workflow: row.workflow,
      payload: row.payload === null ? {} : this.#base.blobs.load(row.payload),
      idempotency_key: `schedule:${row.name}:${isoTime(at)}${row.round === 0 ? "" : `#${row.round}`}`,
      cause: { type: "schedule", schedule: row.name } as const,
    };
    try {
      return (await this.#options.startRun(request)).run_id;
    } catch (error) {
      // The run was started before a crash, and the schedule got another payload since.
      if (error instanceof KitError && error.code === "conflict") return undefined;
      throw error;
    }
  }

  #toRecord(row: ScheduleRow): ScheduleRecord {
    const { name, workflow, next_at, last_run_id, payload } = row;
    return {
      name,
      workflow,
      ...toSpec(row),
      ...(payload === null ? {} : { payload: this.#base.blobs.load(payload) }),
      ...(next_at === null ? {} : { next_at: isoTime(next_at) }),
      ...(last_run_id === null ? {} : { last_run_id }),
    };
  }
}

/**
 * The next occurrence of a schedule after the clock was set back; `undefined` if it does not change. If several of its
 * times come again, the schedule starts runs at these times again, in a new round. If only its last time comes again, it
 * is not repeated. A schedule that has never started a run was stored while the clock was far ahead.
 */
export function turnBack(
  row: ScheduleRow,
  now: number,
): { readonly next_at: number; readonly rounds: 0 | 1 } | undefined {
  const first = nextOccurrence(toSpec(row), now);
  if (row.next_at === null || first === undefined || first >= row.next_at) return undefined;
  if (row.last_run_id === null) return { next_at: first, rounds: 0 };
  const second = nextOccurrence(toSpec(row), first);
  return second !== undefined && second < row.next_at ? { next_at: first, rounds: 1 } : undefined;
}

function toSpec({ cron, timezone }: ScheduleRow): Pick<ScheduleRecord, "cron" | "timezone"> {
  return timezone === null ? { cron } : { cron, timezone };
}

/**
 * The next time of a cron expression after a time (both in ms since 1970); `undefined` if there is none.
 * Throws `invalid_request` for an invalid expression or time zone.
 */
export function nextOccurrence(
  schedule: { readonly cron: string; readonly timezone?: string | undefined },
  after: number,
): number | undefined {
  const { cron, timezone = "UTC" } = schedule;
  checkTimezone(timezone);
  // croner would also accept a date, and more fields than kit promises.
  const fields = cron.trim().split(/\s+/).length;
  if (!cron.trim().startsWith("@") && fields !== 5 && fields !== 6) throw badExpression(cron);
  try {
    const pattern = new Cron(cron, { timezone, paused: true, mode: "5-or-6-parts" });
    return pattern.nextRun(new Date(after))?.getTime();
  } catch (cause) {
    throw badExpression(cron, cause);
  }
}

function checkTimezone(timezone: string): void {
  try {
    new Intl.DateTimeFormat("en", { timeZone: timezone });
  } catch (cause) {
    throw badTimezone(timezone, cause);
  }
}

function badTimezone(timezone: string, cause: unknown): KitError {
  return new KitError({
    code: "invalid_request",
    message: `${JSON.stringify(timezone.slice(0, 100))} is not a time zone.`,
    hint: "Use an IANA name, such as Europe/Berlin.",
    cause,
  });
}

function badExpression(cron: string, cause?: unknown): KitError {
  return new KitError({
    code: "invalid_request",
    message: `${JSON.stringify(cron.slice(0, 100))} is not a cron expression.`,
    hint: "Five or six fields: (second) minute hour day month weekday, such as 0 9 * * MON-FRI.",
    cause,
  });
}

import type { EventError } from "./event.ts";

/** `waiting`: for a time or a signal, with nothing in memory. */
export const runStatuses = ["queued", "running", "waiting", "completed", "failed", "cancelled"] as const;
export type RunStatus = (typeof runStatuses)[number];

/** Something that a run waits for: a signal, a time, or a signal until a time. */
export interface RunWait {
  /** The name that its `waitFor` gives; absent for a sleep. */
  readonly signal?: string;
  /** When it goes on without; absent where it waits as long as it takes. */
  readonly until?: string;
}

/** One invocation of a workflow. Times are ISO 8601. */
export interface RunRecord {
  /** `run_` and a ULID. */
  readonly run_id: string;
  readonly workflow: string;
  readonly status: RunStatus;
  readonly payload: unknown;
  readonly result?: unknown;
  readonly error?: EventError;
  readonly accepted_at: string;
  readonly started_at?: string;
  readonly ended_at?: string;
  readonly duration_ms?: number;
  /** The waits that are open, the first 100 in the order in which they began; absent when there is none. */
  readonly waiting_for?: readonly RunWait[];
  /** How many events its stream has. */
  readonly event_count: number;
}

/** When a workflow runs by itself. */
export interface ScheduleRecord {
  /** Unique; putting a schedule of the same name replaces it. */
  readonly name: string;
  readonly workflow: string;
  /** Five or six fields, as cron(8) and croner read them. */
  readonly cron: string;
  /** IANA name; default UTC. */
  readonly timezone?: string;
  readonly payload?: unknown;
  /** ISO 8601; absent when it never comes again. */
  readonly next_at?: string;
  readonly last_run_id?: string;
}

import type { EngineLimits } from "../../engine/embedded/engine-limits.ts";

/** The `engine` table: how accepted work is kept and done. */
export interface EngineConfig {
  /** Default `embedded`: SQLite in a folder of this machine. */
  readonly kind?: "embedded";
  /** Relative to the root; default `.kit/engine`. */
  readonly folder?: string;
  /** Inputs and runs that are worked on at a time; default 256. */
  readonly concurrency?: number;
  /** Inputs that may wait in all; default 10,000. */
  readonly max_waiting?: number;
  /** Inputs, and runs, of one principal that may wait; default: as many as there are places left for others. */
  readonly max_waiting_per_principal?: number;
  /** Attempts at an input before it is a dead letter; default 5. */
  readonly max_attempts?: number;
  /** For how long what has ended can be looked up; default 7. */
  readonly retention_days?: number;
  /** What the events of instances and runs may take on disk, in bytes; default 1 GiB. Over it the oldest go. */
  readonly max_event_bytes?: number;
}

export const engineKinds: readonly "embedded"[] = ["embedded"];

/** The `sessions` table: for how long they are kept. */
export interface SessionsConfig {
  /**
   * Sessions that nobody has touched for so many days are removed, with their workspaces; default: none is. Agents with a
   * store of their own keep theirs.
   */
  readonly retention_days?: number;
}

const dayMs = 24 * 3_600_000;

/** For how long sessions are kept in ms; undefined for good. */
export function sessionRetentionMs({ retention_days }: SessionsConfig = {}): number | undefined {
  return retention_days === undefined ? undefined : retention_days * dayMs;
}

/** The limits that the configuration sets; `waitingPerSession` is a matter of the agents. */
export function toEngineLimits(engine: EngineConfig, waitingPerSession?: number): Partial<EngineLimits> {
  const {
    concurrency,
    max_waiting,
    max_waiting_per_principal,
    max_attempts,
    retention_days,
    max_event_bytes,
  } = engine;
  return {
    ...(waitingPerSession === undefined ? {} : { waitingPerSession }),
    ...(concurrency === undefined ? {} : { running: concurrency }),
    ...(max_waiting === undefined ? {} : { waiting: max_waiting }),
    ...(max_waiting_per_principal === undefined ? {} : { waitingPerOwner: max_waiting_per_principal }),
    ...(max_attempts === undefined ? {} : { attempts: max_attempts }),
    ...(max_event_bytes === undefined ? {} : { eventBytes: max_event_bytes }),
    ...(retention_days === undefined ? {} : { retentionMs: retention_days * dayMs }),
  };
}

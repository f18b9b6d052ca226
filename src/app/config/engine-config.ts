import type { EngineLimits } from "../../engine/shared/engine-base.ts";
import type { EngineConfig, SessionsConfig } from "./config-schema.ts";

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

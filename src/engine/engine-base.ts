import type { Clock } from "../base/clock.ts";
import { KitError } from "../base/kit-error.ts";
import type { EngineHandlers } from "./contract.ts";
import type { Timeline } from "./durable-time.ts";
import type { WorkLines } from "./embedded/work/work-lines.ts";

/**
 * State and services that the parts of an engine share. Nothing in `src/engine` outside `embedded/` knows SQL: execution,
 * replay, waits, cron times and pages work on this interface and on `RunJournal`.
 */
export interface EngineBase {
  /** The time of day: what records say, and when schedules are due. */
  readonly clock: Clock;
  /** The clock of waits, pauses and claims. */
  readonly time: Timeline;
  readonly lease: Lease;
  readonly blobs: Blobs;
  /** The queue of all work. */
  readonly lines: WorkLines;
  /**
   * Fires, with a `KitError` `aborted`, when a drain has waited long enough: running work must end now, and is requeued
   * without counting its attempt.
   */
  readonly stopping: AbortSignal;
  /** Fires as soon as a drain begins: no work waits for an unavailable store any longer. */
  readonly draining: AbortSignal;
  /**
   * Runs `write` in the next transaction, together with what others write at the time, in the order of
   * the calls. Resolves once that transaction is on disk (one fsync for all). What `write` throws undoes
   * its own part only, and rejects; so does all with `unavailable` when the store is locked or full. With
   * `fenced`, it is refused with `lease_lost` unless this process still holds the lease, which is looked up
   * in the same transaction; with `fence`, unless it is also still the same tenure.
   *
   * `write` changes nothing but the database, because the transaction may fail after it.
   */
  commit<Value>(write: () => Value, options?: CommitOptions): Promise<Value>;
}

export interface CommitOptions {
  readonly fenced?: boolean;
  readonly fence?: number;
}

/** The right to do the work of an engine's folder: one process at a time. */
export interface Lease {
  /** Rises each time the lease changes hands; 0 before it is held. */
  readonly fence: number;
  /** Fires, with a `KitError` `lease_lost`, when another process has taken over, or may have. */
  readonly signal: AbortSignal;
}

/** Whether a write was refused because another process holds the lease. */
export function isLost(error: unknown): boolean {
  return error instanceof KitError && error.code === "lease_lost";
}

/** `WorkContext.checkFence`. */
export function fenceCheck({ commit }: Pick<EngineBase, "commit">, fence: number): () => Promise<void> {
  return () => commit(() => undefined, { fence });
}

/** Payloads too large for a row. */
export interface Blobs {
  /** The JSON text of a value, or of a reference to it when it is above 256 KiB; durable when it resolves. */
  store(value: unknown): Promise<string>;
  /** The value that `store` was given. */
  load(stored: string): unknown;
  /** How long its JSON is, in characters or bytes. */
  size(stored: string): number;
}

/** A part does work while this process holds the lease: dispatches, runs, schedules. */
export interface EnginePart {
  /**
   * Called each time this process gains the lease: requeues the running work of a dead holder, and enqueues waiting
   * work (`base.lines`, closed until all parts have started). Once `base.lease.signal`, which belongs to this tenure,
   * fires, the part drops its timers and its other state until the next call.
   */
  start(handlers: EngineHandlers): Promise<void>;
  /**
   * Called when another process has written. Resolves callers that wait for an end. With the lease, also enqueues
   * admitted work and aborts cancelled work.
   */
  onForeignWrite(): void;
  /** The engine calls it after the machine's clock was set, forward or back. */
  clockSet?(): Promise<void>;
  /** Called before the engine closes: callers that wait for an end are rejected with `reason`. */
  close(reason: unknown): void;
  /** Removes a small batch of work that ended before a time (ms); false once there is no more. */
  prune?(endedBefore: number): Promise<boolean>;
}

/** How much an engine takes on, and how long it keeps what has ended. */
export interface EngineLimits {
  /** Inputs that may wait in one session; more are `too_many_requests`. Default 100. */
  readonly waitingPerSession: number;
  /** Inputs that may wait in all; more are `unavailable`. Default 10,000. */
  readonly waiting: number;
  /**
   * Inputs, and runs, of one principal that may wait; more are `too_many_requests`. Default: as many as there are places
   * left for others.
   */
  readonly waitingPerOwner?: number;
  /** Dispatches, calls and runs that work at a time. Default 256. */
  readonly running: number;
  /** Attempts at a dispatch before it is a dead letter. Default 5. */
  readonly attempts: number;
  /** Before the second attempt; doubled for each further one, with jitter. Default 1,000. */
  readonly backoffMs: number;
  /** The longest time between two attempts. Default 60,000. */
  readonly longestBackoffMs: number;
  /** How long ended work is kept. Default seven days. */
  readonly retentionMs: number;
  /** After the clock was set forward, nothing is removed for its age for as long, at most; default: `retentionMs`. */
  readonly longestRetentionMs?: number;
  /** The newest events that a stream keeps; older ones go. Default 100,000. */
  readonly eventsPerStream: number;
  /** Bytes that all events together may take on disk; above it the oldest are deleted. Default 1 GiB. */
  readonly eventBytes: number;
  /** How long the process that works may be silent before another takes over. Default 10,000. */
  readonly leaseMs: number;
  /** How often a process looks for what others have written. Default 50. */
  readonly pollMs: number;
}

export const defaultLimits: EngineLimits = {
  waitingPerSession: 100,
  waiting: 10_000,
  running: 256,
  attempts: 5,
  backoffMs: 1_000,
  longestBackoffMs: 60_000,
  retentionMs: 7 * 24 * 3_600_000,
  eventsPerStream: 100_000,
  eventBytes: 1_073_741_824,
  leaseMs: 10_000,
  pollMs: 50,
};

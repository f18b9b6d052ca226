import type { Clock } from "../../base/clock.ts";
import { KitError } from "../../base/kit-error.ts";
import { NotBegun, type Owned } from "../cluster.ts";
import type { WaitClock } from "./durable-time.ts";
import type { JobQueue } from "./queue/job-queue.ts";

/**
 * State and services that the parts of an engine share. Nothing in `src/engine/shared` knows a database: attempts,
 * execution, replay, waits, cron times, pages and the queue work on this interface and on the stores of rows
 * (`DispatchStore`, `RunStore`, `RunJournal`, `ScheduleStore`, `OutcomeStore`, `DeliveryStore`), which each engine implements.
 */
export interface EngineBase {
  /** The time of day: what records say, and when schedules are due. */
  readonly clock: Clock;
  /** The clock of waits, pauses and claims. */
  readonly time: WaitClock;
  readonly blobs: Blobs;
  /** The queue of all work that this process has to do. */
  readonly queue: JobQueue;
  /**
   * Fires, with a `KitError` `aborted`, when a drain has waited long enough: running work must end now, and is requeued
   * without counting its attempt.
   */
  readonly stopping: AbortSignal;
  /** Fires as soon as a drain begins: no work waits for an unavailable store any longer. */
  readonly draining: AbortSignal;
  /** Whether a run that is at work when a drain begins is put back before its next step. */
  readonly leavesAtSteps?: boolean | undefined;
  /** The lease under which this process may do the work of an instance or a run now; one that has ended where it may not. */
  leaseOf(owned: Owned): Lease;
  /** Rejects with `lease_lost` unless the lease still stands in the store. */
  checkLease(owned: Owned, fence: number): Promise<void>;
}

/** The right to do some work: one process has it at a time. */
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

/** The reason of `Lease.signal`, and the error of what only the lease's holder may do. */
export function leaseLost(cause?: unknown): KitError {
  return new KitError({
    code: "lease_lost",
    message: "Another process does this work now.",
    meta: { retry_after_s: 1 },
    cause,
  });
}

/** For callers of an engine that closes, or that does not do this work. */
export function closing(): KitError {
  return new NotBegun();
}

/** The reason of `EngineBase.stopping`. */
export function stopped(): KitError {
  return new KitError({
    code: "aborted",
    message: "The engine is stopping. The work is resumed later.",
    // An approval request stays open: the resumed work asks for the decision again.
    meta: { will_resume: true },
  });
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
  /** The newest deliveries that are kept of each webhook, and a tenth as many that were not verified. Default 10,000. */
  readonly deliveriesPerWebhook: number;
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
  deliveriesPerWebhook: 10_000,
  leaseMs: 10_000,
  pollMs: 50,
};

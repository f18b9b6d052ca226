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
  /** The time of day, for the times in records and for schedules. */
  readonly clock: Clock;
  /** The clock for waits, pauses and claims. */
  readonly time: WaitClock;
  readonly blobs: Blobs;
  /** The queue of all work of this process. */
  readonly queue: JobQueue;
  /**
   * Fires, with a `KitError` `aborted`, at the deadline of a drain: running work must end now, and is requeued without
   * counting its attempt.
   */
  readonly stopping: AbortSignal;
  /** Fires as soon as a drain begins: no work waits for an unavailable store any longer. */
  readonly draining: AbortSignal;
  /** Whether a run that is running when a drain begins is requeued before its next step. */
  readonly leavesAtSteps?: boolean | undefined;
  /** The lease for the work of an instance or a run; its signal has fired if this process does not hold it. */
  leaseOf(owned: Owned): Lease;
  /** Rejects with `lease_lost` unless the store still names this process as the holder, with this fence. */
  checkLease(owned: Owned, fence: number): Promise<void>;
}

/** The right to do some work: one process holds it at a time. */
export interface Lease {
  /** Rises each time the lease changes hands; 0 before it is held. */
  readonly fence: number;
  /** Fires, with a `KitError` `lease_lost`, when another process has taken over or may have taken over. */
  readonly signal: AbortSignal;
}

/** Whether a write was refused because another process holds the lease. */
export function isLost(error: unknown): boolean {
  return error instanceof KitError && error.code === "lease_lost";
}

/** The reason of `Lease.signal`, and the error of actions that only the lease holder may do. */
export function leaseLost(cause?: unknown): KitError {
  return new KitError({
    code: "lease_lost",
    message: "Another process does this work now.",
    meta: { retry_after_s: 1 },
    cause,
  });
}

/** The error for callers of an engine that is closing, or that does not own the work. */
export function closing(): KitError {
  return new NotBegun();
}

/** The error for a write that would wait behind too many others. */
export function queueFullError(): KitError {
  return new KitError({
    code: "unavailable",
    message: "Too many writes are waiting for the engine's store. Try again later.",
    meta: { retry_after_s: 1 },
  });
}

/** The error of a second `start`. */
export function alreadyStarted(): KitError {
  return new KitError({ code: "conflict", message: "The engine has been started already." });
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

/** The store of payloads, which may be too large for a row. */
export interface Blobs {
  /** Returns the JSON of a value, or a reference to the stored value if its JSON is above 256 KiB; durable once it resolves. */
  store(value: unknown): Promise<string>;
  /** Returns the value that was passed to `store`. */
  load(stored: string): unknown;
  /** The length of the value's JSON, in characters or bytes. */
  size(stored: string): number;
}

/** How much work an engine accepts, and how long it keeps ended work. */
export interface EngineLimits {
  /** Maximum of waiting inputs per session; further ones are refused with `too_many_requests`. Default 100. */
  readonly waitingPerSession: number;
  /** Maximum of waiting inputs in total, and of waiting runs; further ones are refused with `unavailable`. Default 10,000. */
  readonly waiting: number;
  /**
   * Maximum of waiting inputs, and of waiting runs, per principal; further ones are refused with `too_many_requests`.
   * Default: as many as the principal leaves places free for others.
   */
  readonly waitingPerOwner?: number;
  /** Dispatches, calls and runs that run at the same time. Default 256. */
  readonly running: number;
  /** Attempts at a dispatch before it is a dead letter. Default 5. */
  readonly attempts: number;
  /** The pause before the second attempt; doubled before each further attempt, with jitter. Default 1,000. */
  readonly backoffMs: number;
  /** The longest pause between two attempts. Default 60,000. */
  readonly longestBackoffMs: number;
  /** How long ended work is kept. Default seven days. */
  readonly retentionMs: number;
  /** After the clock was set forward by some time, retention pauses for the same time, but at most for this; default: `retentionMs`. */
  readonly longestRetentionMs?: number;
  /** Events kept per stream; older ones are deleted. Default 100,000. */
  readonly eventsPerStream: number;
  /** Size of all events on disk, in bytes; above it the oldest are deleted. Default 1 GiB. */
  readonly eventBytes: number;
  /** Deliveries kept per webhook, plus a tenth as many unverified ones. Default 10,000. */
  readonly deliveriesPerWebhook: number;
  /** How long the lease holder can be silent before another process takes over. Default 10,000. */
  readonly leaseMs: number;
  /** How often a process checks for writes of other processes. Default 50. */
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

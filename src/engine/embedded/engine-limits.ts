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
  /** What has ended is kept for so long. Default seven days. */
  readonly retentionMs: number;
  /** After the clock was set forward, nothing is removed for its age for as long, at most; default: `retentionMs`. */
  readonly longestRetentionMs?: number;
  /** The newest events that a stream keeps; older ones go. Default 100,000. */
  readonly eventsPerStream: number;
  /** What all events together may take on disk; over it the oldest go. Default 1 GiB. */
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

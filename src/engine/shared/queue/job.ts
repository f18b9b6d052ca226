/** One piece of work, and its place in a line. */
export interface Job {
  readonly id: string;
  /** Jobs of one line run one at a time, in the order of joining. A run has a line of its own. */
  readonly line: string;
  /** The owner, which gets a fair share of the slots: a principal, an instance or a workflow. */
  readonly owner: string;
  /**
   * Does the job. The queue calls it with a slot once the job is the first of its line; the job keeps slot and line until
   * the promise resolves. The job reads its input here, because thousands can wait and each holds only its id. Must not
   * reject. `releaseSlot` releases the slot for a while, and returns the function that takes it back; the job keeps its
   * line, unless it `leavesLine`.
   */
  begin(releaseSlot: () => () => void): Promise<JobEnd>;
  /** Whether the job is an input whose message can join the work that runs in its line. */
  readonly joins?: boolean;
  /** Whether the job also leaves its line, for good, when it releases its slot. */
  readonly leavesLine?: boolean;
  /** Called if the job leaves the queue before it has begun, because the lease is lost or the engine closes. */
  forget?(): void;
  /** Whether the job began under a lease that is lost: the same work can be in the line again, under the current lease. */
  isStale?(): boolean;
}

/**
 * `ended`: the line continues with its next job. `retryAt` (ms since 1970): the job releases its slot, stays the first of
 * its line, and begins again at that time.
 */
export type JobEnd = { readonly ended: true } | { readonly retryAt: number };

/** Selects the jobs of one line, the jobs of one owner, or, with neither, all jobs. */
export interface LineScope {
  readonly line?: string;
  readonly owner?: string;
}

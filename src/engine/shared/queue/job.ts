/** One thing to do, and where it stands in line. */
export interface Job {
  readonly id: string;
  /** Jobs of one line run one at a time, in the order of joining. A run has a line of its own. */
  readonly line: string;
  /** The owner, which gets a fair share: a principal, or an instance or workflow. */
  readonly owner: string;
  /**
   * Does the job. Called with a slot, once the job is the first of its line; it keeps both until it resolves. It reads
   * its input here: thousands may wait, and each holds its id only. Must not reject. `releaseSlot` releases the slot for
   * a while, and returns the function that takes it back; the line is kept.
   */
  begin(releaseSlot: () => () => void): Promise<JobEnd>;
  /** Called when the job leaves the queue before it began, because the lease is lost or the engine closes. */
  forget?(): void;
  /** Whether it began under a lease that is lost: it may be in its line a second time, under the lease of now. */
  isStale?(): boolean;
}

/**
 * `ended`: the line goes on. `retryAt` (ms since 1970): it gives its slot back, stays the first of its
 * line, and is begun again then.
 */
export type JobEnd = { readonly ended: true } | { readonly retryAt: number };

/** One line, all jobs of one owner, or, with neither, all there is. */
export interface LineScope {
  readonly line?: string;
  readonly owner?: string;
}

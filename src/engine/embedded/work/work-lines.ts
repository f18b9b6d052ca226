/** One thing to do, and where it stands in line. */
export interface Work {
  readonly id: string;
  /** Work of one line runs one at a time, in the order of joining. A run has a line of its own. */
  readonly line: string;
  /** The owner, which gets a fair share: a principal, or an instance or workflow. */
  readonly owner: string;
  /**
   * Does the work. Called with a slot, once the work is the first of its line; it keeps both until it resolves. It reads
   * its input here: thousands may wait, and each holds its id only. Must not reject. `releaseSlot` releases the slot for
   * a while, and returns the function that takes it back; the line is kept.
   */
  begin(releaseSlot: () => () => void): Promise<WorkEnd>;
  /** Called when the work leaves the queue before it began, because the lease is lost or the engine closes. */
  forget?(): void;
}

/**
 * `ended`: the line goes on. `retryAt` (ms since 1970): it gives its slot back, stays the first of its
 * line, and is begun again then.
 */
export type WorkEnd = { readonly ended: true } | { readonly retryAt: number };

/** One line, all work of one owner, or, with neither, all there is. */
export interface LineScope {
  readonly line?: string;
  readonly owner?: string;
}

/**
 * The queue of an engine. Work of one line runs one at a time, all work in no more than a number of slots. Owners have
 * equal shares of the slots as far as they have work; the lines of one owner take turns.
 */
export interface WorkLines {
  /** Adds work at the end of its line. Nothing begins before `open`. */
  join(work: Work): void;
  /** Removes work that waits, for its next attempt too. False for work that runs or is in no line. */
  leave(work: { readonly id: string; readonly line: string }): boolean;
  /**
   * Registers running work that can be suspended: `release` is called once other work waits for its slot. Returns the
   * function that unregisters it.
   */
  onSlotWanted(release: () => void): () => void;
  /** How many wait; those that run are not counted. */
  waiting(scope?: LineScope): number;
  /**
   * Milliseconds after which a refused sender should retry, estimated from the time that work takes and from the
   * senders refused before. Undefined while another process does the work.
   */
  retryDelay(scope: LineScope): number | undefined;
  open(): void;
  /** Begins nothing more. With `clear`, waiting work is forgotten: it is loaded from the database at the next start. */
  close(options?: { readonly clear?: boolean }): void;
  /** Resolves once no work holds a slot. */
  slotsFree(): Promise<void>;
  /** Resolves once no work runs, work with a released slot included. */
  idle(): Promise<void>;
}

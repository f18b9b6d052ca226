/** One thing to do, and where it stands in line. */
export interface Work {
  readonly id: string;
  /** What shares a line is done one at a time, in the order of joining. A run has a line of its own. */
  readonly line: string;
  /** Who is to have no more than a fair share: a principal, or what stands for one. */
  readonly owner: string;
  /**
   * Does it. Called with a slot, once it is the first of its line; keeps both until it resolves. Reads
   * what it needs here: thousands may wait, and each holds its id only. Must not reject. `standAside` gives
   * the slot to others for a while, and the way back; the line is kept.
   */
  begin(standAside: () => () => void): Promise<WorkEnd>;
  /** It has lost its place before it was begun, because the lease is lost or the engine closes. */
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
 * Who may work: in one line one at a time, in all no more than there are slots. Owners have equal shares of the
 * slots, as far as they have work; the lines of one owner take turns.
 */
export interface WorkLines {
  /** At the end of its line. Nothing is begun before `open`. */
  join(work: Work): void;
  /** Takes out what waits, also for its next attempt. False for what runs, or is in no line. */
  leave(work: { readonly id: string; readonly line: string }): boolean;
  /**
   * Of work that runs and could go on later: `giveBack` is called once something waits for its slot. Gives the
   * way to take the offer back.
   */
  offerSlot(giveBack: () => void): () => void;
  /** How many wait; those that run are not counted. */
  waiting(scope?: LineScope): number;
  /**
   * Of one for whom there is no room: in how many ms there will be, judging by how fast the work goes, and behind
   * those who were turned away before. Undefined where this process does not do the work.
   */
  turnAway(scope: LineScope): number | undefined;
  open(): void;
  /** Begins nothing more. With `clear`, what waits is forgotten: its place is in the database. */
  close(options?: { readonly clear?: boolean }): void;
  /** Resolves once nothing runs but what stands aside. */
  calm(): Promise<void>;
  /** Resolves once nothing runs, nothing that stands aside either. */
  idle(): Promise<void>;
}

import type { EntryEnd, JournalEntry } from "./replay.ts";

export type EntryHead = Omit<JournalEntry, "outcome">;

/** A wait that has begun, for a time or a signal. */
export interface BegunWait {
  readonly head: EntryHead;
  /** Ms since 1970, of `EngineBase.time`. */
  readonly deadline: number | undefined;
}

/** The journals of runs. */
export interface RunJournals {
  /**
   * Opens the journal of a run for the process that has claimed it under a fence. What the journal writes from then on
   * rejects with `lease_lost` once another process has taken over.
   */
  open(run: { readonly id: number; readonly run_id: string }, fence: number): Promise<RunJournal>;
}

/**
 * The journal of one run, for the process that executes it. A write resolves once it is on disk; what is asked for in one
 * turn of the event loop may be written together. The journal numbers the ends, from 1 and without gaps, in the order in
 * which they are on disk.
 */
export interface RunJournal {
  /** The entries that it had when it was opened, in the order of positions. */
  readonly entries: readonly JournalEntry[];
  /** Records how a position has ended. */
  end(head: EntryHead, outcome: Omit<EntryEnd, "ended_as">): Promise<EntryEnd>;
  /**
   * Records that a wait has begun; gives its end, recorded too, where its signal is there already or its time has come.
   * `schema` is as the blobs stored it.
   */
  beginWait(wait: BegunWait, schema: string | null): Promise<EntryEnd | undefined>;
  /** Whether one of some waits can end, as far as can be seen without a write. */
  hasDue(waits: readonly BegunWait[]): boolean | Promise<boolean>;
  /** Ends those waits whose signal or time has come, in their order; a signal goes to the first that waits for it. */
  endWaits(waits: readonly BegunWait[]): Promise<readonly EndedWait[]>;
}

export interface EndedWait {
  readonly position: number;
  readonly end: EntryEnd;
}

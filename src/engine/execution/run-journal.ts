import type { RunStatus, RunWait } from "../../protocol/run.ts";
import type { Timeline } from "../durable-time.ts";
import type { EntryEnd, JournalEntry } from "./replay.ts";

/** A row of `runs`; times in ms since 1970. */
export interface RunRow {
  /** The order of admission. */
  readonly id: number;
  readonly run_id: string;
  readonly workflow: string;
  readonly status: RunStatus;
  /** 1 once a caller has cancelled it. */
  readonly cancelling: number;
  readonly crashes: number;
  readonly crashed_at: number;
  readonly idempotency_key: string | null;
  readonly accepted_at: number;
  readonly started_at: number | null;
  readonly ended_at: number | null;
  readonly wake_at: number | null;
  readonly error: string | null;
  readonly payload: string;
  readonly result: string | null;
  /** `ownerOfRun`. */
  readonly owner: string;
  /** `toStoredTrace`. */
  readonly trace: string | null;
  /** The run that has started it. */
  readonly parent: string | null;
}

export type EntryHead = Omit<JournalEntry, "outcome">;

/** The journals of runs, and the signals that their waits take. What writes is called in a transaction. */
export interface RunJournal {
  /** In the order of positions. */
  load(run: number): JournalEntry[];
  end(run: number, head: EntryHead, end: EntryEnd): void;
  beginWait(
    run: number,
    head: EntryHead,
    how: { readonly deadline: number | undefined; readonly schema: string | null },
  ): void;
  /** The schema of the first open wait of a name, as the blobs stored it; undefined where that wait has none. */
  schemaOf(run: number, name: string): string | undefined;
  /** The oldest signal of a name that has not been taken, if it came by the deadline. */
  nextSignal(run: number, name: string, deadline: number | undefined): PendingSignal | undefined;
  take(signal: PendingSignal): void;
  /** Whether a wait has begun for which there is a signal already. */
  canGoOn(run: number): boolean;
  /** The waits of a run that are open. */
  waits(run: number, toWall: Timeline["toWall"]): readonly RunWait[];
  delete(run: number): void;
}

export interface PendingSignal {
  readonly id: number;
  readonly payload: string;
}

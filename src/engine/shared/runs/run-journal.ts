import { KitError } from "../../../base/kit-error.ts";
import type { RunJournalEntry, RunWait } from "../../../protocol/run.ts";

/** A call at its position, as the journal stores it. */
export interface EntryHead extends Omit<JournalEntry, "outcome"> {
  /** The highest `ended_as` of the ends that the run had got when it made the call; 0 before the first. */
  readonly made_after: number;
}

/** A wait that has begun, for a time or a signal. */
export interface BegunWait {
  readonly head: EntryHead;
  /** Ms since 1970, of `EngineBase.time`. */
  readonly deadline: number | undefined;
}

/** The journals of runs. */
export interface RunJournals {
  /**
   * Opens the journal of a run for the process that has claimed the run under a fence. Writes reject with `lease_lost`
   * once another process has taken over.
   */
  open(run: { readonly id: number; readonly run_id: string }, fence: number): Promise<RunJournal>;
  /** The entries of a run after a position. */
  page(
    run: number,
    page: { readonly after: number; readonly limit: number },
  ): Promise<readonly RunJournalEntry[]>;
  /** The open waits of some runs, by run. */
  waits(runs: readonly number[]): Promise<ReadonlyMap<number, readonly RunWait[]>>;
}

/**
 * The journal of one run, for the process that executes it. A write resolves once it is on disk; writes of one turn of the
 * event loop can share a transaction. The journal numbers the ends, from 1 and without gaps, in the order in which they
 * are written.
 */
export interface RunJournal {
  /** The entries at the time of opening, in the order of positions. */
  readonly entries: readonly JournalEntry[];
  /** Records the outcome of a position. */
  end(head: EntryHead, outcome: Omit<EntryEnd, "ended_as">): Promise<EntryEnd>;
  /**
   * Records that a wait has begun. If its signal has arrived or its deadline has passed, records and returns its end
   * instead. `schema` is the stored form of `Blobs.store`.
   */
  beginWait(wait: BegunWait, schema: string | null): Promise<EntryEnd | undefined>;
  /** Whether one of the waits can end, checked without a write. */
  hasDue(waits: readonly BegunWait[]): boolean | Promise<boolean>;
  /** Ends the waits whose signal has arrived or whose deadline has passed, in order; a signal ends the first wait for it. */
  endWaits(waits: readonly BegunWait[]): Promise<readonly EndedWait[]>;
}

export interface EndedWait {
  readonly position: number;
  readonly end: EntryEnd;
}

/** The position of a run in its journal, and the entries that were recorded. */
export interface Replay {
  /** Moves to the next position, and returns its entry. Throws `replay_mismatch` if another call was recorded there. */
  ask(kind: CallKind, name: string): Asked;
  /** Whether the run takes the new branch of a change of its code. The first answer holds for the whole run. */
  patched(id: string): PatchAnswer;
  /** Whether recorded positions are left that the run has not reached yet. */
  readonly hasRecorded: boolean;
  /** The first recorded entry that the run has not reached. */
  readonly next: JournalEntry | undefined;
  /** Throws `replay_mismatch` if the run has ended before it reached all recorded entries. */
  checkEnd(): void;
}

export interface Asked {
  readonly position: number;
  readonly recorded: JournalEntry | undefined;
}

/**
 * `new`: no later entry is recorded, so the run takes the new branch once its marker is recorded at the position.
 * `marker` is the end of a recorded marker, at the first call for its id.
 */
export type PatchAnswer =
  | { readonly is: "new"; readonly position: number }
  | { readonly is: "known"; readonly value: boolean; readonly marker?: EntryEnd | undefined };

/**
 * Starts before the first position of a journal. `onPassed` is called with the end of each marker that the run passes
 * without a call of `patched` for it.
 */
export function createReplay(
  entries: readonly JournalEntry[],
  onPassed: (end: EntryEnd) => void = () => undefined,
): Replay {
  const recorded = new Map<number, JournalEntry>();
  const markers = new Map<number, JournalEntry>();
  const consumed = new Set<JournalEntry>();
  const answers = new Map<string, boolean>();
  /** The last recorded position that is not a marker's: a run is not behind if only markers are left. */
  let last = 0;
  let position = 0;
  for (const entry of entries) {
    (entry.kind === "patch" ? markers : recorded).set(entry.position, entry);
    if (entry.kind !== "patch") last = Math.max(last, entry.position);
  }

  /** Moves to the next position that is not a marker's. */
  function advance(): void {
    for (position += 1; ; position += 1) {
      const marker = markers.get(position);
      if (marker === undefined) return;
      const end = consume(marker);
      if (end !== undefined) onPassed(end);
    }
  }

  /** Returns the end of a marker at the first call for it. */
  function consume(marker: JournalEntry): EntryEnd | undefined {
    if (consumed.has(marker) || marker.outcome.state === "pending") return undefined;
    consumed.add(marker);
    return marker.outcome;
  }

  return {
    ask(kind, name) {
      advance();
      const entry = recorded.get(position);
      if (entry === undefined) return { position, recorded: undefined };
      if (entry.kind !== kind || entry.name !== name) throw mismatch(entry, describe(kind, name));
      // Each entry is read once, so a long run need not keep it in memory.
      recorded.delete(position);
      return { position, recorded: entry };
    },
    patched(id) {
      const answer = answers.get(id);
      if (answer !== undefined) return { is: "known", value: answer };
      for (const marker of markers.values()) {
        if (marker.name !== id) continue;
        answers.set(id, true);
        return { is: "known", value: true, marker: consume(marker) };
      }
      const value = position >= last;
      answers.set(id, value);
      if (!value) return { is: "known", value };
      advance();
      return { is: "new", position };
    },
    get hasRecorded() {
      return position < last;
    },
    get next() {
      return recorded.values().next().value;
    },
    checkEnd() {
      for (const entry of recorded.values()) throw mismatch(entry, "the end of the run");
    },
  };
}

function mismatch(entry: JournalEntry, actual: string): KitError {
  const recordedCall = describe(entry.kind, entry.name);
  return new KitError({
    code: "replay_mismatch",
    message: `Position ${entry.position} of the run was recorded as ${recordedCall}, but the workflow's code now asks for ${actual}.`,
    hint: "The code of the workflow has changed since the run began, or it is not deterministic: put everything that can differ between two executions (time, random values, requests) into steps.",
    meta: { position: entry.position, recorded: recordedCall, asked: actual },
  });
}

function describe(kind: EntryKind, name: string): string {
  return name === "" ? kind : `${kind} ${JSON.stringify(name)}`;
}

/** The kinds of journal entries: the calls of a run's context. A `patch` marks that the run takes the new branch of a change. */
export type EntryKind = "step" | "sleep" | "wait" | "now" | "uuid" | "dispatch" | "patch";

/** A call that has a result, or ends a wait. */
export type CallKind = Exclude<EntryKind, "patch">;

/** The journal entry of one position. */
export interface JournalEntry {
  /** From 1, in the order of the run's calls. */
  readonly position: number;
  readonly kind: EntryKind;
  /** The name of a step or a signal, the agent of a dispatch, or the id of a patch; empty for other kinds. */
  readonly name: string;
  readonly outcome: EntryOutcome;
}

/**
 * `pending` is a wait that has begun; other calls are recorded when they end. `ended_as` numbers the ends from 1, in the
 * order in which the run got them. `value` is the stored form of `Blobs.store`; null stands for `undefined`.
 */
type EntryOutcome = { readonly state: "pending"; readonly deadline: number | undefined } | EntryEnd;

export interface EntryEnd {
  readonly state: "done" | "failed";
  readonly ended_as: number;
  readonly value: string | null;
}

/** A row of `run_journal`. */
export interface EntryRow {
  readonly position: number;
  readonly kind: EntryKind;
  readonly name: string;
  readonly state: JournalEntry["outcome"]["state"];
  readonly deadline: number | null;
  readonly ended_as: number | null;
  readonly value: string | null;
}

/** Converts a row to an entry. */
export function toEntry({ position, kind, name, state, deadline, ended_as, value }: EntryRow): JournalEntry {
  const outcome =
    state === "pending"
      ? { state, deadline: deadline ?? undefined }
      : { state, ended_as: Number(ended_as), value };
  return { position, kind, name, outcome };
}

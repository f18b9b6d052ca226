import { KitError } from "../../../base/kit-error.ts";

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

/** A run's way along its journal: which position is next, and what was recorded there. */
export interface Replay {
  /** Takes the next position. Throws `replay_mismatch` when it was recorded as something else. */
  ask(kind: CallKind, name: string): Asked;
  /** Whether the run takes the new branch of a change of its code. The first answer holds for the whole run. */
  patched(id: string): PatchAnswer;
  /** Whether positions that were recorded are still to be asked for. */
  readonly behind: boolean;
  /** The first recorded position that was not asked for. */
  readonly next: JournalEntry | undefined;
  /** Throws `replay_mismatch` when the run has ended before it came to what was recorded. */
  checkEnd(): void;
}

export interface Asked {
  readonly position: number;
  readonly recorded: JournalEntry | undefined;
}

/**
 * `new`: the run has got to where nothing is recorded, and takes the new branch once its marker is recorded at the position.
 * `marker` is the end of a recorded marker, the first time that it is asked for.
 */
export type PatchAnswer =
  | { readonly is: "new"; readonly position: number }
  | { readonly is: "known"; readonly value: boolean; readonly marker?: EntryEnd | undefined };

/**
 * Begins at the first position of a journal. `onPassed` is called with the ends of markers on the way whose patches the code
 * no longer asks about.
 */
export function createReplay(
  entries: readonly JournalEntry[],
  onPassed: (end: EntryEnd) => void = () => undefined,
): Replay {
  const recorded = new Map<number, JournalEntry>();
  const markers = new Map<number, JournalEntry>();
  const consumed = new Set<JournalEntry>();
  const answers = new Map<string, boolean>();
  /** A marker asks for nothing itself: a run is not behind when only markers are left. */
  let last = 0;
  let position = 0;
  for (const entry of entries) {
    (entry.kind === "patch" ? markers : recorded).set(entry.position, entry);
    if (entry.kind !== "patch") last = Math.max(last, entry.position);
  }

  /** To the next position that is not a marker's. */
  function advance(): void {
    for (position += 1; ; position += 1) {
      const marker = markers.get(position);
      if (marker === undefined) return;
      const end = consume(marker);
      if (end !== undefined) onPassed(end);
    }
  }

  /** The end of a marker, once. */
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
      // A result is asked for once; a long run need not hold it any longer.
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
    get behind() {
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

function mismatch(entry: JournalEntry, asked: string): KitError {
  const was = describe(entry.kind, entry.name);
  return new KitError({
    code: "replay_mismatch",
    message: `Position ${entry.position} of the run was recorded as ${was}, and the workflow now asks for ${asked}.`,
    hint: "The workflow's code has changed under a run that had begun, or does not do the same each time: put what differs (time, chance, the world) into steps.",
    meta: { position: entry.position, recorded: was, asked },
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
  /** From 1, in the order in which the run asked. */
  readonly position: number;
  readonly kind: EntryKind;
  /** The name of a step or a signal, the agent of a dispatch, or the id of a patch; empty for other kinds. */
  readonly name: string;
  readonly outcome: EntryOutcome;
}

/**
 * `pending` is a wait that has begun; the rest is recorded when it ends. `ended_as` counts the ends from
 * 1, in the order in which the run was told of them. `value` is as the blobs stored it; null is undefined.
 */
type EntryOutcome = { readonly state: "pending"; readonly deadline: number | undefined } | EntryEnd;

export interface EntryEnd {
  readonly state: "done" | "failed";
  readonly ended_as: number;
  readonly value: string | null;
}

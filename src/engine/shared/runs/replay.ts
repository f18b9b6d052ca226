import { KitError } from "../../../base/kit-error.ts";

/** A run's way along its journal: which position is next, and what was recorded there. */
export interface Replay {
  /** Takes the next position. Throws `replay_mismatch` when it was recorded as something else. */
  ask(kind: EntryKind, name: string): Asked;
  /** Whether positions that were recorded are still to be asked for. */
  readonly behind: boolean;
  /** Throws `replay_mismatch` when the run has ended before it came to what was recorded. */
  checkEnd(): void;
}

export interface Asked {
  readonly position: number;
  readonly recorded: JournalEntry | undefined;
}

/** Begins at the first position of a journal. */
export function createReplay(entries: readonly JournalEntry[]): Replay {
  const recorded = new Map(entries.map((entry) => [entry.position, entry]));
  const last = entries.reduce((highest, entry) => Math.max(highest, entry.position), 0);
  let position = 0;
  return {
    ask(kind, name) {
      position += 1;
      const entry = recorded.get(position);
      if (entry === undefined) return { position, recorded: undefined };
      if (entry.kind !== kind || entry.name !== name) throw mismatch(entry, describe(kind, name));
      // A result is asked for once; a long run need not hold it any longer.
      recorded.delete(position);
      return { position, recorded: entry };
    },
    get behind() {
      return position < last;
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

/** The kinds of journal entries: the calls of a run's context. */
export type EntryKind = "step" | "sleep" | "wait" | "now" | "uuid" | "dispatch";

/** The journal entry of one position. */
export interface JournalEntry {
  /** From 1, in the order in which the run asked. */
  readonly position: number;
  readonly kind: EntryKind;
  /** The name of a step or a signal, or the agent of a dispatch; empty for other kinds. */
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

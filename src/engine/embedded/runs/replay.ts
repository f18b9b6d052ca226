import { KitError } from "../../../base/kit-error.ts";
import type { EntryKind, JournalEntry } from "./journal-entry.ts";

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

import { isoTime } from "../../base/clock.ts";
import { KitError } from "../../base/kit-error.ts";
import type { SessionEntry } from "../../protocol/session-entry.ts";
import type { PastOperation } from "../log/past-operation.ts";
import { maskValue } from "../secrets.ts";
import type { TurnLoop } from "../turn/turn-loop.ts";

/** Names of the notes for a backend's saved state and for the end of a run. */
export const stateNote = "backend_state";
export const endNote = "backend_ended";

const maxNote = 1_048_576;
const maxNotes = 16 * maxNote;

export interface StateNote {
  readonly backend: string;
  readonly run: number;
  readonly value: unknown;
}

/** A note entry of an operation, with secrets masked. */
export function noteEntry(
  { operationId: operation_id, clock, toolRun }: Pick<TurnLoop, "operationId" | "clock" | "toolRun">,
  name: string,
  value: unknown,
): SessionEntry {
  const masked = toolRun.mask === undefined ? value : maskValue(value, toolRun.mask);
  return { version: 1, type: "note", name, value: masked, timestamp: isoTime(clock.now()), operation_id };
}

/** The notes that one run of a backend keeps in the log. */
export class BackendNotes {
  readonly #of: Pick<StateNote, "backend" | "run">;
  /** Characters of JSON saved so far. */
  #size = 0;

  constructor(of: Pick<StateNote, "backend" | "run">) {
    this.#of = of;
  }

  /** The run's notes, oldest first, and the log position of the last one. */
  read(past: PastOperation | undefined): { readonly saved: readonly unknown[]; readonly position: number } {
    const saved: unknown[] = [];
    let last = 0;
    for (const { name, value, position } of past?.notes ?? []) {
      const note = value as StateNote;
      if (name !== stateNote || note.backend !== this.#of.backend || note.run !== this.#of.run) continue;
      saved.push(note.value);
      this.#size += sizeOf(note.value);
      last = position;
    }
    return { saved, position: last };
  }

  /** Makes the note of a value. Throws `payload_too_large` beyond the limits of a note or a run. */
  toNote(value: unknown): StateNote {
    const size = sizeOf(value);
    this.#size += size;
    if (size > maxNote)
      throw tooLarge(this.#of.backend, `${size} characters in one note: it may have ${maxNote}`);
    if (this.#size > maxNotes)
      throw tooLarge(this.#of.backend, `${this.#size} characters in one run: it may have ${maxNotes}`);
    return { ...this.#of, value };
  }
}

/** The number of runs that have ended. */
export function endedRuns(past: PastOperation): number {
  return past.notes.filter(({ name }) => name === endNote).length;
}

function sizeOf(value: unknown): number {
  return (JSON.stringify(value) ?? "").length;
}

function tooLarge(backend: string, fault: string): KitError {
  return new KitError({
    code: "payload_too_large",
    message: `The backend "${backend}" keeps ${fault}.`,
    hint: "Keep large things in files of the sandbox, and their names in the state.",
  });
}

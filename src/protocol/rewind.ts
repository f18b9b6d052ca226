import { isRecord } from "../base/record.ts";
import type { SessionEntry } from "./session-entry.ts";

/** The name of the note with which a session goes on before an earlier message. */
export const rewindNote = "rewind";

/**
 * A session goes on before one of its messages. The log keeps the entries from there up to the note, and no prompt has them: they
 * are a branch that has ended.
 */
export interface Rewind {
  /** The log position, from 1, of the first entry that is left behind. */
  readonly before: number;
  /** The operation of that entry. */
  readonly operation_id: string;
  /** The operation that goes on there. The note is not an entry of its own: the operation has not begun with it. */
  readonly by: string;
}

/** Reads a rewind; undefined for every other entry. */
export function readRewind(entry: SessionEntry | undefined): Rewind | undefined {
  if (entry?.type !== "note" || entry.name !== rewindNote || !isRecord(entry.value)) return undefined;
  return entry.value as unknown as Rewind;
}

/**
 * Goes through entries from the newest to the oldest, and tells of each whether it was left behind. A rewind that was left behind
 * has no effect.
 *
 * @param position The log position of an entry, from 1; each call has a lower one than the call before.
 */
export function createBranch(): (entry: SessionEntry | undefined, position: number) => boolean {
  let before = Number.POSITIVE_INFINITY;
  return (entry, position) => {
    if (position >= before) return true;
    before = readRewind(entry)?.before ?? Number.POSITIVE_INFINITY;
    return false;
  };
}

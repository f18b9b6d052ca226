import { isRecord } from "../base/record.ts";
import type { EventError } from "./errors.ts";
import type { SessionEntry } from "./session-entry.ts";

/** The name of the note with the end of an operation. */
export const operationEndNote = "operation_end";

/**
 * The end of an operation that failed or was aborted, in the session's log; a completed operation has none. It holds until a
 * later entry of the same operation, which a person has tried again.
 */
export interface OperationEnd {
  readonly status: "failed" | "aborted";
  readonly error?: EventError;
  /** Attempts of the engine, from 2; absent for one. */
  readonly attempts?: number | undefined;
  /** The last attempt. */
  readonly duration_ms: number;
  /** The dispatched input that the operation worked on, which a person can try again. */
  readonly dispatch_id?: string | undefined;
  /** The user's text, if the operation ended before the log had it. */
  readonly message?: string;
}

/** Reads the note with the end of an operation; undefined for every other entry. */
export function readOperationEnd(
  entry: SessionEntry,
): (OperationEnd & { readonly operation_id: string; readonly timestamp: string }) | undefined {
  if (entry.type !== "note" || entry.name !== operationEndNote || entry.operation_id === undefined)
    return undefined;
  const { operation_id, timestamp } = entry;
  return isRecord(entry.value)
    ? { ...(entry.value as unknown as OperationEnd), operation_id, timestamp }
    : undefined;
}

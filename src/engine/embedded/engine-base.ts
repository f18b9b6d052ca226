import type { DatabaseSync } from "node:sqlite";
import type { Clock } from "../../base/clock.ts";
import type { Timeline } from "./time/timeline.ts";
import type { WorkLines } from "./work/work-lines.ts";

/** What the parts of the embedded engine share. */
export interface EngineBase {
  /** The time of day: what records say, and when schedules are due. */
  readonly clock: Clock;
  /** What waits, pauses and claims are counted by. */
  readonly time: Timeline;
  readonly lease: Lease;
  readonly blobs: Blobs;
  /** Where all that is to be done stands in line. */
  readonly lines: WorkLines;
  /**
   * Fires, with a `KitError` `aborted`, when a drain has waited long enough: what runs is to end now, and
   * is given back as if its attempt had not been.
   */
  readonly stopping: AbortSignal;
  /** Fires as soon as a drain begins: what only waits for a store that is away is not waited for. */
  readonly draining: AbortSignal;
  /** For reading; it sees all that was committed, by other processes too. */
  readonly database: DatabaseSync;
  /**
   * Runs `write` in the next transaction, together with what others write at the time, in the order of
   * the calls. Resolves once that transaction is on disk (one fsync for all). What `write` throws undoes
   * its own part only, and rejects; so does all with `unavailable` when the store is locked or full. With
   * `fenced`, it is refused with `lease_lost` unless this process still holds the lease, which is looked up
   * in the same transaction; with `fence`, unless it is also still the same tenure.
   *
   * `write` changes nothing but the database, because the transaction may fail after it. It is the
   * database that is read from: statements prepared there serve here.
   */
  commit<Value>(write: (database: DatabaseSync) => Value, options?: CommitOptions): Promise<Value>;
}

export interface CommitOptions {
  readonly fenced?: boolean;
  readonly fence?: number;
}

/** The right to do the work of an engine's folder: one process at a time. */
export interface Lease {
  /** Rises each time the lease changes hands; 0 before it is held. */
  readonly fence: number;
  /** Fires, with a `KitError` `lease_lost`, when another process has taken over, or may have. */
  readonly signal: AbortSignal;
}

/** `WorkContext.checkFence`. */
export function fenceCheck({ commit }: Pick<EngineBase, "commit">, fence: number): () => Promise<void> {
  return () => commit(() => undefined, { fence });
}

/** Payloads too large for a row. */
export interface Blobs {
  /** The JSON text of a value, or of a reference to it when it is above 256 KiB; durable when it resolves. */
  store(value: unknown): Promise<string>;
  /** The value that `store` was given. */
  load(stored: string): unknown;
  /** How long its JSON is, in characters or bytes. */
  size(stored: string): number;
}

import type { Database } from "../../sqlite/statements.ts";
import type { EngineHandlers } from "../contract.ts";
import type { EngineBase, Lease } from "../shared/engine-base.ts";
import type { Timeline } from "./lease.ts";

/** The base of the parts that hold SQL. */
export interface EmbeddedBase extends EngineBase {
  readonly time: Timeline;
  /** The right to do the work of the engine's folder. */
  readonly lease: Lease;
  /** Reads see every committed write, those of other processes included; the statements of `commit` are prepared on it too. */
  readonly database: Database;
  /**
   * Runs `write` in the next transaction, together with what others write at the time, in the order of
   * the calls. Resolves once that transaction is on disk (one fsync for all). What `write` throws undoes
   * its own part only, and rejects; so does all with `unavailable` when the store is locked or full. With
   * `fenced`, it is refused with `lease_lost` unless this process still holds the lease, which is looked up
   * in the same transaction; with `fence`, unless it is also still the same tenure.
   *
   * `write` changes nothing but the database, because the transaction may fail after it.
   */
  commit<Value>(write: () => Value, options?: CommitOptions): Promise<Value>;
}

export interface CommitOptions {
  readonly fenced?: boolean;
  readonly fence?: number;
}

/** A part does work while this process holds the lease: dispatches, runs, schedules. */
export interface EnginePart {
  /**
   * Called each time this process gains the lease: requeues the running work of a dead holder, and enqueues waiting
   * work (`base.queue`, closed until all parts have started). Once the lease's signal, which belongs to this tenure,
   * fires, the part drops its timers and its other state until the next call.
   */
  start(handlers: EngineHandlers): Promise<void>;
  /**
   * Called when another process has written. Resolves callers that wait for an end. With the lease, also enqueues
   * admitted work and aborts cancelled work.
   */
  onForeignWrite(): void;
  /** The engine calls it after the machine's clock was set, forward or back. */
  clockSet?(): Promise<void>;
  /** Called before the engine closes: callers that wait for an end are rejected with `reason`. */
  close(reason: unknown): void;
  /** Removes a small batch of work that ended before a time (ms); false once there is no more. */
  prune?(endedBefore: number): Promise<boolean>;
}

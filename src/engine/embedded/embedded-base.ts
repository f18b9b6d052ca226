import type { Database } from "../../sqlite/statements.ts";
import type { EngineHandlers } from "../contract.ts";
import type { EngineBase, Lease } from "../shared/engine-base.ts";
import type { Timeline } from "./lease.ts";

/** The base of the parts that use SQL. */
export interface EmbeddedBase extends EngineBase {
  readonly time: Timeline;
  /** The right to do the work of the engine's folder. */
  readonly lease: Lease & { readonly holderDied: boolean };
  /** Reads see every committed write, also those of other processes. The statements of `commit` use this connection too. */
  readonly database: Database;
  /**
   * Runs `write` in the next transaction, together with the writes of other callers, in the order of the calls. Resolves
   * once the transaction is on disk (one fsync for all). If `write` throws, only its changes are undone, and the promise
   * rejects with that error. If the store is locked or full, all writes of the transaction reject with
   * `store_unavailable`. With `fenced`, rejects with `lease_lost` unless this process holds the lease, which the same
   * transaction checks; with `fence`, unless it also still holds the same tenure.
   *
   * `write` must change nothing but the database, because the transaction can fail after it.
   */
  commit<Value>(write: () => Value, options?: CommitOptions): Promise<Value>;
}

export interface CommitOptions {
  readonly fenced?: boolean;
  readonly fence?: number;
  /** Whether the write is no work: it happens again and again, and its loss would lose nothing. */
  readonly isUpkeep?: boolean;
}

/** A part of the engine that works while this process holds the lease: dispatches, runs, schedules. */
export interface EnginePart {
  /**
   * Called each time this process gains the lease. Requeues the running work of a dead holder, and enqueues waiting
   * work (`base.queue` is closed until all parts have started). When the lease's signal, which belongs to this tenure,
   * fires, the part drops its timers and its other state until the next call.
   */
  start(handlers: EngineHandlers): Promise<void>;
  /**
   * Called when another process has written. Resolves callers that wait for an end. The lease holder also enqueues
   * admitted work and aborts cancelled work.
   */
  onForeignWrite(): void;
  /** Called after the machine's clock was set forward or back. */
  clockSet?(): Promise<void>;
  /** Called before the engine closes. Rejects callers that wait for an end with `reason`. */
  close(reason: unknown): void;
  /** Removes a small batch of work that ended before a time (ms since 1970); false once there is no more. */
  prune?(endedBefore: number): Promise<boolean>;
}

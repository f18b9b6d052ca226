import type { EngineHandlers } from "../contract.ts";

/** What does work while this process holds the lease: dispatches, runs, schedules. */
export interface EnginePart {
  /**
   * The lease has just been gained, for the first time or again: takes over what a dead holder left as
   * running, and lets what waits join the lines (`base.lines`, closed until all parts are done).
   * `base.lease.signal` is the one of this tenure: once it fires, the part forgets its timers and
   * whatever else it holds, until the next call.
   */
  takeUp(handlers: EngineHandlers): Promise<void>;
  /**
   * Another process has written. With or without the lease: resolves those who wait for an end; with it:
   * takes up what was admitted, and heeds what was cancelled.
   */
  lookAround(): void;
  /** The engine calls it after the machine's clock was set, forward or back. */
  clockSet?(): Promise<void>;
  /** The engine is about to close: whoever waits for an end is told so, with `reason`. */
  close(reason: unknown): void;
  /** Removes a small batch of what ended before a time (ms); false once there is no more. */
  prune?(endedBefore: number): Promise<boolean>;
}

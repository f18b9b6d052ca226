import type { DispatchReceipt } from "../../../protocol/dispatch.ts";
import type { AdmitRequest, EngineHandlers, EventLog } from "../../contract.ts";
import type { EngineBase } from "../engine-base.ts";
import type { EntryEnd, Replay, RunJournal, RunJournals } from "./run-journal.ts";
import type { GuardedCalls } from "./run-promises.ts";
import type { RunRow } from "./run-store.ts";

export type Dispatcher = (request: AdmitRequest) => Promise<DispatchReceipt>;

/** Services that the executions of an engine share. */
export interface ExecutionHost {
  readonly base: EngineBase;
  readonly events: EventLog;
  readonly journals: RunJournals;
  readonly admit: Dispatcher;
}

/** Services of an execution for the calls of its context. */
export interface ExecutionCore {
  readonly host: Pick<ExecutionHost, "admit"> & { readonly base: Pick<EngineBase, "clock" | "time"> };
  readonly run: RunRow;
  readonly journal: RunJournal;
  readonly signal: AbortSignal;
  readonly handlers: EngineHandlers;
  readonly guard: GuardedCalls["guard"];
  /** Takes the next position. Throws `replay_mismatch`, which is then the run's end. */
  readonly ask: Replay["ask"];
  /** Whether the run takes the new branch of a change, as `Replay.patched` says it. */
  readonly patched: Replay["patched"];
  /** The run is at work until the promise settles, and is not suspended meanwhile. */
  readonly atWork: <Value>(work: () => Promise<Value>) => Promise<Value>;
  /**
   * Repeats what needs the store until the store can be used. What fails otherwise ends the run; of a run that was left
   * behind, nothing comes back.
   */
  readonly insist: <Value>(call: () => Promise<Value>) => Promise<Value>;
  readonly store: (value: unknown) => Promise<string | null>;
  /** Waits for a store that is away; a run that a drain finds so is left to the next start, and does not go on. */
  readonly waitForStore: (ms: number) => Promise<void>;
  /** Resolves with a recorded outcome, in the order in which the outcomes were recorded. */
  readonly deliver: (end: EntryEnd) => Promise<unknown>;
  /** Something has changed that may let the run be suspended, or not any more. */
  readonly settle: () => void;
}

import type { DispatchReceipt } from "../../../protocol/dispatch.ts";
import type { AdmitRequest, Engine, EngineHandlers } from "../../contract.ts";
import type { EventLog } from "../../event-log-contract.ts";
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
  readonly awaitRun: Engine["awaitRun"];
}

/** The services that an execution offers to the calls of its context. */
export interface ExecutionCore {
  readonly host: Pick<ExecutionHost, "admit" | "awaitRun"> & {
    readonly base: Pick<EngineBase, "clock" | "time">;
  };
  readonly run: RunRow;
  readonly journal: RunJournal;
  readonly signal: AbortSignal;
  readonly handlers: EngineHandlers;
  readonly guard: GuardedCalls["guard"];
  /** See `EntryHead.made_after`. */
  readonly lastEnd: number;
  /** Moves to the next position of the journal. Throws `replay_mismatch`, and then holds the run. */
  readonly ask: Replay["ask"];
  /** See `Replay.patched`. */
  readonly patched: Replay["patched"];
  /** Runs work during which the run is not suspended. */
  readonly atWork: <Value>(work: () => Promise<Value>) => Promise<Value>;
  /**
   * Repeats a call that needs the store until the store is available. Another error ends the run. Once the execution has
   * ended, the promise never settles.
   */
  readonly insist: <Value>(call: () => Promise<Value>) => Promise<Value>;
  readonly store: (value: unknown) => Promise<string | null>;
  /** Waits for an unavailable store. If a drain begins meanwhile, the execution ends, and the next start resumes the run. */
  readonly waitForStore: (ms: number) => Promise<void>;
  /** Resolves with a recorded outcome, in the order in which the outcomes were recorded. */
  readonly deliver: (end: EntryEnd) => Promise<unknown>;
  /** Checks again whether the run can be suspended. */
  readonly checkRest: () => void;
}

import type { DispatchReceipt } from "../../protocol/dispatch.ts";
import type { AdmitRequest, EngineHandlers, EventLog } from "../contract.ts";
import type { EngineBase } from "../engine-base.ts";
import type { EntryEnd, JournalEntry, Replay } from "./replay.ts";
import type { RunJournal, RunRow } from "./run-journal.ts";
import type { GuardedCalls } from "./run-promises.ts";

export type Dispatcher = (request: AdmitRequest) => Promise<DispatchReceipt>;

/** Services that the executions of an engine share. */
export interface ExecutionHost {
  readonly base: EngineBase;
  readonly events: EventLog;
  readonly journal: RunJournal;
  readonly admit: Dispatcher;
}

/** Services of an execution for the calls of its context. */
export interface ExecutionCore {
  readonly host: ExecutionHost;
  readonly run: RunRow;
  readonly signal: AbortSignal;
  readonly handlers: EngineHandlers;
  readonly guard: GuardedCalls["guard"];
  /** Takes the next position. Throws `replay_mismatch`, which is then the run's end. */
  readonly ask: Replay["ask"];
  /** The run is at work until the promise settles, and is not suspended meanwhile. */
  atWork<Value>(work: () => Promise<Value>): Promise<Value>;
  /** Writes with the fence, as soon as the store can be written. What fails otherwise ends the run. */
  commit<Value>(write: () => Value): Promise<Value>;
  store(value: unknown): Promise<string | null>;
  /** In a transaction: records an end. */
  record(head: Omit<JournalEntry, "outcome">, end: Omit<EntryEnd, "ended_as">): EntryEnd;
  /** Waits for a store that is away; a run that a drain finds so is left to the next start, and does not go on. */
  waitForStore(ms: number): Promise<void>;
  /** Resolves with a recorded outcome, in the order in which the outcomes were recorded. */
  deliver(end: EntryEnd): Promise<unknown>;
  /** Something has changed that may let the run be suspended, or not any more. */
  settle(): void;
}

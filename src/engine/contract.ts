import type { KitError } from "../base/kit-error.ts";
import type { ClusterState } from "../protocol/cluster.ts";
import type { Delivery, DeliveryQuery, DispatchReceipt, DispatchRecord } from "../protocol/dispatch.ts";
import type { ErrorCause } from "../protocol/error-cause.ts";
import type { EventError, EventType, KitEvent } from "../protocol/event.ts";
import type { RunJournalEntry, RunRecord, ScheduleRecord } from "../protocol/run.ts";
import type { SessionKey } from "../protocol/session-entry.ts";
import type { TraceContext } from "../protocol/tracing.ts";
import type { WaitingSignal } from "../protocol/waiting.ts";
import type { WorkCause } from "../protocol/work-cause.ts";
import type { EngineCluster } from "./cluster.ts";
import type { EventLog } from "./event-log-contract.ts";
import type { DispatchFilter, Page, RunFilter, WaitingListing } from "./list-contract.ts";
import type { WaitingCalls } from "./waiting-calls-contract.ts";

export type { DispatchFilter, Page, RunFilter, WaitingListing, WaitingPlace } from "./list-contract.ts";

/**
 * Accepts work and carries it through to its end, across crashes.
 *
 * Promises that every implementation keeps (`contract.suite.ts` tests them):
 * - `admit` and `startRun` resolve once the work is on disk (fsync), and never before. A second request with the same
 *   idempotency key in the same scope gets the same receipt, and the work is done once; the same key with another
 *   input is a `conflict`. Work that was cancelled, or failed with a retryable error, does not answer its key: the next
 *   request with the key repeats the work (a dispatch under its id, a run as a new run).
 * - Per session: one writer at a time, in the order of admission, whatever the outcome of an attempt.
 *   Principals get equal shares, and the sessions of one principal take turns. Without authentication, an instance or
 *   a workflow counts as a principal. A session continues with its next input after an input has failed.
 * - Back-pressure is explicit: `too_many_requests` per session and per principal, `unavailable` for the engine; each has
 *   `meta.scope` (`session`, `principal`, `instance`, `workflow`, `engine`) and `meta.retry_after_s`.
 * - An attempt that fails with a retryable error is repeated with backoff; an attempt that crashes its process counts.
 *   After its last attempt an input is `failed`: a dead letter, which an operator can list and redrive.
 * - The handlers note the end of each input that has begun and is not completed (`onInputEnd`), before its record has ended.
 * - An attempt that ends because a store is unavailable (`store_unavailable`) does not count: the work retries, with
 *   backoff, until the store is back. A step of a run does the same; neither fails because of an outage.
 * - A settlement is written exactly once, by the holder of the fence. A worker that loses the fence learns it at once
 *   from its `signal` (reason: `KitError` `lease_lost`), and every later write of it is refused.
 * - Payloads are JSON. A payload above 256 KiB is kept in a blob store; readers get it back unchanged.
 */
export interface Engine {
  /** Whether accepted work outlives the process, and whether several machines share it. */
  readonly capabilities: { readonly durable: boolean; readonly distributed: boolean };
  readonly events: EventLog;
  /** Records of webhook deliveries. An engine without this property keeps no records. */
  readonly deliveries?: DeliveryRecords | undefined;
  /** Calls that wait for a decision. Without this property they wait in the memory of their process. */
  readonly waitingCalls?: WaitingCalls | undefined;
  /** The nodes that share the work; absent if one process at a time does all of the work. */
  readonly cluster?: EngineCluster;
  /**
   * The problem that stops the engine until an operator fixes it, for example deleted or replaced files.
   * Meanwhile the engine accepts no work.
   */
  problem?(): KitError | undefined;
  /** The problem that delays accepted work for longer than a moment, or has lost some, while the engine still accepts new work. */
  warning?(): KitError | undefined;

  /** Counts the work that waits and runs now. */
  load(): Promise<EngineLoad>;

  /**
   * The processes that share the work, what each does, and their problems, for operators. Without this method,
   * `clusterStateOf` describes the current process by its load.
   */
  state?(): Promise<ClusterState>;

  /** Starts to claim and run work, including the work of a crashed process. Before `start`, accepted work waits. */
  start(handlers: EngineHandlers): Promise<void>;
  /**
   * Begins no more work, and hands work that is not running over to other nodes. Until `drain`, the node still accepts
   * and answers requests, and finishes the work that it has begun. Resolves once the other nodes are informed. Absent if
   * one process at a time does all of the work.
   */
  leave?(): Promise<void>;
  /**
   * Accepts no more work, waits up to `timeoutMs` for running work, aborts the rest (the next start resumes it, and the
   * attempt does not count), flushes pending writes, and closes. Work that has released its slot gets at most five
   * seconds.
   */
  drain(options?: { readonly timeoutMs?: number }): Promise<void>;

  admit(request: AdmitRequest): Promise<DispatchReceipt>;
  /**
   * Runs `work` once in the line of a session, with a slot, after all inputs that the session accepted before. For
   * callers that wait for the answer: the work is not stored, and is lost if the process ends. If the caller's `signal`
   * fires while the work waits, the work leaves the line; if it fires while the work runs, the context's signal fires.
   * Returns the result of `work`. Throws what `work` throws, `too_many_requests` and `unavailable` like `admit`, and
   * `NotBegun` (`unavailable`) while another process does the work.
   */
  inLine<Value>(
    place: LinePlace,
    work: (context: WorkContext) => Promise<Value>,
    options?: WaitOptions,
  ): Promise<Value>;
  /**
   * Runs `work` once per key, and returns its result (JSON) to every caller with that key: callers wait while the work
   * runs; later callers, also after a restart, get the stored result for as long as ended work is kept. A failure is not
   * stored: the next caller runs the work again. Throws `unavailable`, with `meta.retry_after_s`, while another process
   * runs the work; a process that died may have begun it.
   */
  once(key: string, work: () => Promise<unknown>): Promise<unknown>;
  getDispatch(dispatchId: string): Promise<DispatchRecord | undefined>;
  /**
   * The ids of the dispatches that wait in a session's line, were admitted with `joins`, and have this principal, in the order of the
   * line, as far as the process that does the work of the session knows them. kit asks before each call of a model, so the answer
   * comes from memory. Without this method, no dispatch joins the operation that runs.
   */
  waitingInputs?(place: LinePlace): readonly string[];
  /** Newest first. */
  listDispatches(filter?: DispatchFilter): Promise<Page<DispatchRecord>>;
  /** Resolves with the record once the dispatch has ended, with any status. `undefined` for an unknown id. */
  awaitDispatch(dispatchId: string, options?: WaitOptions): Promise<DispatchRecord | undefined>;
  /**
   * Cancels a waiting dispatch, or aborts a running one. False if it has ended or is unknown. Before a dispatch that has begun
   * ends, the process that does the work of its session calls `EngineHandlers.onInputEnd`.
   */
  cancelDispatch(dispatchId: string): Promise<boolean>;
  /** Failed dispatches, newest first. */
  listDeadLetters(filter?: Omit<DispatchFilter, "status">): Promise<Page<DispatchRecord>>;
  /** Enqueues a dead letter again, with all its attempts, at the end of its session's line. Throws `not_found`, `conflict`. */
  redrive(dispatchId: string): Promise<DispatchRecord>;

  /**
   * Whether retention may remove a session that was last used at `touchedMs` (ms since 1970): its instance has no open
   * work, no reader follows the instance's events, and no run is open that was accepted by then and so may use the
   * session. False while another process does the work, and for a while after the machine's clock was set forward.
   */
  mayForget(key: SessionKey, touchedMs: number): Promise<boolean>;

  startRun(request: RunRequest): Promise<RunReceipt>;
  getRun(runId: string): Promise<RunRecord | undefined>;
  /**
   * The entries of a run's journal after a position, in order: at most `limit` (from 1). `undefined` for an unknown run.
   * An engine without this method has no readable journal.
   */
  readJournal?(
    runId: string,
    page: { readonly after: number; readonly limit: number },
  ): Promise<readonly RunJournalEntry[] | undefined>;
  /** Newest first. */
  listRuns(filter?: RunFilter): Promise<Page<RunRecord>>;
  /**
   * The signals that open runs wait for, and that have not arrived, oldest wait first, with `total`. Without this method, kit
   * reads all runs that wait.
   */
  listWaitingSignals?(listing: WaitingListing): Promise<Page<WaitingSignal>>;
  /** Resolves with the record once the run has ended, with any status. `undefined` for an unknown id. */
  awaitRun(runId: string, options?: WaitOptions): Promise<RunRecord | undefined>;
  /**
   * Queues the runs that wait because of their code: this process has loaded other code. Each start does the same. An engine
   * without this method does it at its starts only.
   */
  resumeHeld?(): Promise<void>;
  /**
   * Queues a failed run again: its ended calls keep their results, except the failed ones at which it ended, and its attempts
   * start anew. Throws `run_not_found`, and `conflict` for a run that has not failed.
   */
  retryRun(runId: string): Promise<RunRecord>;
  /** Cancels a run and the runs that it has started. False if it has ended or is unknown. */
  cancelRun(runId: string): Promise<boolean>;
  /**
   * Delivers a payload to the run's `waitFor` of that name, or keeps it until the run waits for it. Throws
   * `run_not_found`, `conflict` for a run that has ended, and `invalid_request` for a payload that the open wait of that
   * name refuses (`EngineHandlers.checkSignal`): the run keeps waiting.
   */
  signal(runId: string, signal: RunSignal): Promise<void>;

  /** Throws `invalid_request` for an invalid cron expression or time zone. */
  putSchedule(schedule: Omit<ScheduleRecord, "next_at" | "last_run_id">): Promise<ScheduleRecord>;
  deleteSchedule(name: string): Promise<boolean>;
  listSchedules(): Promise<readonly ScheduleRecord[]>;
}

export interface EngineLoad {
  /** Inputs that are accepted and have not begun; those of `inLine` too. */
  readonly queued_dispatches: number;
  /** Runs that are accepted and have not begun. */
  readonly queued_runs: number;
  /** Running inputs. */
  readonly running_dispatches?: number;
  readonly running_runs: number;
  /** Runs that wait for a time, a signal, another run or other code, and are not in memory. */
  readonly waiting_runs: number;
  /** Runs among `waiting_runs` that wait because their code is missing, broken or does not match. */
  readonly held_runs?: number;
  /** Failed inputs that were not redriven. */
  readonly dead_letters: number;
  /** When the oldest queued work was accepted, ISO 8601. */
  readonly oldest_queued_at?: string;
}

/** The session whose line the work joins, and the principal whose share of the slots it uses. */
export interface LinePlace extends SessionKey {
  /** The sender's principal. The engine gives principals equal shares of the slots, also after a restart. */
  readonly principal?: string | undefined;
}

/** When a request for work came. */
export interface Arrival {
  /**
   * In ms by `performance.now()` of this process; absent: now. With the key of work that was cancelled later, a request repeats
   * nothing: its sender has given it up and asked again, and the second request was cancelled.
   */
  readonly received_at?: number | undefined;
}

export interface AdmitRequest extends LinePlace, Arrival {
  /** JSON. */
  readonly input: unknown;
  /** Scope: agent and instance. */
  readonly idempotency_key?: string | undefined;
  /** Whether `waitingInputs` returns the input, also after a restart. */
  readonly joins?: boolean | undefined;
  /** The sender's trace context, stored with the input. An idempotency key does not cover it. */
  readonly trace?: TraceContext;
  /** The cause in the dispatch's record. An idempotency key does not cover it, and handlers do not get it. */
  readonly cause?: WorkCause | undefined;
}

export interface RunRequest extends Arrival {
  readonly workflow: string;
  /** JSON. */
  readonly payload: unknown;
  /** Scope: workflow. */
  readonly idempotency_key?: string;
  /** The caller's principal. The inputs that the run dispatches have the same principal. */
  readonly principal?: string;
  /** The caller's trace context, stored with the run. */
  readonly trace?: TraceContext;
  /** The cause in the run's record. An idempotency key does not cover it, and handlers do not get it. */
  readonly cause?: WorkCause | undefined;
  /** The run that starts this run; cancelling it cancels this run. `startRun` throws `aborted` if it is cancelled already. */
  readonly parent_run_id?: string | undefined;
}

export interface RunReceipt {
  readonly run_id: string;
  readonly accepted_at: string;
  /** Set if the run was started before with this idempotency key, and has failed for good. */
  readonly error?: EventError | undefined;
}

export interface RunSignal {
  readonly name: string;
  /** JSON. */
  readonly payload?: unknown | undefined;
  /** Signals with the same key are delivered once. */
  readonly idempotency_key?: string | undefined;
}

export interface WaitOptions {
  readonly signal?: AbortSignal | undefined;
}

/** Handlers do the work. After a crash the engine calls `dispatch` and `run` again, with the same ids and a higher fence. */
export interface EngineHandlers {
  dispatch(context: WorkContext, request: AdmitRequest): Promise<unknown>;
  run(context: RunContext, request: RunRequest): Promise<unknown>;
  /**
   * Checks a payload against the schema of an open wait, and returns the issues; an empty list if the payload is valid.
   * `schema` is the option of `waitFor`. Default: every payload is valid.
   */
  checkSignal?(
    wait: { readonly run_id: string; readonly name: string; readonly schema: unknown },
    payload: unknown,
  ): readonly string[] | Promise<readonly string[]>;
  /** Whether an attempt that threw this error is retried. Default: true for a `KitError` with a retryable code. */
  isRetryable?(error: unknown): boolean;
  /**
   * How far an input has come: a number that rises with each finished step of its work. Attempts before the last rise do not
   * count towards the limit. Called before an input is tried again. Default: 0.
   */
  progressOf?(session: SessionKey, dispatchId: string): Promise<number>;
  /**
   * Called before an input that has begun ends as failed or cancelled, with the place in its session's line: its last attempt
   * may have died, or have expected another attempt, so that it did not note the end. Called again if this process dies before
   * the end is stored. If it throws because a store is unavailable, the input ends later; other errors are ignored.
   */
  onInputEnd?(end: InputEnd, request: AdmitRequest): Promise<void>;
  /** Called each time work begins to wait because a store is unavailable. */
  onOutage?(error: unknown, workId: string): void;
  /** Called when a run begins to wait because its code is missing, broken or does not match its journal. */
  onHeld?(problem: KitError, run: { readonly run_id: string; readonly workflow: string }): void;
  /** Called after the machine's clock was set, with the difference in milliseconds; negative if it was set back. */
  onClockSet?(byMs: number): void;
  /** Returns the cause that records store next to an error's code and message. Default: none, because a cause may hold secrets. */
  causeOf?(error: unknown): ErrorCause | undefined;
}

/** The end of an input that is not completed. */
export interface InputEnd extends Pick<WorkContext, "id" | "fence"> {
  readonly status: "failed" | "cancelled";
  /** Set if the input has failed. */
  readonly error?: EventError;
  /** The attempts that began. */
  readonly attempts: number;
}

/** The context of one attempt. */
export interface WorkContext {
  /** The id of the dispatch or the run; work of `inLine` gets a new id. */
  readonly id: string;
  /** From 1. */
  readonly attempt: number;
  /** Rises each time another worker takes over. Another store can refuse writes with a lower fence. */
  readonly fence: number;
  /**
   * Fires with `aborted` when the work is cancelled, and with `lease_lost` when another worker has taken over. A run's
   * signal also fires when the run is suspended: its promise never settles, and the handler must free its memory.
   */
  readonly signal: AbortSignal;
  /**
   * Releases the worker slot while the work waits for something slow, such as an approval. Meanwhile other work can
   * begin, except work of the same session. Returns the function that takes the slot back.
   */
  releaseSlot(): () => void;
  /**
   * Tells whether the work only waits, such as for an approval: if the process dies meanwhile, the attempt does not count.
   * Missing for work that is not stored, and for runs, of which the engine knows it.
   */
  setIdle?(idle: boolean): void;
  /**
   * Rejects with `lease_lost` if another worker has taken over, even if the signal has not fired yet. Call it before an
   * action that two workers must not both do.
   */
  checkFence(): Promise<void>;
  /**
   * Returns what the engine will do if this attempt fails with the error: the delay until the next attempt, or undefined if the
   * work then has failed. The engine keeps to it, except if the work is cancelled meanwhile. Missing for work that is not
   * stored, and for runs.
   */
  planRetry?(error: unknown): Promise<{ readonly delayMs: number } | undefined>;
}

/**
 * The context of a run. Each call of `step`, `sleep`, `waitFor`, `now`, `uuid` and `dispatch` uses the
 * next position of the run's journal, in the order of the calls. After a crash, calls that had ended
 * return their recorded result at once. If a position was recorded with another kind or name, the run is held with
 * `replay_mismatch`, which names both.
 */
export interface RunContext extends WorkContext {
  /** When the run's first attempt began, in ms since 1970. */
  readonly startedAt: number;
  /**
   * Runs `work` and records its result (JSON). `work` can run again if a crash left its end unknown. Calls of the context
   * inside `work` belong to the step: they use no position, their idempotency keys are the same each time the same
   * attempt runs, and a sleep does not survive the process. `waitFor` is refused inside a step.
   */
  step<Value>(name: string, work: StepWork<Value>, options?: StepOptions): Promise<Value>;
  /**
   * A step whose work begins once another run has ended, with any status, or the signal fires. Until then the run waits as
   * in `waitFor`. An unknown run counts as ended.
   */
  stepAfter<Value>(name: string, work: StepWork<Value>, awaited: AwaitedRun): Promise<Value>;
  /** Waits, also across restarts; a long wait holds no memory. */
  sleep(ms: number): Promise<void>;
  /**
   * The payload of the next signal of that name; `undefined` after `timeoutMs`. `schema` (JSON) is stored with the wait;
   * `EngineHandlers.checkSignal` gets it when a signal arrives.
   */
  waitFor(
    name: string,
    options?: { readonly timeoutMs?: number | undefined; readonly schema?: unknown },
  ): Promise<unknown>;
  /**
   * Whether the run takes the new branch after its code was changed. True, and recorded, if the journal has no later
   * entries; false for a run that had passed this point before the change. The first answer for an id holds for the whole
   * run. Refused inside a step.
   */
  patched(id: string): Promise<boolean>;
  /** The time in milliseconds since 1970; every replay returns the same value. */
  now(): Promise<number>;
  /** A random UUID; every replay returns the same value. */
  uuid(): Promise<string>;
  /** Admits an input once, with the principal of the run. */
  dispatch(request: Omit<AdmitRequest, "idempotency_key" | "principal">): Promise<DispatchReceipt>;
  /**
   * Appends an event to the run's stream at the next index. Until a replay has passed the last recorded position, the
   * event is skipped, because an earlier attempt emitted it. `run_end` is never skipped, because no earlier attempt
   * emitted it; nor is `run_start`, which a handler emits if the stream has none, because a killed process loses its
   * buffered events. Returns the index, or `undefined` if the event was skipped; callers then notify no listeners.
   */
  emit(event: RunEventBody): number | undefined;
  /**
   * Throws the error with which the run would fail if its handler returned this result: `internal_error` if it is not
   * JSON. Holds the run with `replay_mismatch` if the journal has entries that the code never requested. For a handler that
   * emits `run_end`.
   */
  checkResult(result: unknown): void;
  /**
   * Ends this attempt, because the code that the run needs is missing or broken in this process: the run waits, with the
   * error as its `problem`, until the next start or `resumeHeld`. Returns the error.
   */
  hold(problem: KitError): KitError;
}

/** An event of a run without its index, which the engine adds. */
export type RunEventBody = {
  readonly [Type in EventType]: Omit<Extract<KitEvent, { type: Type }>, "index">;
}[EventType];

export type StepWork<Value> = (step: {
  /** The same for every attempt at this step: for services that take an idempotency key. */
  readonly idempotencyKey: string;
  /** From 1. */
  readonly attempt: number;
  readonly signal: AbortSignal;
}) => Value | Promise<Value>;

/** The run whose end a step waits for. */
export interface AwaitedRun {
  readonly run_id: string;
  /** Ends the wait early. A run with such a wait stays in memory, without a slot. */
  readonly signal?: AbortSignal | undefined;
}

export interface StepOptions {
  /** Attempts at a step that throws; default 1. */
  readonly attempts?: number;
  /** The pause before the second attempt; doubled before each further attempt, up to a minute. Default 500. */
  readonly backoffMs?: number;
  /** Time limit of one attempt, in milliseconds; then its signal fires and the attempt fails with `unavailable`. */
  readonly timeoutMs?: number;
}

/** Records of webhook deliveries. All processes that share the engine's store list the same records. */
export interface DeliveryRecords {
  /**
   * Stores a record. The next record with the same `record_id` replaces an `open` record; an ended record never becomes
   * open again. Resolves once the record is on disk; a record without a `delivery_id`, which anyone can cause, is written
   * a moment later together with others. Never rejects: while the store is unavailable, the newest 1,000 records wait in
   * memory.
   *
   * If a caller stores an open record and then admits its work in the same turn of the event loop, both are written
   * together: on one machine in the same transaction.
   */
  record(delivery: Delivery): Promise<void>;
  /** Newest first, including the records that this process has not written yet. Throws `invalid_request` for an invalid cursor. */
  list(filter?: DeliveryQuery): Promise<Page<Delivery>>;
}

import type { KitError } from "../base/kit-error.ts";
import type { ClusterState } from "../protocol/cluster.ts";
import type {
  Delivery,
  DeliveryQuery,
  DispatchReceipt,
  DispatchRecord,
  DispatchStatus,
} from "../protocol/dispatch.ts";
import type { ErrorCause } from "../protocol/error-cause.ts";
import type { EventType, KitEvent } from "../protocol/event.ts";
import type { RunJournalEntry, RunRecord, RunStatus, ScheduleRecord } from "../protocol/run.ts";
import type { SessionKey } from "../protocol/session-entry.ts";
import type { TraceContext } from "../protocol/tracing.ts";
import type { WorkCause } from "../protocol/work-cause.ts";
import type { EngineCluster } from "./cluster.ts";

/**
 * Accepts work and sees it to its end, over crashes too.
 *
 * Promises that every implementation keeps (`contract.suite.ts` tests them):
 * - `admit` and `startRun` resolve once the work is on disk (fsync), and never before. The same
 *   idempotency key within the same scope gives the same receipt, and the work is done once; the same
 *   key with another input is a `conflict`. What failed in a way that may pass, or was cancelled, is not an answer
 *   to a key: the next request with it has the input done again (a dispatch under its id, a run as a new one).
 * - Per session: one writer at a time, in the order of admission, whatever an attempt's outcome.
 *   Principals get equal shares, and the sessions of one principal take turns. Without authentication, an instance or
 *   a workflow counts as a principal. A session continues with its next input after one has failed.
 * - Back-pressure is explicit: `too_many_requests` per session and per principal, `unavailable` for the engine; each has
 *   `meta.scope` (`session`, `principal`, `instance`, `workflow`, `engine`) and `meta.retry_after_s`.
 * - An attempt that fails in a way that may pass is repeated with backoff; one that crashes its
 *   process counts. After its attempts it is `failed`: a dead letter, to be seen and redriven.
 * - An attempt that met a store which is away (`store_unavailable`) is none: work waits for as long as that
 *   lasts, with backoff. So does a step of a run; neither ends because of it.
 * - A settlement is written exactly once, by the holder of the fence. Who has lost it is told at once
 *   by its `signal` (reason: `KitError` `lease_lost`), and cannot write any more.
 * - Payloads are JSON; above 256 KiB they lie in a blob store and come back as they went in.
 */
export interface Engine {
  /** Whether accepted work outlives the process, and whether several machines share it. */
  readonly capabilities: { readonly durable: boolean; readonly distributed: boolean };
  readonly events: EventLog;
  /** Records of deliveries of webhooks. An engine without it keeps none. */
  readonly deliveries?: DeliveryRecords | undefined;
  /** The nodes among which the work is divided; absent where one process at a time does all of it. */
  readonly cluster?: EngineCluster;
  /**
   * The problem that stops the engine until an operator fixes it: its files were deleted or replaced, for instance.
   * The engine accepts nothing then.
   */
  problem?(): KitError | undefined;
  /** The problem that keeps accepted work waiting for longer than a moment, while the engine goes on accepting. */
  warning?(): KitError | undefined;

  /** How much waits and runs at this moment. */
  load(): Promise<EngineLoad>;

  /** The processes that share the work, what each does, and what is wrong with them, for operators. Default: this one, by its load. */
  state?(): Promise<ClusterState>;

  /** Claims and runs work, that of a crashed process included. Before `start`, work is accepted and waits. */
  start(handlers: EngineHandlers): Promise<void>;
  /**
   * Begins nothing more, and hands over to other nodes what is not at work; goes on accepting and answering, and with what it has
   * begun, until `drain`. Resolves once the other nodes know. Absent where one process at a time does all of the work.
   */
  leave?(): Promise<void>;
  /**
   * Accepts nothing more, gives running work `timeoutMs` to end, aborts the rest (the next start resumes it, and the
   * attempt does not count), writes everything that is due, and closes. Work that has released its slot gets five seconds
   * at most.
   */
  drain(options?: { readonly timeoutMs?: number }): Promise<void>;

  admit(request: AdmitRequest): Promise<DispatchReceipt>;
  /**
   * Runs `work` in the line of a session: after all that was admitted to it before, with a slot, once. For callers who
   * wait for the answer: nothing of it is stored, and it ends with the process. A caller whose `signal` fires while the
   * work waits leaves the line; while it runs, the context's signal fires. Gives what `work` gives; throws what it throws,
   * `too_many_requests` and `unavailable` as `admit` does, and `NotBegun` (`unavailable`) while another process works.
   */
  inLine<Value>(
    place: LinePlace,
    work: (context: WorkContext) => Promise<Value>,
    options?: WaitOptions,
  ): Promise<Value>;
  /**
   * Does something once for a key, and gives what it gave (JSON) to whoever asks again: while it runs, they
   * wait for it; afterwards, over restarts, for as long as ended work is kept. What fails is not remembered:
   * the next caller tries again. `unavailable`, with `meta.retry_after_s`, while another process does it; a
   * process that died may have begun it.
   */
  once(key: string, work: () => Promise<unknown>): Promise<unknown>;
  getDispatch(dispatchId: string): Promise<DispatchRecord | undefined>;
  /** Newest first. */
  listDispatches(filter?: DispatchFilter): Promise<Page<DispatchRecord>>;
  /** Resolves with the record once it has ended, however. Undefined for an unknown id. */
  awaitDispatch(dispatchId: string, options?: WaitOptions): Promise<DispatchRecord | undefined>;
  /** Takes back what waits, or aborts what runs. False when it had ended, or is unknown. */
  cancelDispatch(dispatchId: string): Promise<boolean>;
  /** The failed ones, newest first. */
  listDeadLetters(filter?: Omit<DispatchFilter, "status">): Promise<Page<DispatchRecord>>;
  /** Gives a dead letter its attempts again, at the end of its session's line. Throws `not_found`, `conflict`. */
  redrive(dispatchId: string): Promise<DispatchRecord>;

  /**
   * Whether a session that was last touched then (ms since 1970) may be removed for its age: nothing of its instance is to be
   * done, no reader follows the instance's events, and no run goes on that had started by then, since it may use the session. False
   * while another process does the work, and for a while after the clock was set forward.
   */
  mayForget(key: SessionKey, touchedMs: number): Promise<boolean>;

  startRun(request: RunRequest): Promise<RunReceipt>;
  getRun(runId: string): Promise<RunRecord | undefined>;
  /**
   * The entries of a run's journal after a position, in their order: at most `limit` (from 1). Undefined for an unknown run. An engine
   * without it has no journal that can be read.
   */
  readJournal?(
    runId: string,
    page: { readonly after: number; readonly limit: number },
  ): Promise<readonly RunJournalEntry[] | undefined>;
  /** Newest first. */
  listRuns(filter?: RunFilter): Promise<Page<RunRecord>>;
  /** Resolves with the record once it has ended, however. Undefined for an unknown id. */
  awaitRun(runId: string, options?: WaitOptions): Promise<RunRecord | undefined>;
  /** Cancels a run and those that it has started. False when it had ended, or is unknown. */
  cancelRun(runId: string): Promise<boolean>;
  /**
   * Hands a value to the `waitFor` of that name, or keeps it until there is one. Throws
   * `run_not_found`, `conflict` for a run that has ended, and `invalid_request` for a payload that the open wait of that name
   * does not take (`EngineHandlers.checkSignal`): the run keeps waiting.
   */
  signal(runId: string, signal: RunSignal): Promise<void>;

  /** Throws `invalid_request` for an expression that is none. */
  putSchedule(schedule: Omit<ScheduleRecord, "next_at" | "last_run_id">): Promise<ScheduleRecord>;
  deleteSchedule(name: string): Promise<boolean>;
  listSchedules(): Promise<readonly ScheduleRecord[]>;
}

export interface EngineLoad {
  /** Inputs, and runs, that are accepted and have not begun; those of `inLine` too. */
  readonly queued_dispatches: number;
  readonly queued_runs: number;
  /** Inputs at work. */
  readonly running_dispatches?: number;
  readonly running_runs: number;
  /** For a time or a signal, with nothing in memory. */
  readonly waiting_runs: number;
  /** Inputs that have failed and were not redriven. */
  readonly dead_letters: number;
  /** When the oldest of what has not begun was accepted, ISO 8601. */
  readonly oldest_queued_at?: string;
}

/** Where work stands: in the line of a session, with a share of the slots. */
export interface LinePlace extends SessionKey {
  /** The sender's principal. The engine gives principals equal shares of the work, after a restart too. */
  readonly principal?: string | undefined;
}

export interface AdmitRequest extends LinePlace {
  /** JSON. */
  readonly input: unknown;
  /** Scope: agent and instance. */
  readonly idempotency_key?: string | undefined;
  /** Where the sender stands in a trace: kept with the input, and no part of what a key stands for. */
  readonly trace?: TraceContext;
  /** The cause that its record names: no part of what a key stands for, and unknown to handlers. */
  readonly cause?: WorkCause | undefined;
}

export interface RunRequest {
  readonly workflow: string;
  /** JSON. */
  readonly payload: unknown;
  /** Scope: workflow. */
  readonly idempotency_key?: string;
  /** The starter's principal. What the run dispatches has the same one. */
  readonly principal?: string;
  /** Where the starter stands in a trace: kept with the run. */
  readonly trace?: TraceContext;
  /** The cause that its record names: no part of what a key stands for, and unknown to handlers. */
  readonly cause?: WorkCause | undefined;
  /** The run that starts this one: when it is cancelled, this one is too. Throws `aborted` where that has happened. */
  readonly parent_run_id?: string | undefined;
}

export interface RunReceipt {
  readonly run_id: string;
  readonly accepted_at: string;
}

export interface RunSignal {
  readonly name: string;
  /** JSON. */
  readonly payload?: unknown | undefined;
  /** The same id is taken once. */
  readonly idempotency_key?: string | undefined;
}

export interface WaitOptions {
  readonly signal?: AbortSignal | undefined;
}

export interface Page<Item> {
  readonly items: readonly Item[];
  readonly next_cursor?: string | undefined;
}

export interface DispatchFilter {
  readonly agent?: string | undefined;
  readonly instance_id?: string | undefined;
  readonly status?: DispatchStatus | undefined;
  /** 1 to 1,000; default 50. */
  readonly limit?: number | undefined;
  readonly cursor?: string | undefined;
}

export interface RunFilter {
  readonly workflow?: string | undefined;
  readonly status?: RunStatus | undefined;
  readonly limit?: number | undefined;
  readonly cursor?: string | undefined;
}

/** Handlers do the work. The engine calls both again after a crash, with the same ids and a higher fence. */
export interface EngineHandlers {
  dispatch(context: WorkContext, request: AdmitRequest): Promise<unknown>;
  run(context: RunContext, request: RunRequest): Promise<unknown>;
  /**
   * Checks a payload against the schema of an open wait; gives the issues, or nothing where the payload fits. `schema` is what
   * `waitFor` was given. Default: nothing is wrong.
   */
  checkSignal?(
    wait: { readonly run_id: string; readonly name: string; readonly schema: unknown },
    payload: unknown,
  ): readonly string[] | Promise<readonly string[]>;
  /** Whether what an attempt threw may pass by itself. Default: a `KitError` of a retryable code. */
  isRetryable?(error: unknown): boolean;
  /** Told each time that work meets a store which is away, and begins to wait. */
  onOutage?(error: unknown, workId: string): void;
  /** Called when the machine's clock was set, with the difference in milliseconds; negative when it was set back. */
  onClockSet?(byMs: number): void;
  /** Gives the cause that records keep beside an error's code and message. Default: none, since a cause may hold secrets. */
  causeOf?(error: unknown): ErrorCause | undefined;
}

/** The context of one attempt. */
export interface WorkContext {
  /** The dispatch or the run; for work of `inLine`, an id of its own. */
  readonly id: string;
  /** From 1. */
  readonly attempt: number;
  /** Rises with each change of hands; whoever writes elsewhere can refuse a lower one. */
  readonly fence: number;
  /**
   * Fires with `aborted` when it is cancelled, with `lease_lost` when another worker has taken over. Of a
   * run, also when it is suspended: its promise is left behind, and what it holds in memory is to be let go.
   */
  readonly signal: AbortSignal;
  /**
   * Releases the worker slot while the work waits for something slow, such as an approval. Other work may begin
   * meanwhile, though none of its session. Returns the function that takes the slot back.
   */
  releaseSlot(): () => void;
  /**
   * Rejects with `lease_lost` when another worker has taken over, also before the signal has said so: for what
   * must not be done by two.
   */
  checkFence(): Promise<void>;
}

/**
 * The context of a run. Each call of `step`, `sleep`, `waitFor`, `now`, `uuid` and `dispatch` takes the
 * next position of the run's journal, in the order of the calls; after a crash those that have ended
 * give their recorded result at once. A position that was recorded under another kind or name ends
 * the run with `replay_mismatch`, which names both.
 */
export interface RunContext extends WorkContext {
  /** When its first attempt began, in ms since 1970. */
  readonly startedAt: number;
  /**
   * Runs `work` and records what it gives (JSON). May run again when a crash left its end unknown. What `work` asks of
   * the run itself is a part of the step: it takes no position, has keys that are the same in every run of the
   * same attempt, and a sleep ends with the process. `waitFor` is refused there.
   */
  step<Value>(name: string, work: StepWork<Value>, options?: StepOptions): Promise<Value>;
  /** Waits over restarts; a long wait holds no memory. */
  sleep(ms: number): Promise<void>;
  /**
   * The payload of the next signal of that name; undefined after `timeoutMs`. `schema` (JSON) is kept with the wait, for
   * those who check signals on their way in.
   */
  waitFor(
    name: string,
    options?: { readonly timeoutMs?: number | undefined; readonly schema?: unknown },
  ): Promise<unknown>;
  /**
   * Whether the run takes the new branch of a change of its code. True for a run that comes here with nothing recorded beyond, and
   * that is recorded; false for a run that was further on when the change was made. The first answer under an
   * id holds for the whole run. Refused within a step.
   */
  patched(id: string): Promise<boolean>;
  /** Milliseconds since 1970, the same in every replay. */
  now(): Promise<number>;
  /** The same in every replay. */
  uuid(): Promise<string>;
  /** Admits an input, once, for the principal of the run. */
  dispatch(request: Omit<AdmitRequest, "idempotency_key" | "principal">): Promise<DispatchReceipt>;
  /**
   * Puts an event into the run's stream, at its next index. Left out while a replay has not yet passed
   * the last recorded position, because it was said before. Never left out are `run_end`, which no replay has said, and
   * `run_start`, which a handler says when the stream has none: a killed process loses what it has not written. Gives
   * its index, or undefined where it was left out, so that others who listen hear it once, too.
   */
  emit(event: RunEventBody): number | undefined;
  /**
   * Throws what would end the run as failed if its handler gave this: `internal_error` for what is not JSON,
   * `replay_mismatch` when more was recorded than was asked for. For a handler that says how the run has ended.
   */
  checkResult(result: unknown): void;
}

/** An event of a run as its maker knows it: the log numbers it. */
export type RunEventBody = {
  readonly [Type in EventType]: Omit<Extract<KitEvent, { type: Type }>, "index">;
}[EventType];

export type StepWork<Value> = (step: {
  /** The same for every attempt at this step: for services that take an idempotency key. */
  readonly idempotencyKey: string;
  /** @deprecated Use `idempotencyKey`. */
  readonly idempotency_key: string;
  /** From 1. */
  readonly attempt: number;
  readonly signal: AbortSignal;
}) => Value | Promise<Value>;

export interface StepOptions {
  /** Attempts at a step that throws; default 1. */
  readonly attempts?: number;
  /** Before the second attempt; doubled for each further one, up to a minute. Default 500. */
  readonly backoffMs?: number;
  /** Time limit of one attempt, in milliseconds; then its signal fires and the step fails with `unavailable`. */
  readonly timeoutMs?: number;
}

/** Records of what senders of webhooks deliver. All processes that share the engine's store list the same ones. */
export interface DeliveryRecords {
  /**
   * Keeps a record. An `open` one is replaced by the next with its `record_id`; one that has ended is never opened again. Resolves
   * once it is on disk; one without a `delivery_id`, which any stranger can cause, is written a moment later together with others.
   * Never rejects: while the store is away, the newest 1,000 wait in memory for it.
   *
   * An open record that is given in the turn of the event loop in which its work is admitted, before it, is written beside that work:
   * on one machine in the same transaction.
   */
  record(delivery: Delivery): Promise<void>;
  /** Newest first, those that this process has been given included. Throws `invalid_request` for a cursor that is none. */
  list(filter?: DeliveryQuery): Promise<Page<Delivery>>;
}

/**
 * Events per stream, in the order of their indexes, which only rise. Streams are named by
 * `agentStream` and `runStream`. An event can be read at once; it is on disk a moment later (at most
 * 100 ms), or with `flush`. What a killed process had not written is lost to readers, and its indexes
 * are never given again.
 */
export interface EventLog {
  /** The index of the newest event; 0 for a stream that has none. The next append must be above it. */
  last(stream: string): Promise<number>;
  /**
   * Says that events of this stream will come. An append does so by itself; said before, it is written together
   * with what others say at the time.
   */
  begin(stream: string): Promise<void>;
  /** Adds an event. Throws `lease_lost` once another process writes, and `conflict` for an index that is not above the last. */
  append(stream: string, event: KitEvent): void;
  /** Resolves once all that was appended is on disk. */
  flush(): Promise<void>;
  /** Events after an index, oldest first; `limit` 1 to 1,000, default 100. */
  read(stream: string, options?: EventReadOptions): Promise<readonly KitEvent[]>;
  /**
   * Yields the events after an index, then each new one, until the stream has ended or the signal fires. A `gap` event
   * stands for events that retention has removed. A slow reader holds no more memory than a fast one: it reads from disk
   * the events that it has missed.
   */
  subscribe(stream: string, options?: EventSubscription): AsyncIterable<KitEvent>;
  /** Says that nothing more will come: those who read get to the end. */
  end(stream: string): void;
  delete(stream: string): Promise<void>;
}

export interface EventReadOptions {
  readonly after?: number | undefined;
  readonly limit?: number | undefined;
  readonly types?: readonly EventType[] | undefined;
}

export interface EventSubscription {
  readonly after?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** The stream of an agent's instance, over all its sessions. */
export function agentStream(agent: string, instanceId: string): string {
  return `agent/${agent}/${instanceId}`;
}

export function runStream(runId: string): string {
  return `run/${runId}`;
}

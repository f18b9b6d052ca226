import { onAbort } from "../../base/abort.ts";
import { isoTime } from "../../base/clock.ts";
import { createId } from "../../base/id.ts";
import { KitError } from "../../base/kit-error.ts";
import type { ErrorCause } from "../../protocol/error-cause.ts";
import { isErrorCode } from "../../protocol/error-code.ts";
import type { EventBody, EventError } from "../../protocol/event.ts";
import { type OperationEnd, operationEndNote } from "../../protocol/operation-end.ts";
import type { RepositoryState } from "../../protocol/repository.ts";
import type {
  Harness,
  LiveSession,
  Operation,
  OperationFailures,
  OperationOrigin,
  OperationRequest,
} from "../agent-runtime.ts";
import { type EventScope, taskOfPart } from "../events.ts";
import { forkOf, placeOfFork } from "../log/fork.ts";
import { noRules, rulesLeftOut } from "../log/left-out-rules.ts";
import { OperationLog } from "../log/operation-log.ts";
import { loadPastOperation, type PastOperation } from "../log/past-operation.ts";
import { begunAt, type SessionState } from "../log/session-state.ts";
import {
  attempts,
  type NextAttempt,
  type OperationAttempt,
  Suspension,
  suspensions,
  willResume,
} from "../log/suspension.ts";
import { maskBody } from "../masked-parts.ts";
import { maskError, maskValue } from "../secrets.ts";
import { Spending } from "../turn/budget.ts";
import { tracingOfOperation } from "./operation-tracing.ts";

/** The session that an operation runs in. */
interface OperationOwner extends LiveSession {
  /** Called when the operation has ended, or goes on later. */
  ended(running: RunningOperation): void;
}

/** An operation of a session from its start to its end. A class: functions for each of its steps would live as long as it. */
export class RunningOperation implements OperationFailures {
  readonly harness: Harness;
  readonly live: OperationOwner;
  readonly request: OperationRequest;
  /** The run step or trace that the operation was started in. */
  readonly origin: OperationOrigin | undefined;
  readonly controller = new AbortController();
  readonly scope: EventScope;
  readonly suspension: Suspension | undefined;
  readonly attempt: OperationAttempt | undefined;
  readonly startedAt: number;
  readonly emit: Operation["emit"];
  readonly events: Operation["events"];
  stopForwarding: (() => void) | undefined;
  /** Callbacks for its end; undefined until there is one. */
  ended: (() => void)[] | undefined;
  /** Undefined while its history loads. */
  operation: Operation | undefined;
  repository: RepositoryState | undefined;
  /** Whether its start was reported. */
  isOpen = false;
  /** The newest reported error, and the engine's next attempt. */
  #reported: { readonly error: unknown; readonly next: NextAttempt | undefined } | undefined;

  constructor(
    harness: Harness,
    live: OperationOwner,
    call: { readonly request: OperationRequest; readonly origin: OperationOrigin | undefined },
  ) {
    const { request, origin } = call;
    this.harness = harness;
    this.live = live;
    this.request = request;
    this.origin = origin;
    this.scope = {
      agent: live.key.agent,
      instance_id: live.key.instance_id,
      session: live.key.session,
      run_id: harness.run_id,
      operation_id: request.id ?? createId("op"),
      task_id: request.scope?.task_id,
      parent_operation_id: request.scope?.parent_operation_id,
    };
    const { signal } = request;
    this.suspension = signal && suspensions.get(signal);
    this.attempt = signal && attempts.get(signal);
    this.startedAt = this.suspension?.startedAt ?? harness.runtime.clock.now();
    this.emit = emitterOf(this);
    // A suspension must see each body: it knows which events readers have.
    this.events = this.suspension === undefined ? harness.events : neverSkipped;
    this.stopForwarding = signal && onAbort(signal, (reason) => this.controller.abort(reason));
    this.ended = undefined;
    this.operation = undefined;
    this.repository = undefined;
  }

  /** Emits the start of the operation. */
  open(past?: PastOperation, state?: SessionState): void {
    this.isOpen = true;
    if (this.events.skip()) return;
    const { attempt, origin, repository, request, scope } = this;
    const fork = state === undefined ? undefined : forkOf(state);
    const rewound = state?.rewound?.by === scope.operation_id ? state.rewound.operation_id : undefined;
    const forked = fork !== undefined && fork.fork_id === scope.operation_id;
    const from = forked ? { forked_from: placeOfFork(fork) } : undefined;
    const isCopied = forked && fork.turn_id !== undefined;
    const resumed = past === undefined || isCopied ? undefined : ({ resumed: true } as const);
    const { kind: operation_kind, message, images = 0, clientId: client_id } = request;
    const ownId = client_id === undefined ? undefined : { client_id };
    const sent =
      message === undefined ? undefined : { message, ...ownId, ...(images === 0 ? undefined : { images }) };
    this.emit({
      type: "operation_start",
      operation_kind,
      ...resumed,
      ...(attempt === undefined ? undefined : placeOf(attempt)),
      ...from,
      ...sent,
      ...(rewound === undefined ? undefined : { rewound_before: rewound }),
      ...(repository === undefined ? undefined : { repository }),
      ...origin,
    });
  }

  causeOf(error: KitError): ErrorCause | undefined {
    return this.toEventError(error).cause;
  }

  async report(error: unknown, turnId?: string): Promise<NextAttempt | undefined> {
    if (this.#reported !== undefined && this.#reported.error === error) return this.#reported.next;
    const next = await this.attempt?.planRetry(error);
    this.#reported = { error, next };
    const again =
      next === undefined
        ? { will_retry: false }
        : { will_retry: true, retry_in_ms: Math.max(0, Math.ceil(next.delayMs)) };
    this.emit({ type: "error", error: this.toEventError(error), ...again }, turnId);
    return next;
  }

  toEventError(error: unknown): EventError {
    const cause = this.harness.runtime.causeOf?.(error, this.operation?.mask);
    const why = cause === undefined ? {} : { cause };
    if (error instanceof KitError) {
      const { code, message } = error;
      if (isErrorCode(code)) return { type: code, message, ...why };
    }
    return { type: "internal_error", message: "The operation failed.", ...why };
  }
}

const neverSkipped: Operation["events"] = { skip: () => false };

/** A function, not a method: tools and turns get it without its operation. */
function emitterOf(running: RunningOperation): Operation["emit"] {
  return (body, turnId) => {
    const { harness, operation, scope, suspension } = running;
    if (suspension?.hasEmitted(body) === true || harness.events.skip()) return;
    // The operation's own mask also covers the secrets granted to its call.
    const { mask } = operation ?? harness.runtime;
    const task_id = operation?.part === undefined ? undefined : taskOfPart(operation.part, turnId);
    const eventScope = task_id === undefined ? scope : { ...scope, task_id };
    harness.events.publish(mask === undefined ? body : maskBody(body, mask), eventScope, turnId);
  };
}

/** How an operation ended; undefined for work that goes on later: after a rest, in the next attempt, or in another process. */
type End = "completed" | OperationEnd["status"] | undefined;

/**
 * Runs work as an operation of a session: loads the history, closes calls that a killed process left open (a resumed
 * operation closes its own), and emits the events that start and end an operation, however it ends.
 */
export async function runOperation<Value>(
  running: RunningOperation,
  work: (operation: Operation) => Promise<Value>,
): Promise<Value> {
  let end: End;
  try {
    const operation = await begin(running);
    let value: Value;
    try {
      value = await work(operation);
    } finally {
      // An operation ends after its tasks, which an abort may take a moment to stop.
      if (operation.tasks.length > 0) await Promise.allSettled(operation.tasks);
      const written = operation.log.stored();
      if (written instanceof Promise) await written;
    }
    end = "completed";
    return value;
  } catch (error) {
    end = await endAfter(running, error);
    const { mask } = running.operation ?? running.harness.runtime;
    throw mask === undefined || isPausedBy(running, error) ? error : maskError(error, mask);
  } finally {
    finish(running, end);
  }
}

/** A function of its own: what it needs is released before the work begins. */
async function begin(running: RunningOperation): Promise<Operation> {
  const { harness, live, request, scope } = running;
  running.repository = harness.runtime.project?.stateAt(live.located()?.location);
  const { rewindBefore, fork } = request;
  const goesElsewhere = rewindBefore !== undefined || fork !== undefined;
  if (request.resumes !== true && !goesElsewhere) running.open();
  // Write unsaved work of an earlier operation first, then read the history.
  if (harness.unsaved.ofSessions.size > 0) await harness.unsaved.write(live.key);
  const loading = live.load();
  const state = loading instanceof Promise ? await loading : loading;
  const id = scope.operation_id;
  const isFresh = loading instanceof Promise;
  const past =
    request.resumes === true ? await loadPastOperation(harness.store, state, { id, isFresh }) : undefined;
  if (!running.isOpen && !goesElsewhere) running.open(past, state);
  const operation = toOperation(running, { state, past });
  running.operation = operation;
  if (past === undefined && fork !== undefined) {
    const { beginBefore } = await import("../log/rewind.ts");
    await beginBefore(harness, operation, fork);
    const { profile } = live;
    operation.rulesLeftOut = rulesLeftOut(state, profile.omitRules, request.parent?.rulesLeftOut);
  }
  if (past === undefined && rewindBefore !== undefined) {
    const { rewind } = await import("../log/rewind.ts");
    await rewind(harness, operation, rewindBefore);
  }
  if (!running.isOpen) running.open(past, state);
  if (past === undefined) {
    const closed = operation.log.append([]);
    if (closed instanceof Promise) await closed;
  }
  running.controller.signal.throwIfAborted();
  return operation;
}

/** Whether the error is the suspension of the operation. */
function isPausedBy({ controller: { signal } }: RunningOperation, error: unknown): boolean {
  return error instanceof Suspension && error === signal.reason;
}

/** Reports and logs the end that an error is. */
async function endAfter(running: RunningOperation, error: unknown): Promise<End> {
  const { attempt, harness, request, startedAt } = running;
  const { signal } = running.controller;
  if (error instanceof Suspension && error === signal.reason) {
    error.startedAt = startedAt;
    return undefined;
  }
  if (!running.isOpen) running.open();
  let status: OperationEnd["status"] | undefined;
  if (!signal.aborted) status = (await running.report(error)) === undefined ? "failed" : undefined;
  else if (request.resumes !== true || !willResume(signal)) {
    status = "aborted";
    running.emit({ type: "aborted" });
  }
  const { clock } = harness.runtime;
  if (status !== undefined)
    await logEnd(running, {
      status,
      ...(status === "failed" ? { error: running.toEventError(error) } : undefined),
      ...(attempt === undefined ? undefined : endingOf(attempt)),
      duration_ms: clock.now() - startedAt,
    });
  return status;
}

function finish(running: RunningOperation, end: End): void {
  try {
    running.stopForwarding?.();
    if (end === undefined) return;
    const { emit, events, harness, operation, request, startedAt } = running;
    if (!events.skip()) {
      const usage = operation?.spending.usage;
      emit({
        type: "operation",
        operation_kind: request.kind,
        duration_ms: harness.runtime.clock.now() - startedAt,
        is_error: end !== "completed",
        ...(end === "aborted" ? ({ is_aborted: true } as const) : undefined),
        ...(usage === undefined || usage.total_tokens === 0 ? undefined : { usage }),
      });
    }
    if (!events.skip()) emit({ type: "idle" });
  } finally {
    running.live.ended(running);
  }
}

function placeOf({
  dispatch_id,
  number,
}: OperationAttempt): Pick<Extract<EventBody, { type: "operation_start" }>, "attempt" | "dispatch_id"> {
  return number === 1 ? { dispatch_id } : { attempt: number, dispatch_id };
}

function endingOf({ dispatch_id, number }: OperationAttempt): Pick<OperationEnd, "attempts" | "dispatch_id"> {
  return number === 1 ? { dispatch_id } : { attempts: number, dispatch_id };
}

/** Writes the end of a failed or aborted operation into its session's log, as far as the store can be written. */
async function logEnd(
  { harness, live, request, operation }: RunningOperation,
  end: OperationEnd,
): Promise<void> {
  if (operation === undefined) return;
  const { log, state, id } = operation;
  const isLogged = begunAt(state, id) !== undefined;
  // A refused request leaves nothing behind, except that a fork has its copy: the session can still begin as that fork.
  const isRefused = end.error?.type === "invalid_request" || request.fork !== undefined;
  if (!isLogged && (isRefused || request.message === undefined)) return;
  const value = isLogged ? end : { ...end, message: request.message };
  const { mask, clock } = { ...harness.runtime, mask: operation.mask };
  try {
    await harness.unsaved.write(live.key);
    await log.commit([
      {
        version: 1,
        type: "note",
        name: operationEndNote,
        value: mask === undefined ? value : maskValue(value, mask),
        timestamp: isoTime(clock.now()),
        operation_id: id,
      },
    ]);
  } catch {
    // The session was deleted, another process works on the operation, or the store is unavailable: the event has the end.
  }
}

function toOperation(
  running: RunningOperation,
  from: {
    readonly state: SessionState;
    readonly past: PastOperation | undefined;
  },
): Operation {
  const { harness, live, request, scope } = running;
  const { state, past } = from;
  const { store, runtime } = harness;
  const { signal } = running.controller;
  const id = scope.operation_id;
  const { tracing } = harness.events;
  const spending = new Spending(request.parent?.spending);
  if (past !== undefined) spending.resume(past);
  const log = new OperationLog({
    store,
    state,
    id,
    // Only an id of the caller can have been logged by another process.
    input: request.id,
    clock: runtime.clock,
    signal,
    resumes: request.resumes === true,
    repository: running.repository,
    unsaved: harness.unsaved,
  });
  const { omitRules } = live.profile;
  const mayLeaveOut = omitRules !== undefined || state.notes.length > 0;
  // Every field stands here: an object that grows by spreads costs several times as much.
  return {
    id,
    state,
    emit: running.emit,
    events: running.events,
    past,
    suspension: running.suspension,
    failures: running,
    kind: request.kind,
    task_id: scope.task_id,
    part: undefined,
    signal,
    secrets: noSecrets,
    repository: undefined,
    mask: runtime.mask,
    tracing:
      tracing === undefined
        ? undefined
        : tracingOfOperation(tracing, harness, { ...live.key, operation_id: id }),
    spending,
    rulesLeftOut: mayLeaveOut
      ? rulesLeftOut(state, omitRules, request.parent?.rulesLeftOut)
      : (request.parent?.rulesLeftOut ?? noRules),
    tasks: noTasks,
    live,
    log,
  };
}

const noSecrets: Operation["secrets"] = {};
const noTasks: Operation["tasks"] = [];

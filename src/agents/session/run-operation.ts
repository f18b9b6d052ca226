import { onAbort } from "../../base/abort.ts";
import { isoTime } from "../../base/clock.ts";
import { createId } from "../../base/id.ts";
import { KitError } from "../../base/kit-error.ts";
import { isErrorCode } from "../../protocol/error-code.ts";
import type { EventBody, EventError } from "../../protocol/event.ts";
import { type OperationEnd, operationEndNote } from "../../protocol/operation-end.ts";
import type { RepositoryState } from "../../protocol/repository.ts";
import type { TracePlace } from "../../protocol/tracing.ts";
import type { Harness, LiveSession, Operation, OperationOrigin, OperationRequest } from "../agent-runtime.ts";
import { type EventScope, type OperationTracing, taskOfPart } from "../events.ts";
import { attemptOf, type OperationAttempt } from "../log/attempt.ts";
import { forkOf, placeOfFork } from "../log/fork.ts";
import { rulesLeftOut } from "../log/left-out-rules.ts";
import { OperationLog, type OperationLogOptions } from "../log/operation-log.ts";
import { loadPastOperation, type PastOperation } from "../log/past-operation.ts";
import { begunAt, type SessionState } from "../log/session-state.ts";
import { isSuspension, suspensionBefore, willResume } from "../log/suspension.ts";
import { type UnsavedWork, unsavedOf } from "../log/unsaved-work.ts";
import { maskError, maskValue, type SecretMask } from "../secrets.ts";
import { Spending } from "../turn/budget.ts";
import { OperationFailures } from "./operation-failures.ts";

/** An operation of a session from its start to its end. */
export interface RunningOperation {
  readonly harness: Harness;
  readonly live: LiveSession;
  readonly request: OperationRequest;
  /** The run step or trace that the operation was started in. */
  readonly origin: OperationOrigin | undefined;
  readonly controller: AbortController;
  /** Callbacks for its end; undefined until there is one. */
  ended: (() => void)[] | undefined;
  emit: Operation["emit"];
  /** Undefined while its history loads. */
  operation: Operation | undefined;
}

/**
 * Runs work as an operation of a session: loads the history, closes calls that a killed process left open (a resumed
 * operation closes its own), and emits the events that start and end an operation, however it ends.
 */
export async function runOperation<Value>(
  running: RunningOperation,
  work: (operation: Operation) => Promise<Value>,
): Promise<Value> {
  const { harness, live, request, origin } = running;
  const { signal } = running.controller;
  const stopForwarding = onAbort(request.signal, (reason) => running.controller.abort(reason));
  const scope = scopeOf(running);
  const suspension = suspensionBefore(request.signal);
  const attempt = attemptOf(request.signal);
  const emit: Operation["emit"] = (body, turnId) => {
    if (suspension?.hasEmitted(body) === true || harness.events.skip()) return;
    // The operation's own mask also covers the secrets granted to its call.
    const { mask } = running.operation ?? harness.runtime;
    const task_id = taskOfPart(running.operation?.part, turnId);
    const eventScope = task_id === undefined ? scope : { ...scope, task_id };
    harness.events.publish(mask === undefined ? body : maskBody(body, mask), eventScope, turnId);
  };
  running.emit = emit;
  // A suspension must see each body: it knows which events readers have.
  const skipped = suspension === undefined ? () => harness.events.skip() : () => false;
  const { now } = harness.runtime.clock;
  const started = suspension?.startedAt ?? now();
  let opened = false;
  let repository: RepositoryState | undefined;
  const open = (past?: PastOperation, state?: SessionState): void => {
    opened = true;
    if (skipped()) return;
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
    emit({
      type: "operation_start",
      operation_kind,
      ...resumed,
      ...placeOf(attempt),
      ...from,
      ...sent,
      ...(rewound === undefined ? undefined : { rewound_before: rewound }),
      ...(repository === undefined ? undefined : { repository }),
      ...origin,
    });
  };
  const toError = (error: unknown): EventError => toEventError(error, running);
  const failures = new OperationFailures({ attempt, emit, toEventError: toError });
  // Undefined for work that goes on later: under the same id, after a rest, in the next attempt, or in another process.
  let end: "completed" | OperationEnd["status"] | undefined;
  try {
    repository = harness.runtime.project?.stateAt(live.location());
    const { rewindBefore, fork } = request;
    const goesElsewhere = rewindBefore !== undefined || fork !== undefined;
    if (request.resumes !== true && !goesElsewhere) open();
    // Write unsaved work of an earlier operation first, then read the history.
    const unsaved = unsavedOf(harness.store, harness.runtime.clock);
    const writing = unsaved.write(live.key);
    if (writing !== undefined) await writing;
    const loading = live.load();
    const state = loading instanceof Promise ? await loading : loading;
    const id = scope.operation_id;
    const isFresh = loading instanceof Promise;
    const past =
      request.resumes === true ? await loadPastOperation(harness.store, state, { id, isFresh }) : undefined;
    if (!opened && !goesElsewhere) open(past, state);
    const operation = toOperation(running, unsaved, {
      id,
      state,
      emit,
      skipped,
      past,
      suspension,
      failures,
      repository,
    });
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
    if (!opened) open(past, state);
    if (past === undefined) {
      const closed = operation.log.append([]);
      if (closed instanceof Promise) await closed;
    }
    signal.throwIfAborted();
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
    if (isSuspension(signal) && error === signal.reason) {
      signal.reason.startedAt = started;
      throw error;
    }
    if (!opened) open();
    let status: OperationEnd["status"] | undefined;
    if (!signal.aborted) status = (await failures.report(error)) === undefined ? "failed" : undefined;
    else if (request.resumes !== true || !willResume(signal)) {
      status = "aborted";
      emit({ type: "aborted" });
    }
    end = status;
    if (status !== undefined)
      await logEnd(running, unsavedOf(harness.store, harness.runtime.clock), {
        status,
        ...(status === "failed" ? { error: toError(error) } : undefined),
        ...endingOf(attempt),
        duration_ms: now() - started,
      });
    const { mask } = running.operation ?? harness.runtime;
    throw mask === undefined ? error : maskError(error, mask);
  } finally {
    stopForwarding();
    if (end !== undefined && !skipped()) {
      const usage = running.operation?.spending.usage;
      emit({
        type: "operation",
        operation_kind: request.kind,
        duration_ms: now() - started,
        is_error: end !== "completed",
        ...(end === "aborted" ? ({ is_aborted: true } as const) : undefined),
        ...(usage === undefined || usage.total_tokens === 0 ? undefined : { usage }),
      });
    }
    if (end !== undefined && !skipped()) emit({ type: "idle" });
  }
}

function placeOf(
  attempt: OperationAttempt | undefined,
): Pick<Extract<EventBody, { type: "operation_start" }>, "attempt" | "dispatch_id"> {
  if (attempt === undefined) return {};
  const { dispatch_id, number } = attempt;
  return number === 1 ? { dispatch_id } : { attempt: number, dispatch_id };
}

function endingOf(attempt: OperationAttempt | undefined): Pick<OperationEnd, "attempts" | "dispatch_id"> {
  const { attempt: attempts, ...place } = placeOf(attempt);
  return attempts === undefined ? place : { attempts, ...place };
}

/** Writes the end of a failed or aborted operation into its session's log, as far as the store can be written. */
async function logEnd(
  { harness, live, request, operation }: RunningOperation,
  unsaved: UnsavedWork,
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
    await unsaved.write(live.key);
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

function scopeOf({ harness, live, request }: RunningOperation): EventScope {
  const { agent, instance_id, session } = live.key;
  const { parent_operation_id, task_id } = request.scope ?? {};
  return {
    agent,
    instance_id,
    session,
    run_id: harness.run_id,
    operation_id: request.id ?? createId("op"),
    task_id,
    parent_operation_id,
  };
}

function toOperation(
  { harness, live, controller, request }: RunningOperation,
  unsaved: UnsavedWork,
  parts: Pick<Operation, "id" | "state" | "emit" | "skipped" | "past" | "suspension" | "failures"> &
    Pick<OperationLogOptions, "repository">,
): Operation {
  const { id, state, emit, skipped, past, suspension, failures } = parts;
  const { store, runtime } = harness;
  const { signal } = controller;
  const spending = new Spending(request.parent?.spending);
  if (past !== undefined) spending.resume(past);
  const log = new OperationLog({
    store,
    state: state,
    id: id,
    // Only an id of the caller can have been logged by another process.
    input: request.id,
    clock: runtime.clock,
    signal,
    resumes: request.resumes === true,
    repository: parts.repository,
    unsaved,
  });
  // Every field stands here: an object that grows by spreads costs several times as much.
  return {
    id,
    state,
    emit,
    skipped,
    past,
    suspension,
    failures,
    kind: request.kind,
    task_id: request.scope?.task_id,
    part: undefined,
    signal,
    secrets: {},
    repository: undefined,
    mask: runtime.mask,
    tracing: tracingOfOperation(harness, live, id),
    spending,
    rulesLeftOut: rulesLeftOut(state, live.profile.omitRules, request.parent?.rulesLeftOut),
    tasks: [],
    live,
    log,
  };
}

/** Masks an event, except deltas and results, which are masked at their source. */
function maskBody(body: EventBody, mask: SecretMask): EventBody {
  switch (body.type) {
    case "text_delta":
    case "reasoning_delta":
    case "tool_args_delta":
    case "tool_end":
      return body;
    default:
      return maskValue(body, mask);
  }
}

function toEventError(error: unknown, { harness, operation }: RunningOperation): EventError {
  const cause = harness.runtime.causeOf?.(error, operation?.mask);
  const why = cause === undefined ? {} : { cause };
  if (error instanceof KitError) {
    const { code, message } = error;
    if (isErrorCode(code)) return { type: code, message, ...why };
  }
  return { type: "internal_error", message: "The operation failed.", ...why };
}

/** The spans of an operation; undefined if no listener traces. */
function tracingOfOperation(
  harness: Harness,
  { key }: Pick<LiveSession, "key">,
  operation_id: string,
): OperationTracing | undefined {
  const { tracing } = harness.events;
  if (tracing === undefined) return undefined;
  const { origins } = harness.runtime;
  const at = (place: Pick<TracePlace, "turn_id" | "tool_call_id">): TracePlace => ({
    ...key,
    operation_id,
    ...place,
  });
  return {
    headers: (place) => tracing.of(at(place)),
    within(place, work) {
      const fullPlace = at(place);
      const run = (): ReturnType<typeof work> => tracing.within(fullPlace, work);
      return origins === undefined ? run() : origins.run({ ...tracing.of(fullPlace) }, run);
    },
    notify(place, { content, request }, mask) {
      tracing.request?.(at(place), mask === undefined ? request : maskValue(request, mask));
      if (!tracing.capturesContent) return;
      tracing.content(at(place), mask === undefined ? content() : maskValue(content(), mask));
    },
    notifyCalls(place, calls) {
      tracing.calls?.(at(place), calls);
    },
  };
}

import { onAbort } from "../../base/abort.ts";
import { createId } from "../../base/id.ts";
import { KitError } from "../../base/kit-error.ts";
import { isErrorCode } from "../../protocol/error-code.ts";
import type { EventBody, EventError } from "../../protocol/event.ts";
import type { TracePlace } from "../../protocol/tracing.ts";
import type { Harness, LiveSession, Operation, OperationRequest } from "../agent-runtime.ts";
import { type EventScope, type OperationTracing, taskOfPart } from "../events.ts";
import { forkOf, rulesLeftOut } from "../log/fork.ts";
import { OperationLog } from "../log/operation-log.ts";
import { loadPastOperation, type PastOperation } from "../log/past-operation.ts";
import type { SessionState } from "../log/session-state.ts";
import { isSuspension, suspensionBefore } from "../log/suspension.ts";
import { type UnsavedWork, unsavedOf } from "../log/unsaved-work.ts";
import { maskError, maskValue, type SecretMask } from "../secrets.ts";
import { Spending } from "../turn/budget.ts";

/** The running operation of a session. */
export interface RunningOperation {
  readonly controller: AbortController;
  /** Callbacks for its end. */
  readonly ended: (() => void)[];
  emit: Operation["emit"];
  /** Undefined while its history loads. */
  operation: Operation | undefined;
}

export interface OperationStart {
  readonly harness: Harness;
  readonly live: LiveSession;
  readonly running: RunningOperation;
  readonly request: OperationRequest;
}

/**
 * Runs work as an operation of a session: loads the history, closes calls that a killed process left open (a resumed
 * operation closes its own), and emits the events that start and end an operation, however it ends.
 */
export async function runOperation<Value>(
  start: OperationStart,
  work: (operation: Operation) => Promise<Value>,
): Promise<Value> {
  const { harness, running, request } = start;
  const { signal } = running.controller;
  const stopForwarding = onAbort(request.signal, (reason) => running.controller.abort(reason));
  const scope = scopeOf(start);
  const suspension = suspensionBefore(request.signal);
  const emit: Operation["emit"] = (body, turnId) => {
    if (suspension?.hasEmitted(body) === true) return;
    // The operation's own mask also covers the secrets granted to its call.
    const { mask } = running.operation ?? harness.runtime;
    const task_id = taskOfPart(running.operation?.part, turnId);
    const eventScope = task_id === undefined ? scope : { ...scope, task_id };
    harness.events.publish(mask === undefined ? body : maskBody(body, mask), eventScope, turnId);
  };
  running.emit = emit;
  const { now } = harness.runtime.clock;
  const started = suspension?.startedAt ?? now();
  let opened = false;
  const open = (past?: PastOperation, state?: SessionState): void => {
    opened = true;
    const fork = state === undefined ? undefined : forkOf(state);
    const forked = fork !== undefined && fork.fork_id === scope.operation_id;
    const from = forked ? { forked_from: { session: fork.session, turn_id: fork.turn_id } } : undefined;
    const resumed = past === undefined || forked ? undefined : ({ resumed: true } as const);
    const { kind: operation_kind, message, images = 0 } = request;
    const sent = message === undefined ? undefined : { message, ...(images === 0 ? undefined : { images }) };
    emit({ type: "operation_start", operation_kind, ...resumed, ...from, ...sent, ...request.origin });
  };
  let failed = true;
  let suspended = false;
  try {
    if (request.resumes !== true) open();
    // Write unsaved work of an earlier operation first, then read the history.
    const unsaved = unsavedOf(harness.store, harness.runtime.clock);
    const writing = unsaved.write(start.live.key);
    if (writing !== undefined) await writing;
    const loading = start.live.load();
    const state = loading instanceof Promise ? await loading : loading;
    const id = scope.operation_id;
    const past = request.resumes === true ? await loadPastOperation(harness.store, state, id) : undefined;
    if (!opened) open(past, state);
    const operation = toOperation(start, unsaved, { id, state, emit, past, suspension });
    running.operation = operation;
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
    failed = false;
    return value;
  } catch (error) {
    if (isSuspension(signal) && error === signal.reason) {
      suspended = true;
      signal.reason.startedAt = started;
      throw error;
    }
    if (!opened) open();
    if (signal.aborted) emit({ type: "aborted" });
    else emit({ type: "error", error: toEventError(error, { harness, running }), will_retry: false });
    const { mask } = running.operation ?? harness.runtime;
    throw mask === undefined ? error : maskError(error, mask);
  } finally {
    stopForwarding();
    if (!suspended) {
      const usage = running.operation?.spending.usage;
      emit({
        type: "operation",
        operation_kind: request.kind,
        duration_ms: now() - started,
        is_error: failed,
        ...(failed && signal.aborted ? ({ is_aborted: true } as const) : undefined),
        ...(usage === undefined || usage.total_tokens === 0 ? undefined : { usage }),
      });
      emit({ type: "idle" });
    }
  }
}

function scopeOf({ harness, live, request }: OperationStart): EventScope {
  return {
    ...live.key,
    run_id: harness.run_id,
    operation_id: request.id ?? createId("op"),
    ...request.scope,
  };
}

function toOperation(
  { harness, live, running, request }: OperationStart,
  unsaved: UnsavedWork,
  parts: Pick<Operation, "id" | "state" | "emit" | "past" | "suspension">,
): Operation {
  const { store, runtime } = harness;
  const { signal } = running.controller;
  const spending = new Spending(request.parent?.spending);
  if (parts.past !== undefined) spending.resume(parts.past);
  const leftOut = rulesLeftOut(parts.state);
  const log = new OperationLog({
    store,
    state: parts.state,
    id: parts.id,
    // Only an id of the caller can have been logged by another process.
    input: request.id,
    clock: runtime.clock,
    signal,
    resumes: request.resumes === true,
    unsaved,
  });
  return {
    ...parts,
    kind: request.kind,
    task_id: request.scope?.task_id,
    part: undefined,
    signal,
    secrets: {},
    repository: undefined,
    mask: runtime.mask,
    tracing: tracingOfOperation(harness, live, parts.id),
    spending,
    rulesLeftOut: leftOut.size > 0 ? leftOut : (request.parent?.rulesLeftOut ?? leftOut),
    tasks: [],
    live,
    log,
  };
}

/** Masks an event, except deltas and results, which are masked at their source. */
function maskBody(body: EventBody, mask: SecretMask): EventBody {
  if (body.type === "text_delta" || body.type === "reasoning_delta" || body.type === "tool_end") return body;
  return maskValue(body, mask);
}

function toEventError(
  error: unknown,
  { harness, running }: Pick<OperationStart, "harness" | "running">,
): EventError {
  const cause = harness.runtime.causeOf?.(error, running.operation?.mask);
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
    notify(place, content, mask) {
      if (!tracing.capturesContent) return;
      tracing.content(at(place), mask === undefined ? content() : maskValue(content(), mask));
    },
  };
}

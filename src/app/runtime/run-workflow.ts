import type { AgentContext, AgentDefinition, InstanceContext } from "../../agents/define/create-agent.ts";
import type { Agent } from "../../agents/harness.ts";
import { maskError, maskValue, type SecretMask } from "../../agents/secrets.ts";
import { isoTime } from "../../base/clock.ts";
import { KitError } from "../../base/kit-error.ts";
import { checkAgainst, checkPayload, locateIssue } from "../../base/standard-schema.ts";
import type { RunContext, RunRequest, StepWork } from "../../engine/contract.ts";
import { causeLine, type ErrorCause } from "../../protocol/error-cause.ts";
import { isErrorCode } from "../../protocol/error-code.ts";
import type { EventBody, EventError, KitEvent } from "../../protocol/event.ts";
import { outageOf } from "../../protocol/outage.ts";
import type { Dispatch } from "../../protocol/run-calls.ts";
import type { SessionKey } from "../../protocol/session-entry.ts";
import { instanceName } from "../../protocol/session-name.ts";
import type { TraceContext, TracePlace } from "../../protocol/tracing.ts";
import { type AgentJournal, journalAgent } from "../../workflows/journal-agent.ts";
import type { WorkflowContext, WorkflowLog } from "../../workflows/workflow-context.ts";
import type { RunnableWorkflow } from "../sources/discover-sources.ts";
import type { AgentFactory, AgentRequest } from "./agent-factory.ts";
import { type Observers, origins } from "./observers.ts";
import { journalRuns, type ProjectRuns, typedWait } from "./run-children.ts";
import { usable } from "./usable-code.ts";

/** The parts that all runs of a project's workflows share. */
export interface WorkflowRuntime {
  readonly env: AgentContext["env"];
  readonly validateJson: AgentJournal["validateJson"];
  /** Creates the agents of a run. */
  readonly factory: AgentFactory;
  readonly stores: RunStores;
  /** Converts a dispatched input for the engine. Throws `unavailable` if the application stores no work. */
  toAdmitted(
    ...args: Parameters<Dispatch>
  ): SessionKey & { readonly input: unknown; readonly joins?: boolean | undefined };
  causeOf(error: unknown): ErrorCause | undefined;
  /** Receive the events of the run itself; its agents emit their own. */
  readonly observers: Observers;
  /** Masks secrets in events, results and errors. */
  readonly mask: SecretMask | undefined;
}

/** A run, and the fence of the lease under which this process runs it. */
export type RunLease = Pick<RunContext, "id" | "fence">;

export interface RunStores {
  /**
   * Returns the function that wraps the service's store, or an agent's own, for the agents of a run: they refuse appends once another
   * worker holds the lease of the run. Undefined if no other worker can.
   */
  forRun(run: RunLease): AgentRequest["storeFor"];
  forgetRun(run: RunLease): void;
}

export interface RunWork {
  readonly context: RunContext;
  readonly request: RunRequest;
  /** Whether the run's stream has a `run_start`: a killed process loses the events that it had not written. */
  readonly hasStartEvent: boolean;
  readonly local?: LocalRun | undefined;
  /** Starts and awaits other runs. */
  readonly runs: ProjectRuns;
}

/** The parts of a run that only the process that started it has. */
export interface LocalRun {
  readonly env?: AgentContext["env"] | undefined;
  readonly request?: Request | undefined;
  /** Receives the error of a failed run, which has more details than the record. */
  onFailure?(error: KitError): void;
  /** Receives the problem of a run that waits because of its code. */
  onHeld?(problem: KitError): void;
}

/**
 * Runs a workflow's function on the journal of a run: from its start or, after a crash or a wait, from the last recorded
 * call. It closes the run's agents when the run ends or is abandoned.
 */
export async function runWorkflow(
  runtime: WorkflowRuntime,
  workflow: RunnableWorkflow,
  work: RunWork,
): Promise<unknown> {
  const { id, signal, step, startedAt } = work.context;
  const { emit, forward } = createRunEvents(runtime, work.context);
  if (!work.hasStartEvent)
    emit({ type: "run_start", workflow: workflow.name, ...work.request.trace }, startedAt);
  const closing: (() => Promise<void>)[] = [];
  let failed = true;
  let willResume = false;
  let reported: EventError | undefined;
  try {
    signal.throwIfAborted();
    const payload = await checkPayload(workflow.payload, work.request.payload, {
      receiver: `the workflow "${workflow.name}"`,
      validateJson: runtime.validateJson,
    }).catch((error: unknown) => {
      // The payload was accepted: the schema has changed since.
      throw work.hasStartEvent && error instanceof KitError ? work.context.hold(error) : error;
    });
    const run = { id, env: work.local?.env ?? runtime.env, payload: payload as WorkflowContext["payload"] };
    const journal = { step, validateJson: runtime.validateJson };
    const { stores, factory } = runtime;
    const storeFor = stores.forRun(work.context);
    const agents = createRunAgents({ run, journal, factory, storeFor, onEvent: forward });
    closing.push(agents.close);
    const log = createRunLog(emit);
    const context: WorkflowContext = {
      ...run,
      ...toJournaled(runtime, work, { emit, warn: log.warn }),
      log,
      init: agents.init,
    };
    const running = (workflow.run as (context: WorkflowContext) => unknown)(context);
    const returned = await untilAborted(Promise.resolve(running), signal);
    const result = await checkResult(workflow, returned, runtime.validateJson);
    work.context.checkResult(result);
    failed = false;
    return runtime.mask === undefined ? result : maskValue(result, runtime.mask);
  } catch (error) {
    if (signal.aborted) throw signal.reason;
    // The engine resumes the run after the outage, so emit no end.
    willResume = outageOf(error) !== undefined;
    if (willResume) throw error;
    const failure = masked(toRunError(error, { runtime, name: workflow.name, runId: id }), runtime);
    reported = toEventError(failure, runtime);
    work.local?.onFailure?.(failure);
    throw failure;
  } finally {
    for (const close of closing) await close();
    if (!willResume) runtime.stores.forgetRun(work.context);
    // A suspended run emits no more events.
    // The clock can have been set back in the meantime.
    const duration_ms = Math.max(0, Date.now() - startedAt);
    const ending = endingOf(failed, { aborted: signal.aborted, error: reported });
    const reason = !failed ? "completed" : signal.aborted ? "cancelled" : "failed";
    if (!willResume) emit({ type: "run_end", workflow: workflow.name, reason, ...ending, duration_ms });
  }
}

type Journaled = Omit<WorkflowContext, "id" | "payload" | "env" | "log" | "init">;

/** The part of the context that comes from the run's journal. */
function toJournaled(
  runtime: WorkflowRuntime,
  { context, local, request, runs }: RunWork,
  { emit, warn }: Pick<RunEvents, "emit"> & Pick<WorkflowLog, "warn">,
): Journaled {
  const { step, stepAfter } = emitSteps(context, emit, runtime);
  return {
    signal: context.signal,
    attempt: context.attempt,
    step,
    ...journalRuns(runs, context, { step, stepAfter, principal: request.principal }),
    sleep: context.sleep,
    now: context.now,
    uuid: context.uuid,
    patched: context.patched,
    waitFor: typedWait(runs, context, { validateJson: runtime.validateJson, warn }),
    dispatch: async (agent, input) =>
      await context.dispatch({
        ...usable(() => runtime.toAdmitted(agent, input), context),
        ...traceOf(runtime, { ...placeOf(context.id), step_id: origins.getStore()?.step_id }),
      }),
    ...(local?.request === undefined ? {} : { req: local.request }),
  };
}

function placeOf(runId: string): TracePlace {
  return { instance_id: runId, operation_id: runId, run_id: runId };
}

function traceOf(
  { observers: { tracing } }: WorkflowRuntime,
  place: TracePlace,
): { readonly trace?: TraceContext } {
  const trace = tracing?.of(place);
  return trace === undefined ? {} : { trace };
}

/** Emits the start and end of each executed step; replayed steps emit nothing. */
function emitSteps(
  { id, step, stepAfter }: Pick<RunContext, "id" | "step" | "stepAfter">,
  emit: RunEvents["emit"],
  runtime: WorkflowRuntime,
): Pick<RunContext, "step" | "stepAfter"> {
  const emitting =
    <Value>(name: string, work: StepWork<Value>): StepWork<Value> =>
    async (attempt) => {
      const started = performance.now();
      const step_id = attempt.idempotencyKey;
      emit({ type: "step_start", step: name, step_id, attempt: attempt.attempt });
      let ending = endingOf(false);
      try {
        // For the run, a cancelled or timed-out step has ended, even if its work continues.
        const tracePlace = { ...placeOf(id), step_id };
        const begin = async () => await work(attempt);
        const { tracing } = runtime.observers;
        const working = origins.run({ step: name, step_id }, () =>
          tracing === undefined ? begin() : tracing.within(tracePlace, begin),
        );
        return await untilAborted(working, attempt.signal);
      } catch (error) {
        const failure = masked(toStepFailure(error, name, runtime), runtime);
        ending = endingOf(true, {
          aborted: failure.code === "aborted",
          error: toEventError(failure, runtime),
        });
        throw failure;
      } finally {
        const duration_ms = Math.round(performance.now() - started);
        emit({ type: "step_end", step: name, step_id, ...ending, duration_ms });
      }
    };
  return {
    step: (name, work, options) => step(name, emitting(name, work), options),
    stepAfter: (name, work, awaited) => stepAfter(name, emitting(name, work), awaited),
  };
}

/** The outcome of a step or run in its last event. */
function endingOf(
  failed: boolean,
  { aborted = false, error }: { readonly aborted?: boolean; readonly error?: EventError | undefined } = {},
): { is_error: boolean; is_aborted?: true; error?: EventError | undefined } {
  if (!failed) return { is_error: false };
  if (aborted) return { is_error: true, is_aborted: true };
  return { is_error: true, error };
}

function toEventError(error: KitError, { causeOf }: Pick<WorkflowRuntime, "causeOf">): EventError {
  const { code, message } = error;
  const cause = causeOf(error);
  const errorCode = isErrorCode(code) ? code : "internal_error";
  return { type: errorCode, message, cause };
}

function masked(error: KitError, { mask }: Pick<WorkflowRuntime, "mask">): KitError {
  return mask === undefined ? error : maskError(error, mask);
}

function toStepFailure(error: unknown, step: string, runtime: WorkflowRuntime): KitError {
  return error instanceof KitError
    ? error
    : toFailure(error, `The step ${JSON.stringify(step)} failed.`, runtime);
}

/** Creates the error for a failure of the workflow's code; the hint has its message and place. */
function toFailure(error: unknown, message: string, { causeOf }: WorkflowRuntime): KitError {
  const cause = causeOf(error);
  return new KitError({
    code: "internal_error",
    message,
    cause: error,
    hint: cause && causeLine(cause),
  });
}

/** Abandons a run that ignores its signal: its agents are aborted, and the worker no longer waits for it. */
function untilAborted<Value>(work: Promise<Value>, signal: AbortSignal): Promise<Value> {
  return new Promise((resolve, reject) => {
    const leave = (): void => reject(signal.reason);
    signal.addEventListener("abort", leave, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener("abort", leave));
  });
}

interface RunEvents {
  /** `at` is in ms since 1970; default now. */
  emit(body: EventBody, at?: number): void;
  /** Adds an agent's event to the stream of the run. */
  forward(event: KitEvent): void;
}

function createRunEvents(runtime: WorkflowRuntime, { id, emit: record }: RunWork["context"]): RunEvents {
  const ids = { instance_id: id, operation_id: id, run_id: id };
  return {
    forward({ index: _, ...event }) {
      record(event);
    },
    emit(body, at = Date.now()) {
      const maskedBody = runtime.mask === undefined ? body : maskValue(body, runtime.mask);
      const event = { ...maskedBody, ...ids, timestamp: isoTime(at) };
      const index = record(event);
      if (index !== undefined) runtime.observers.publish({ ...event, index });
    },
  };
}

function toRunError(
  error: unknown,
  run: { readonly runtime: WorkflowRuntime; readonly name: string; readonly runId: string },
): KitError {
  const knownError =
    error instanceof KitError ? error : toFailure(error, `The workflow "${run.name}" failed.`, run.runtime);
  const { code, message, hint } = knownError;
  const meta = { ...knownError.meta, run_id: run.runId };
  // The cause of an error outside kit is the thrown value.
  const cause = knownError === error ? knownError : error;
  return new KitError({ code, message, meta, cause, hint });
}

interface RunAgents {
  readonly init: WorkflowContext["init"];
  close(): Promise<void>;
}

interface RunAgentsOptions {
  readonly run: InstanceContext;
  readonly journal: AgentJournal;
  readonly factory: AgentFactory;
  readonly storeFor: AgentRequest["storeFor"];
  onEvent(event: KitEvent): void;
}

/** The agents of a run: it creates one agent per definition and name. */
function createRunAgents({ run, journal, factory, storeFor, onEvent }: RunAgentsOptions): RunAgents {
  const agentsOf = new Map<AgentDefinition, Map<string, Promise<Agent>>>();
  const owners = new Map<string, AgentDefinition>();
  const alive: Agent[] = [];
  let closed = false;
  const start = async (definition: AgentDefinition, identity: { id: string; name: string | undefined }) => {
    const agent = await factory.create(definition, { ...run, ...identity, run_id: run.id, storeFor });
    const key = instanceName({ agent: agent.name, instance_id: agent.id });
    const owner = owners.get(key) ?? definition;
    if (owner !== definition) throw sameName(agent.name);
    owners.set(key, definition);
    agent.onEvent(onEvent);
    alive.push(agent);
    if (closed) await agent.close();
    return journalAgent(agent, journal);
  };
  return {
    init(definition, { id = run.id, name } = {}) {
      const agents = agentsOf.get(definition) ?? new Map<string, Promise<Agent>>();
      agentsOf.set(definition, agents);
      const key = JSON.stringify([id, name]);
      const agent = agents.get(key) ?? start(definition, { id, name });
      agents.set(key, agent);
      agent.catch(() => agents.delete(key));
      return agent;
    },
    async close() {
      closed = true;
      await Promise.allSettled(alive.map((agent) => agent.close()));
    },
  };
}

function sameName(name: string): KitError {
  return new KitError({
    code: "invalid_request",
    message: `Two agents of this run are named "${name}", and would share one history.`,
    hint: "Give each a `name` in its profile, or as ctx.init(agent, { name }).",
  });
}

/** Creates the log of a run, whose lines are events. */
function createRunLog(emit: (body: EventBody) => void): WorkflowLog {
  const write =
    (level: Extract<EventBody, { type: "log" }>["level"]): WorkflowLog["info"] =>
    (message, data) =>
      emit({
        type: "log",
        level,
        message,
        ...(data === undefined ? {} : { data: toData(data) }),
      });
  return { info: write("info"), warn: write("warning"), error: write("error") };
}

/** Converts the data to JSON; a value without a JSON form, such as an error or a cycle, becomes a text. */
function toData(data: unknown): unknown {
  try {
    const plain = data instanceof Error ? { name: data.name, message: data.message } : data;
    return JSON.parse(JSON.stringify(plain) ?? "null");
  } catch {
    return String(data);
  }
}

/** Returns the result as the workflow's schema parsed it. Throws `internal_error`: the workflow's code is wrong, not its caller. */
async function checkResult(
  { name, result: schema }: RunnableWorkflow,
  result: unknown,
  validateJson: WorkflowRuntime["validateJson"],
): Promise<unknown> {
  if (schema === undefined) return result;
  const check = await checkAgainst(schema, result, validateJson);
  if (check.issues === undefined) return check.value;
  throw new KitError({
    code: "internal_error",
    message: `The result of the workflow "${name}" does not fit its schema: ${check.issues.join("; ")}.`,
    hint: "Return what `result` describes, or change the schema.",
    meta: { issues: check.issues.map((issue) => locateIssue(issue, "result")) },
  });
}

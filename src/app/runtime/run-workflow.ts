import type { AgentContext } from "../../agents/create-agent.ts";
import { maskError, maskValue, type SecretMask } from "../../agents/secrets.ts";
import { isoTime } from "../../base/clock.ts";
import { KitError } from "../../base/kit-error.ts";
import { causeLine, type ErrorCause } from "../../protocol/error-cause.ts";
import { isErrorCode } from "../../protocol/error-code.ts";
import type { EventBody, EventError, KitEvent } from "../../protocol/event.ts";
import type { PromptChoices } from "../../protocol/prompt.ts";
import { isStoreUnavailable } from "../../protocol/store-fault.ts";
import type { TraceContext } from "../../protocol/trace-context.ts";
import type { TracePlace, Tracing } from "../../protocol/tracing.ts";
import type { WorkflowContext } from "../../workflows/workflow-context.ts";
import type { LoadedWorkflow } from "../sources/workflow-source.ts";
import { checkPayload } from "./check-payload.ts";
import type { RunWork } from "./hosted-app.ts";
import { origins } from "./origins.ts";
import { createRunAgents, type RunAgentsOptions } from "./run-agents.ts";
import { createRunLog } from "./run-log.ts";
import { toSessionKey } from "./session-key.ts";

/** What a run needs of the application it runs in. */
export interface WorkflowHost extends Pick<RunAgentsOptions, "bring"> {
  readonly root: string;
  readonly env: AgentContext["env"];
  readonly validateJson: RunAgentsOptions["journal"]["validateJson"];
  /** The session that an input is for. Throws `unavailable` where it would be gone with the process. */
  agentName(agent: Parameters<WorkflowContext["dispatch"]>[0]): string;
  /** A dispatched input as the engine keeps it. */
  toInput(input: unknown, choices?: PromptChoices): unknown;
  causeOf(error: unknown): ErrorCause | undefined;
  /** Hears the run's own events; those of its agents come from the agents. */
  publish(event: KitEvent): void;
  /** The tracing of the first observer that has one; undefined where no observer traces. */
  readonly tracing: Tracing | undefined;
  /** Takes secrets out of events, results and errors. */
  readonly mask: SecretMask | undefined;
}

/**
 * Runs a workflow's function on the journal of a run: from its start, or after a crash or a wait from where
 * it was. The agents that it brought along are closed when it ends, and when it is left behind.
 */
export async function runWorkflow(
  host: WorkflowHost,
  workflow: LoadedWorkflow,
  work: RunWork,
): Promise<unknown> {
  const { id, signal, step, startedAt } = work.context;
  const { emit, forward } = createRunEvents(host, work.context);
  if (!work.hasStartEvent)
    emit({ type: "run_start", workflow: workflow.name, ...work.request.trace }, startedAt);
  const closing: (() => Promise<void>)[] = [];
  let failed = true;
  let goesOnLater = false;
  let said: EventError | undefined;
  try {
    signal.throwIfAborted();
    const payload = await checkPayload(workflow, work.request.payload, host.validateJson);
    const run = { id, env: work.local?.env ?? host.env, payload: payload as WorkflowContext["payload"] };
    const journal = { step, validateJson: host.validateJson };
    const agents = createRunAgents({ run, journal, bring: host.bring, onEvent: forward });
    closing.push(agents.close);
    const context: WorkflowContext = {
      ...run,
      ...toJournaled(host, work, emit),
      log: createRunLog(emit),
      init: agents.init,
    };
    const running = (workflow.run as (context: WorkflowContext) => unknown)(context);
    const result = await untilAborted(Promise.resolve(running), signal);
    work.context.checkResult(result);
    failed = false;
    return host.mask === undefined ? result : maskValue(result, host.mask);
  } catch (error) {
    if (signal.aborted) throw signal.reason;
    // The engine takes it up again when the store is back: nothing has ended.
    goesOnLater = isStoreUnavailable(error);
    if (goesOnLater) throw error;
    const failure = masked(toRunError(error, { host, name: workflow.name, runId: id }), host);
    said = toEventError(failure, host);
    work.local?.onFailure?.(failure);
    throw failure;
  } finally {
    for (const close of closing) await close();
    // Of a run that is left behind, to go on later, nothing is heard any more.
    // The clock may have been set back meanwhile.
    const duration_ms = Math.max(0, Date.now() - startedAt);
    const ending = endingOf(failed, { aborted: signal.aborted, error: said });
    const reason = !failed ? "completed" : signal.aborted ? "cancelled" : "failed";
    if (!goesOnLater) emit({ type: "run_end", workflow: workflow.name, reason, ...ending, duration_ms });
  }
}

type Journaled = Omit<WorkflowContext, "id" | "payload" | "env" | "log" | "init">;

/** What of the context comes from the run's journal. */
function toJournaled(host: WorkflowHost, { context, local }: RunWork, emit: RunEvents["emit"]): Journaled {
  return {
    signal: context.signal,
    attempt: context.attempt,
    step: tellSteps(context, emit, host),
    sleep: context.sleep,
    now: context.now,
    uuid: context.uuid,
    waitFor: async <Value>(name: string, options?: { readonly timeoutMs?: number }) =>
      (await context.waitFor(name, options)) as Value | undefined,
    dispatch: async (agent, { id, session = "default", input, ...choices }) =>
      await context.dispatch({
        ...toSessionKey({ agent: host.agentName(agent), instance_id: id, session }),
        input: host.toInput(input, choices),
        ...traceOf(host, { ...placeOf(context.id), step_id: origins.current()?.step_id }),
      }),
    ...(local?.request === undefined ? {} : { req: local.request }),
  };
}

function placeOf(runId: string): TracePlace {
  return { instance_id: runId, operation_id: runId, run_id: runId };
}

function traceOf({ tracing }: WorkflowHost, place: TracePlace): { readonly trace?: TraceContext } {
  const trace = tracing?.of(place);
  return trace === undefined ? {} : { trace };
}

/** Says when a step begins and ends; a replay, which does not do it again, says nothing. */
function tellSteps(
  { id, step }: Pick<RunWork["context"], "id" | "step">,
  emit: RunEvents["emit"],
  host: WorkflowHost,
): WorkflowContext["step"] {
  return (name, work, options) =>
    step(
      name,
      async (given) => {
        const started = performance.now();
        const step_id = given.idempotency_key;
        emit({ type: "step_start", step: name, step_id, attempt: given.attempt });
        let ending = endingOf(false);
        try {
          // Cancelled or out of its time it is over for the run, whatever its work still does.
          const place = { ...placeOf(id), step_id };
          const begin = async () => await work(given);
          const { tracing } = host;
          const working = origins.run({ step: name, step_id }, () =>
            tracing === undefined ? begin() : tracing.within(place, begin),
          );
          return await untilAborted(working, given.signal);
        } catch (error) {
          const failure = masked(toStepFailure(error, name, host), host);
          ending = endingOf(true, {
            aborted: failure.code === "aborted",
            error: toEventError(failure, host),
          });
          throw failure;
        } finally {
          const duration_ms = Math.round(performance.now() - started);
          emit({ type: "step_end", step: name, step_id, ...ending, duration_ms });
        }
      },
      options,
    );
}

/** How something ended, as its last event says it. */
function endingOf(
  failed: boolean,
  { aborted = false, error }: { readonly aborted?: boolean; readonly error?: EventError | undefined } = {},
): { is_error: boolean; is_aborted?: true; error?: EventError } {
  if (!failed) return { is_error: false };
  if (aborted) return { is_error: true, is_aborted: true };
  return { is_error: true, ...(error === undefined ? {} : { error }) };
}

function toEventError(error: KitError, { causeOf }: Pick<WorkflowHost, "causeOf">): EventError {
  const { code, message } = error;
  const cause = causeOf(error);
  const known = isErrorCode(code) ? code : "internal_error";
  return { type: known, message, ...(cause === undefined ? {} : { cause }) };
}

function masked(error: KitError, { mask }: Pick<WorkflowHost, "mask">): KitError {
  return mask === undefined ? error : maskError(error, mask);
}

function toStepFailure(error: unknown, step: string, host: WorkflowHost): KitError {
  return error instanceof KitError
    ? error
    : toFailure(error, `The step ${JSON.stringify(step)} failed.`, host);
}

/** What somebody's code threw, with what it says and where in the hint. */
function toFailure(error: unknown, message: string, { causeOf }: WorkflowHost): KitError {
  const cause = causeOf(error);
  return new KitError({
    code: "internal_error",
    message,
    cause: error,
    ...(cause === undefined ? {} : { hint: causeLine(cause) }),
  });
}

/** A run that ignores its signal is left behind: its agents are stopped, and nobody waits for it. */
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
  /** Puts an agent's event into the stream of the run. */
  forward(event: KitEvent): void;
}

function createRunEvents(host: WorkflowHost, { id, emit: record }: RunWork["context"]): RunEvents {
  const place = { instance_id: id, operation_id: id, run_id: id };
  return {
    forward({ index: _, ...event }) {
      record(event);
    },
    emit(body, at = Date.now()) {
      const said = host.mask === undefined ? body : maskValue(body, host.mask);
      const event = { ...said, ...place, timestamp: isoTime(at) };
      const index = record(event);
      if (index !== undefined) host.publish({ ...event, index });
    },
  };
}

function toRunError(
  error: unknown,
  run: { readonly host: WorkflowHost; readonly name: string; readonly runId: string },
): KitError {
  const known =
    error instanceof KitError ? error : toFailure(error, `The workflow "${run.name}" failed.`, run.host);
  const { code, message, hint } = known;
  const meta = { ...known.meta, run_id: run.runId };
  // Of what was not ours, the cause is what was thrown.
  const cause = known === error ? known : error;
  return new KitError({ code, message, meta, cause, ...(hint === undefined ? {} : { hint }) });
}

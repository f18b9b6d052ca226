import { createApprovals } from "../../agents/approvals/create-approvals.ts";
import { createId } from "../../base/id.ts";
import { KitError } from "../../base/kit-error.ts";
import { agentStream, type Engine, type WorkContext } from "../../engine/contract.ts";
import { isRetryableCode } from "../../protocol/error-code.ts";
import type { KitEvent } from "../../protocol/event.ts";
import type { PromptReply } from "../../protocol/prompt.ts";
import { isStoreUnavailable } from "../../protocol/store-fault.ts";
import type { HostedApp } from "../runtime/hosted-app.ts";
import { origins } from "../runtime/origins.ts";
import { keyed, toSessionKey } from "../runtime/session-key.ts";
import { createHeldSlots } from "./held-slots.ts";
import { createInstanceAdmin } from "./instance-admin.ts";
import { createOperationListeners } from "./operation-listeners.ts";
import { createOutageLog } from "./outage-log.ts";
import { promptDurably } from "./prompt-durably.ts";
import { RestingWork } from "./resting-work.ts";
import { createRetention } from "./retention.ts";
import type { Service } from "./service.ts";
import { toDispatchInput, toPromptInput } from "./session-input.ts";
import { createSessionWork } from "./session-work.ts";
import { syncSchedules } from "./sync-schedules.ts";
import { createWorkTraces } from "./work-traces.ts";
import { createWorkflowRuns } from "./workflow-runs.ts";

export interface CreateServiceOptions {
  readonly app: HostedApp;
  /** Not started yet. */
  readonly engine: Engine;
  /** Whether workflows run by their schedules; default true. */
  readonly schedules?: boolean;
  /** Told of what fails beside the work: a listener that throws, a schedule that is none; and why a run or dispatch failed. */
  readonly onError?: (error: unknown) => void;
  /** After how long accepted work that waits for somebody's word leaves the memory; default 5,000. */
  readonly restMs?: number | undefined;
}

/** Joins an application with an engine, and takes up work: also what a process that died has left. */
export async function createService({
  app,
  engine,
  schedules = true,
  onError = () => undefined,
  restMs,
}: CreateServiceOptions): Promise<Service> {
  const { events } = engine;
  const listeners = createOperationListeners(onError);
  const slots = createHeldSlots(restMs);
  const work = createSessionWork(app);
  const traces = createWorkTraces(app, engine);
  const runs = createWorkflowRuns({ app, engine, traces }, onError);
  const admin = createInstanceAdmin({ app, engine, work });

  const append = (stream: string, event: KitEvent): void => {
    try {
      events.append(stream, event);
    } catch (error) {
      // Another process works now, and this one is about to learn of it: what it still says is void.
      if (!(error instanceof KitError && error.code === "lease_lost")) throw error;
    }
  };
  const dispatch: Service["dispatch"] = async (
    target,
    input,
    { idempotencyKey, principal, ...choices } = {},
  ) => {
    app.checkAgent(target.agent);
    return engine.admit({
      ...toSessionKey(target),
      ...keyed(idempotencyKey),
      ...(principal === undefined ? slots.principal() : { principal }),
      ...traces.asked(),
      input: toDispatchInput(input, choices),
    });
  };
  app.host({
    lastEvent: (agent, instanceId) => events.last(agentStream(agent, instanceId)),
    record(event) {
      try {
        // Instances alone are recorded here; what a run says itself is in its own stream.
        if (event.agent !== undefined) append(agentStream(event.agent, event.instance_id), event);
      } finally {
        // Who waits for the answer hears of it, whether or not the log has room for it.
        listeners.hear(event);
      }
    },
    dispatch,
    run: runs.toEnd,
    whileAside: slots.whileAside,
  });
  // Those that live already do not know how far their streams in the engine's log have come.
  if (engine.capabilities.durable) app.renewInstances();
  await engine.start({
    dispatch: async (context, request) => {
      try {
        // What is wrong with it, the first event is told.
        await events.begin(agentStream(request.agent, request.instance_id)).catch(() => undefined);
        const { principal } = request;
        const resting = isDispatch(context) ? new RestingWork(context) : undefined;
        const held = { ...(principal === undefined ? {} : { principal }), context, resting };
        // What frees a place in line is no part of what takes it.
        if (context.attempt > 1) await traces.recallSession(request);
        return await origins.run({ ...request.trace }, () =>
          slots.hold(held, () => work.run(context, request, resting)),
        );
      } catch (error) {
        // Nobody waits for a dispatch: why it failed is said here, or nowhere.
        if (!context.signal.aborted && isDispatch(context) && !isStoreUnavailable(error))
          onError(nameDispatch(error, context));
        throw error;
      }
    },
    run: (context, request) =>
      origins.run({}, () => slots.hold({ ...request, context }, () => runs.perform(context, request))),
    isRetryable,
    onOutage: createOutageLog(onError),
    onClockSet: (byMs) => onError(clockSet(byMs)),
    causeOf: app.causeOf,
  });
  const renewSchedules = async (): Promise<void> => {
    if (schedules) await syncSchedules(engine, app, onError);
  };
  await renewSchedules();

  return {
    app,
    engine,
    approvals: app.approvals ?? createApprovals(),
    sessions: createRetention({ app, engine, isAtWork: (target) => work.running(target).length > 0 }),
    async prompt(target, request, { signal, idempotencyKey, principal, onEvent } = {}) {
      app.checkAgent(target.agent);
      const asked = { ...(principal === undefined ? {} : { principal }), ...traces.asked() };
      const key = { ...toSessionKey(target), ...asked };
      const wait = signal === undefined ? {} : { signal };
      if (idempotencyKey !== undefined) {
        const admitted = { ...key, ...keyed(idempotencyKey), input: toPromptInput(request) };
        return promptDurably(engine, admitted, { ...wait, ...(onEvent === undefined ? {} : { onEvent }) });
      }
      const operationId = createId("op");
      const stop = onEvent === undefined ? undefined : listeners.add(operationId, onEvent);
      try {
        const reply = await engine.call({ ...key, input: toPromptInput(request, operationId) }, wait);
        return reply as PromptReply;
      } finally {
        stop?.();
      }
    },
    problem: () => engine.problem?.() ?? app.storeProblem(),
    dispatch,
    ...admin,
    startRun: (workflow, payload, { idempotencyKey, principal, request } = {}) =>
      runs.start(workflow, payload, {
        ...(principal === undefined ? {} : { principal }),
        ...(idempotencyKey === undefined ? {} : { idempotencyKey }),
        ...(request === undefined ? {} : { local: { request } }),
      }),
    async reload() {
      await app.reload();
      await renewSchedules();
    },
    drain: (options) => engine.drain(options),
  };
}

/**
 * An input whose attempt failed in a way that may pass is tried again; one that somebody has stopped is not. A
 * conflict comes of a process that was frozen, and wrote what it had before it learned that another does this now:
 * that belongs to the same operation, which goes on from there.
 */
function isRetryable(error: unknown): boolean {
  if (!(error instanceof KitError) || error.code === "aborted") return false;
  if (error.code === "conflict") return true;
  return isRetryableCode(error.code);
}

/** A call lives in its caller, who is told what it failed with. */
function isDispatch({ id }: WorkContext): boolean {
  return id.startsWith("dispatch_");
}

function nameDispatch(error: unknown, { id: dispatch_id }: WorkContext): unknown {
  if (!(error instanceof KitError)) return error;
  const { code, message, hint, meta, cause } = error;
  const named = { code, message, meta: { ...meta, dispatch_id }, cause };
  return new KitError(hint === undefined ? named : { ...named, hint });
}

/** No failure, but what explains schedules and times that seem odd. */
function clockSet(byMs: number): KitError {
  const seconds = Math.round(Math.abs(byMs) / 1_000);
  const size = [
    [Math.floor(seconds / 3_600), "h"],
    [Math.floor(seconds / 60) % 60, "min"],
    [seconds % 60, "s"],
  ].flatMap(([number, unit]) => (number === 0 ? [] : [`${number} ${unit}`]));
  return new KitError({
    code: "unavailable",
    message: `The clock was set ${byMs > 0 ? "forward" : "back"} by ${size.join(" ")}. What waits is not affected; schedules go by the new time.`,
  });
}

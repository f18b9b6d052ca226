import { unsavedOf } from "../../agents/log/unsaved-work.ts";
import { systemClock } from "../../base/clock.ts";
import { KitError } from "../../base/kit-error.ts";
import { defined } from "../../base/record.ts";
import type { Engine } from "../../engine/contract.ts";
import { agentStream } from "../../engine/event-log-contract.ts";
import { isStoreUnavailable } from "../../protocol/error-code.ts";
import type { ApplicationCalls, Dispatch } from "../../protocol/run-calls.ts";
import type { SessionKey } from "../../protocol/session-entry.ts";
import type { AllowRuleFile } from "../config/allow-rule-file.ts";
import { AgentFactory, type RuntimeParts, serverProblems, toAgentRuntime } from "../runtime/agent-factory.ts";
import { Instances } from "../runtime/instances.ts";
import { createObservers, origins } from "../runtime/observers.ts";
import { workspaceKeeper } from "../runtime/open-sandbox.ts";
import type { WorkflowRuntime } from "../runtime/run-workflow.ts";
import { createToCause } from "../sources/describe-failure.ts";
import { Sources } from "../sources/sources.ts";
import type { App } from "./app.ts";
import type { HousekeepingOptions } from "./housekeeping.ts";
import { createInstanceAdmin } from "./instance-calls.ts";
import { Prompts, SessionWork } from "./prompts.ts";
import { RestingWork, WorkSlots } from "./resting-work.ts";
import { createRetention } from "./retention.ts";
import type { ProjectService, Service, WorkSender } from "./service.ts";
import { toDispatchInput, toIdempotencyKey, toSessionKey } from "./session-input.ts";
import { toSharedParts } from "./shared-parts.ts";
import { operationOf, toFork, toPromptRequest } from "./stored-input.ts";
import type { ScheduleSync } from "./sync-schedules.ts";
import {
  checkKnownByNode,
  clockSet,
  createOutageLog,
  createWorkTraces,
  isRetryableInput,
  keepsNothing,
  nameDispatch,
  type WorkTarget,
  workLost,
} from "./work-errors.ts";
import { WorkflowRuns } from "./workflow-runs.ts";

export interface ServiceOptions extends HousekeepingOptions {
  /** Not started yet; drained with the service. */
  readonly engine: Engine;
  /** False for a command that only reads and removes: the service starts no work. Default true. */
  readonly works?: boolean | undefined;
  /** Whether the service starts scheduled workflows and removes old sessions. Default true. */
  readonly housekeeping?: boolean | undefined;
  /** Whether inputs can be dispatched: not in a program whose callers wait for all results. Default true. */
  readonly keepsWork?: boolean | undefined;
  /** Whether the engine stores the events of instances. Default: if inputs can be dispatched. */
  readonly keepsEvents?: boolean | undefined;
  /** Receive the events of every agent and workflow, also of work that resumes at start. */
  readonly observers?: readonly Parameters<App["onEvent"]>[0][] | undefined;
  /** The address at which other nodes of a cluster reach this one; default: the address of its server. */
  readonly nodeAddress?: string | undefined;
  /** The loaded configuration file; kit adds rules to it that let calls run without an approval. */
  readonly configFile?: string | undefined;
  /** Milliseconds after which stored work that waits for a decision leaves the memory; default 5,000. */
  readonly restMs?: number | undefined;
}

/** How long a stop waits for the store to write the rest; what is not written by then is lost. */
const unsavedPatienceMs = 1_000;

/**
 * Composes a service: it turns sources into live agents and workflows, whose work the engine accepts and starts. Only
 * this function knows both sides. If it throws, the caller closes the parts and the engine.
 */
export async function createService(given: RuntimeParts, options: ServiceOptions): Promise<ProjectService> {
  const { parts: shared, engine, approvals, nodes, fenced } = await toSharedParts(given, options);
  const keepWorkspaces = await workspaceKeeper(shared, (instance) => fenced?.fenceOf(instance));
  const parts = { ...shared, sandbox: keepWorkspaces?.(shared.sandbox, shared.store) ?? shared.sandbox };
  const { keepsWork = true, onError = () => undefined } = options;
  /** This node's engine; `engine` adds the events of the other nodes. */
  const own = options.engine;
  const isRecorded = keepsEvents(options);
  const runsHousekeeping = options.works !== false && options.housekeeping !== false;
  // A node appends events to its own log, which numbers them.
  const { events } = own;
  const { store } = parts;
  const observers = createObservers(parts.onListenerError);
  for (const observer of options.observers ?? []) observers.add(observer);
  const slots = new WorkSlots(options.restMs);
  const sources = await Sources.open(parts.root, parts);
  const toCause = createToCause(sources.root, parts.mask);
  const runtime = toAgentRuntime(parts, {
    observers: observers.all,
    causeOf: toCause,
    sources: sources.guard,
    // `accept` and `runs` are defined below; agents call them after the service is composed.
    callsOf: (parent_run_id, operation) => {
      const cause = () => slots.causeOf(operation, parent_run_id);
      return {
        dispatch: (...asked) => accept(asked, { cause: cause() }),
        ...runs.callsFor(() => ({ ...slots.principal(), parent_run_id, cause: cause() })),
      };
    },
    principal: () => slots.principal().principal,
    guardStore: fenced === undefined ? undefined : (own) => fenced.guard(own),
    approvals: parts.approvals === undefined ? undefined : slots.freeWhileDeciding(parts.approvals),
  });
  const factory = new AgentFactory({ sources, runtime, keepWorkspaces, ...defined(parts) });
  const traces = createWorkTraces(observers, engine);
  const toAdmitted: WorkflowRuntime["toAdmitted"] = (agent, input) => {
    const { id, session = "default", input: given, idempotencyKey: _, ...choices } = input;
    const name = sources.agentName(agent);
    if (!keepsWork) throw keepsNothing();
    const key = toSessionKey({ agent: name, instance_id: id, session });
    return { ...key, input: toDispatchInput(given, choices) };
  };
  const accept = async (
    [agent, input]: Parameters<Dispatch>,
    { principal, cause }: WorkSender = {},
  ): ReturnType<Dispatch> => {
    const admitted = toAdmitted(agent, input);
    const idempotency_key = toIdempotencyKey(input.idempotencyKey);
    return await engine.admit({
      ...admitted,
      ...defined({ idempotency_key, cause }),
      ...(principal === undefined ? slots.principal() : { principal }),
      ...traces.ofCaller(),
    });
  };
  const callsFor = (sender: WorkSender = {}): ApplicationCalls => ({
    dispatch: (...asked) => accept(asked, sender),
    ...runs.callsFor(() => (sender.principal === undefined ? { ...slots.principal(), ...sender } : sender)),
  });
  const around = { env: parts.env, payload: {} };

  const instances = new Instances(async ({ name, id, payload }) => {
    const last_event = isRecorded ? await events.last(agentStream(name, id)) : 0;
    const agent = await factory.createNamed(name, { ...around, id, payload, last_event });
    agent.onEvent((event) => {
      try {
        if (isRecorded) events.append(agentStream(name, id), event);
      } catch (error) {
        // This process has lost the lease: its late events are dropped.
        if (!(error instanceof KitError && error.code === "lease_lost")) throw error;
      } finally {
        // Listeners of the prompt receive the event even if the event log rejects it.
        prompts.listeners.receive(event);
      }
    });
    return agent;
  }, parts.instances);
  const work = new SessionWork({ instances, engine, events: isRecorded ? events : undefined, slots, fenced });
  const prompts = new Prompts({ sources, engine, nodes, traces, work, onError });
  const workflows: WorkflowRuntime = {
    env: parts.env,
    validateJson: runtime.validateJson,
    factory,
    stores: fenced,
    toAdmitted,
    causeOf: toCause,
    observers,
    mask: parts.mask,
  };
  const runs = new WorkflowRuns({ sources, engine, slots, runtime: workflows, traces, onFailure: onError });
  const checkKnownHere = async (work: WorkTarget): Promise<void> => {
    if (engine.cluster === undefined) return;
    await checkKnownByNode(work, { cluster: engine.cluster, sources });
  };
  const admin = createInstanceAdmin({ sources, instances, engine: own, work, store, nodes });
  const sandboxOf = (key: SessionKey) => factory.sandboxOf(key.agent, { ...around, id: key.instance_id });

  const sessions = createRetention({
    root: sources.root,
    store,
    instances,
    approvals,
    engine,
    sandboxOf,
    isAtWork: (target) => work.running(target).length > 0,
    nodes,
  });
  nodes?.serve({
    ...nodes.streamAnswers,
    ...admin.answers,
    ...sessions.answers,
    prompt: async ({ target, request, principal, hasReader }, { signal, onStart, onEvent }) => {
      sources.checkAgent(target.agent);
      const call = { signal, onStart, onEvent: hasReader ? onEvent : undefined, principal };
      return await prompts.promptHere(target, request, call);
    },
  });
  const problem: Service["problem"] = () => engine.problem?.() ?? store.problem?.();
  const endHousekeeping = runsHousekeeping
    ? (await import("./housekeeping.ts")).startHousekeeping(
        { problem, warning: () => engine.warning?.(), sessions, store },
        options,
      )
    : async () => undefined;
  const problems: App["problems"] = () => [...sources.loaded.problems, ...serverProblems(parts.mcp)];
  let schedules: ScheduleSync | undefined;
  const renewSchedules = async (): Promise<void> => {
    if (!runsHousekeeping) {
      await engine.cluster?.declareSchedules([]);
      return;
    }
    schedules ??= new (await import("./sync-schedules.ts")).ScheduleSync({
      engine,
      sources: () => ({ workflows: sources.loaded.workflows, problems: problems() }),
      onError,
      validateJson: runtime.validateJson,
    });
    await schedules.renew();
  };
  const reload = async (): Promise<void> => {
    await sources.reload();
    instances.renew();
    await renewSchedules();
  };
  const closeAll = async (how?: Parameters<Engine["drain"]>[0]): Promise<void> => {
    schedules?.stop();
    await endHousekeeping();
    await engine.drain(how);
    nodes?.close();
    await instances.close();
    const lost = await unsavedOf(store, systemClock).close(unsavedPatienceMs);
    if (lost > 0) parts.onListenerError?.(workLost(lost));
    await parts.close();
    sources.close();
  };
  let isLeaving = false;
  let closed: Promise<void> | undefined;
  const close: ProjectService["close"] = (how) => {
    closed ??= closeAll(how);
    return closed;
  };
  const app: App = {
    root: sources.root,
    env: parts.env,
    mask: parts.mask ?? ((text) => text),
    agents: () => sources.loaded.agents,
    workflows: () => sources.loaded.workflows,
    webhooks: () => sources.loaded.webhooks,
    async sandboxes() {
      const own = sources.loaded.agents.map(({ name: agent }) =>
        // The error of an agent's function is reported when the agent is used.
        sandboxOf({ agent, instance_id: "default", session: "default" }).catch(() => undefined),
      );
      const sandboxes = (await Promise.all(own)).filter((sandbox) => sandbox !== undefined);
      return [...new Set([parts.sandbox, ...sandboxes])];
    },
    problems,
    hasChanged: () => sources.hasChanged(),
    reload,
    instance: (name, id, payload = {}) => instances.get({ name, id, payload }),
    init: (definition, context = {}) =>
      factory.create(definition, { ...around, ...context, id: context.id ?? "default" }),
    run: (name, run = {}) => runs.toEnd(name, run),
    ...callsFor(),
    onEvent: (listener) => observers.add(listener),
    observe: (listener) => observers.add(listener),
    close: () => close({ timeoutMs: 0 }),
  };
  let allowRules: AllowRuleFile | undefined;
  const service: ProjectService = {
    app,
    engine,
    approvals,
    async allowRules() {
      const { AllowRuleFile } = await import("../config/allow-rule-file.ts");
      allowRules ??= new AllowRuleFile({
        file: options.configFile,
        defaults: parts.defaults,
        writes: sources.guard,
      });
      return allowRules;
    },
    sessions,
    prompt: (target, request, call) => prompts.prompt(target, request, call),
    problem,
    dispatch: ({ agent, instance_id: id, session }, input, { principal, ...how } = {}) =>
      accept([agent, { ...how, id, session, input }], senderOf(principal)),
    ...admin.routed,
    ...(nodes && { nodes }),
    async fork(target, choices = {}, { principal } = {}) {
      sources.checkAgent(target.agent);
      if (!keepsWork) throw keepsNothing();
      const { toForkedInput } = await import("./forks.ts");
      const { key, input } = await toForkedInput({ store, events: engine.events }, target, choices);
      const receipt = await engine.admit({
        ...key,
        input,
        ...(principal === undefined ? slots.principal() : senderOf(principal)),
        ...traces.ofCaller(),
      });
      const { dispatch_id, accepted_at } = receipt;
      return { dispatch_id, accepted_at, session: key.session, operation_id: operationOf(dispatch_id) };
    },
    startRun: (workflow, payload, { request, ...how } = {}) =>
      runs.start(workflow, payload, {
        ...how,
        ...senderOf(how.principal),
        ...(request === undefined ? {} : { local: { request } }),
      }),
    callsFor,
    reload,
    async leave() {
      isLeaving = true;
      await engine.leave?.();
    },
    get isLeaving() {
      return isLeaving;
    },
    drain: (how) => engine.drain(how),
    close,
  };
  try {
    if (options.works === false) return service;
    await engine.start({
      async dispatch(context, request) {
        try {
          const { agent, instance_id, session, input } = request;
          await checkKnownHere({ kind: "agent", name: agent });
          if (context.attempt > 1) await traces.recallSession(request);
          const key = { agent, instance_id, session };
          const operationId = operationOf(context.id);
          const fork = toFork(input);
          return await work.perform(context, request, {
            key,
            request: toPromptRequest(input),
            operationId,
            prepare:
              fork && (async () => (await import("./forks.ts")).beginFork(store, key, { fork, operationId })),
            resting: new RestingWork(context),
          });
        } catch (error) {
          // No caller waits for a dispatch, so only the log gets the reason.
          if (!context.signal.aborted && !isStoreUnavailable(error)) onError(nameDispatch(error, context));
          throw error;
        }
      },
      async run(context, request) {
        await checkKnownHere({ kind: "workflow", name: request.workflow });
        return await origins.run({}, () =>
          slots.hold({ ...request, context }, () => runs.perform(context, request)),
        );
      },
      checkSignal: (wait, payload) => runs.checkSignal(wait, payload),
      isRetryable: isRetryableInput,
      onOutage: createOutageLog(onError),
      onClockSet: (byMs) => onError(clockSet(byMs)),
      causeOf: toCause,
    });
    await renewSchedules();
    return service;
  } catch (error) {
    schedules?.stop();
    await endHousekeeping();
    await instances.close();
    sources.close();
    throw error;
  }
}

/** A caller with a principal is the cause of its work. */
function senderOf(principal: string | undefined): WorkSender {
  return principal === undefined ? {} : { principal, cause: { type: "sender", principal } };
}

/** Whether the engine of a service stores the events of its instances. */
export function keepsEvents(options: Pick<ServiceOptions, "works" | "keepsWork" | "keepsEvents">): boolean {
  return options.keepsEvents ?? (options.works !== false && options.keepsWork !== false);
}

import type { Agent } from "../../agents/harness.ts";
import { countDoneTurns } from "../../agents/log/past-operation.ts";
import { KitError } from "../../base/kit-error.ts";
import { defined } from "../../base/record.ts";
import type { EngineHandlers } from "../../engine/contract.ts";
import { agentStream, type EventLog } from "../../engine/event-log-contract.ts";
import { outageOf } from "../../protocol/outage.ts";
import type { SessionKey } from "../../protocol/session-entry.ts";
import { AgentFactory, type RuntimeParts, toAgentRuntime } from "../runtime/agent-factory.ts";
import { type InstanceRequest, Instances } from "../runtime/instances.ts";
import { createObservers, createWorkTraces, origins } from "../runtime/observers.ts";
import { workspaceKeeper } from "../runtime/open-sandbox.ts";
import type { WorkflowRuntime } from "../runtime/run-workflow.ts";
import { createToCause } from "../sources/describe-failure.ts";
import { Sources } from "../sources/sources.ts";
import { createInstanceAdmin } from "./instance-calls.ts";
import { OperationListeners, Prompts, SessionWork } from "./prompts.ts";
import { RestingWork, WorkSlots } from "./resting-work.ts";
import { createRetention } from "./retention.ts";
import type { ProjectService } from "./service.ts";
import { type ComposedParts, openUpkeep, type ServiceOptions, toService } from "./service-calls.ts";
import { toSessionKey } from "./session-input.ts";
import { toSharedParts } from "./shared-parts.ts";
import { operationOf, toFork, toPromptRequest } from "./stored-input.ts";
import { WorkCalls } from "./work-calls.ts";
import {
  checkKnownByNode,
  clockSet,
  createOutageLog,
  isRetryableInput,
  nameDispatch,
} from "./work-errors.ts";
import { WorkflowRuns } from "./workflow-runs.ts";

/**
 * Composes a service: sources become live agents and workflows, whose work the engine accepts and starts. Only this file
 * knows both sides. If `createService` throws, the caller closes the parts and the engine.
 */
export async function createService(
  runtimeParts: RuntimeParts,
  options: ServiceOptions,
): Promise<ProjectService> {
  const parts = await openParts(runtimeParts, options);
  answerNodes(parts);
  const upkeep = await openUpkeep(parts);
  const service = toService(parts, upkeep);
  if (options.works === false) return service;
  try {
    const isDurable = options.keepsWork !== false && parts.engine.capabilities.durable;
    // Without files of the project on disk, this is a bundle for a platform, which has no modules to lose.
    if (isDurable && runtimeParts.modules === undefined) {
      const { loadOwnCode } = await import("./load-own-code.ts");
      await loadOwnCode();
    }
    await parts.engine.start(handlersOf(parts));
    await upkeep.renewSchedules();
    return service;
  } catch (error) {
    await upkeep.stop();
    await parts.instances.close();
    parts.sources.close();
    throw error;
  }
}

/** Opens the parts in an order in which each needs only those before it. */
async function openParts(runtimeParts: RuntimeParts, options: ServiceOptions): Promise<ComposedParts> {
  const base = await openBase(runtimeParts, options);
  const agents = openAgents(base);
  const runs = openRuns(base, agents);
  // Agents start runs, and runs create agents.
  base.calls.connect(runs);
  const { approvals, engine, nodes, sources } = base;
  const { instances, sandboxOf, work } = agents;
  const { store } = base.runtimeParts;
  const admin = createInstanceAdmin({ sources, instances, engine: options.engine, work, store, nodes });
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
  return { ...base, ...agents, runs, admin, sessions };
}

/** Opens what agents, prompts and runs share: the engine of one or several machines, sources, and the calls between them. */
async function openBase(openedParts: RuntimeParts, options: ServiceOptions) {
  const { keepsWork = true, onError = () => undefined } = options;
  const slots = new WorkSlots(options.restMs);
  const { parts, engine, approvals, nodes, fenced } = await toSharedParts(openedParts, { ...options, slots });
  const keepWorkspaces = await workspaceKeeper(parts, (instance) => fenced?.fenceOf(instance));
  const sandbox = keepWorkspaces?.(parts.sandbox, parts.store) ?? parts.sandbox;
  const runtimeParts: RuntimeParts = { ...parts, sandbox };
  const { root, store, mask, onListenerError } = runtimeParts;
  const observers = createObservers(onListenerError);
  for (const observer of options.observers ?? []) observers.add(observer);
  const sources = await Sources.open(root, runtimeParts);
  const causeOf = createToCause(sources.root, mask);
  const traces = createWorkTraces(observers, engine);
  const calls = new WorkCalls({ sources, engine, slots, traces, store, keepsWork });
  return {
    ...{ options, onError, runtimeParts, keepWorkspaces, engine, approvals, nodes, fenced },
    ...{ observers, sources, causeOf, slots, traces, calls },
  };
}

type Base = Awaited<ReturnType<typeof openBase>>;

/** Opens the agents, and the prompts that the engine starts. */
function openAgents(base: Base) {
  const { options, onError, runtimeParts, keepWorkspaces, engine, nodes, fenced } = base;
  const { observers, sources, causeOf, slots, traces, calls } = base;
  const { env, approvals } = runtimeParts;
  const runtime = toAgentRuntime(runtimeParts, {
    observers: observers.all,
    causeOf,
    sources: sources.guard,
    callsOf: (...caller) => calls.ofAgent(...caller),
    principal: () => slots.principal().principal,
    guardStore: fenced && ((store) => fenced.guard(store)),
    approvals: approvals && slots.freeWhileDeciding(approvals),
  });
  const factory = new AgentFactory({ sources, runtime, keepWorkspaces, ...defined(runtimeParts) });
  const context = { env, payload: {} };
  const sandboxOf = (key: SessionKey) => factory.sandboxOf(key.agent, { ...context, id: key.instance_id });
  // A node appends events to its own log, which numbers them; `engine.events` has those of all nodes.
  const log = keepsEvents(options) ? options.engine.events : undefined;
  const listeners = new OperationListeners(onError);
  const create = instanceOpener({ factory, env, log, listeners });
  const instances = new Instances(create, runtimeParts.instances);
  const work = new SessionWork({ instances, engine, events: log, slots, fenced });
  const prompts = new Prompts({ sources, engine, nodes, traces, work, listeners });
  return { validateJson: runtime.validateJson, factory, context, sandboxOf, instances, work, prompts };
}

/** Opens the runs of workflows. */
function openRuns(base: Base, agents: ReturnType<typeof openAgents>): WorkflowRuns {
  const { onError, runtimeParts, engine, fenced, observers, sources, causeOf, slots, traces, calls } = base;
  const { env, mask } = runtimeParts;
  const { validateJson, factory } = agents;
  const runtime: WorkflowRuntime = {
    ...{ env, mask, validateJson, factory, stores: fenced, causeOf, observers },
    toAdmitted: (...input) => calls.toAdmitted(...input),
  };
  return new WorkflowRuns({ sources, engine, slots, runtime, traces, onFailure: onError });
}

/** Creates live instances, whose events go to the log and to the listeners of their operations. */
function instanceOpener({
  factory,
  env,
  log,
  listeners,
}: {
  readonly factory: AgentFactory;
  readonly env: RuntimeParts["env"];
  readonly log: EventLog | undefined;
  readonly listeners: OperationListeners;
}): (request: InstanceRequest) => Promise<Agent> {
  return async ({ name, id, payload }) => {
    const stream = agentStream(name, id);
    const last_event = (await log?.last(stream)) ?? 0;
    const agent = await factory.createNamed(name, { env, id, payload, last_event });
    agent.onEvent((event) => {
      try {
        log?.append(stream, event);
      } catch (error) {
        // This process has lost the lease: its late events are dropped.
        if (!(error instanceof KitError && error.code === "lease_lost")) throw error;
      } finally {
        // Listeners of the prompt receive the event even if the event log rejects it.
        listeners.receive(event);
      }
    });
    return agent;
  };
}

/** Answers the calls of the other nodes of a cluster. */
function answerNodes({ nodes, admin, sessions, sources, prompts }: ComposedParts): void {
  nodes?.serve({
    ...nodes.streamAnswers,
    ...admin.answers,
    ...sessions.answers,
    prompt: async ({ target, request, principal, hasReader }, { signal, onStart, onEvent }) => {
      sources.checkAgent(target.agent);
      const call = { signal, onStart, onEvent: hasReader ? onEvent : undefined, principal };
      return await prompts.promptHere(toSessionKey(target), request, call);
    },
  });
}

/** Returns how the engine starts accepted work. */
function handlersOf(parts: ComposedParts): EngineHandlers {
  const { engine, sources, traces, work, runs, slots, causeOf, onError, runtimeParts, instances } = parts;
  const { store } = runtimeParts;
  const checkKnownHere = async (agent: string): Promise<void> => {
    if (engine.cluster === undefined) return;
    await checkKnownByNode(agent, { cluster: engine.cluster, sources });
  };
  return {
    async dispatch(context, request) {
      try {
        const { agent, instance_id, session, input } = request;
        await checkKnownHere(agent);
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
        if (!context.signal.aborted && outageOf(error) === undefined) onError(nameDispatch(error, context));
        throw error;
      }
    },
    async run(context, request) {
      return await origins.run({}, () =>
        slots.hold({ ...request, context }, () => runs.perform(context, request)),
      );
    },
    async progressOf(key, dispatchId) {
      const { agent: name, instance_id: id } = key;
      const live = await instances.get({ name, id, payload: {} }).catch((error: unknown) => {
        // An agent that cannot be created makes no progress, and its attempts report why; an outage tells nothing about it.
        if (outageOf(error) !== undefined) throw error;
      });
      const entries = await (live?.profile.store ?? store).read(key);
      return countDoneTurns(entries, operationOf(dispatchId));
    },
    checkSignal: (wait, payload) => runs.checkSignal(wait, payload),
    isRetryable: isRetryableInput,
    onOutage: createOutageLog(onError),
    onHeld: (problem, run) => runs.noteHeld(problem, run),
    onClockSet: (byMs) => onError(clockSet(byMs)),
    causeOf,
  };
}

/** Whether the engine of a service stores the events of its instances. */
export function keepsEvents(options: Pick<ServiceOptions, "works" | "keepsWork" | "keepsEvents">): boolean {
  return options.keepsEvents ?? (options.works !== false && options.keepsWork !== false);
}

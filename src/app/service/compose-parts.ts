import { defined } from "../../base/record.ts";
import type { Engine, EngineHandlers } from "../../engine/contract.ts";
import type { SessionKey } from "../../protocol/session-entry.ts";
import { agentStream } from "../../protocol/session-name.ts";
import type { LoadedConfig } from "../config/load-config.ts";
import { AgentFactory, type RuntimeParts, toAgentRuntime } from "../runtime/agent-factory.ts";
import { type CreateInstance, Instances } from "../runtime/instances.ts";
import { createObservers, createWorkTraces } from "../runtime/observers.ts";
import { workspaceKeeper } from "../runtime/open-sandbox.ts";
import type { WorkflowRuntime } from "../runtime/run-workflow.ts";
import { createToCause } from "../sources/describe-failure.ts";
import { Sources } from "../sources/sources.ts";
import type { App } from "./app.ts";
import type { BuiltInParts } from "./built-in-workflow.ts";
import { BuiltInWorkflows } from "./built-in-workflows.ts";
import type { HousekeepingOptions } from "./housekeeping.ts";
import { createInstanceAdmin } from "./instance-calls.ts";
import { createRecorder, OperationListeners, Prompts } from "./prompts.ts";
import { createRetention } from "./retention.ts";
import { SessionWork } from "./session-work.ts";
import { toSharedParts } from "./shared-parts.ts";
import { WorkCalls } from "./work-calls.ts";
import { WorkSlots } from "./work-slots.ts";
import { WorkflowRuns } from "./workflow-runs.ts";

export interface ServiceOptions extends HousekeepingOptions {
  /** The open project and its configuration, for kit's own workflows; without them, the service has none of these. */
  readonly project?: BuiltInParts["project"] | undefined;
  readonly loaded?: Pick<LoadedConfig, "config"> | undefined;
  /** Whether only a person at a terminal starts work. Default false. */
  readonly isTerminal?: boolean | undefined;
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

/** The parts of a service. */
export type ComposedParts = Awaited<ReturnType<typeof openParts>>;

/** Opens the parts in an order in which each needs only those before it. */
export async function openParts(runtimeParts: RuntimeParts, options: ServiceOptions) {
  const base = await openBase(runtimeParts, options);
  const agents = openAgents(base);
  const runs = openRuns(base, agents);
  // Agents start runs, and runs create agents.
  base.calls.connect(runs);
  const { approvals, engine, owners, sources } = base;
  const { instances, sandboxOf, work } = agents;
  const { store } = base.runtimeParts;
  const admin = createInstanceAdmin({
    sources,
    instances,
    engine: options.engine,
    approvals,
    work,
    store,
    owners,
  });
  const sessions = createRetention({
    root: sources.root,
    store,
    instances,
    approvals,
    engine,
    sandboxOf,
    isAtWork: (target) => work.running(target).length > 0,
    owners,
  });
  return { ...base, ...agents, runs, admin, sessions };
}

/** Opens what agents, prompts and runs share: the engine of one or several machines, sources, and the calls between them. */
async function openBase(openedParts: RuntimeParts, options: ServiceOptions) {
  const { keepsWork = true, onError = () => undefined } = options;
  const slots = new WorkSlots(options.restMs);
  const { parts, ...shared } = await toSharedParts(openedParts, { ...options, slots });
  const { engine, fences } = shared;
  const keepWorkspaces = await workspaceKeeper(parts, (instance) => fences.writeFence(instance));
  const sandbox = keepWorkspaces?.(parts.sandbox, parts.store) ?? parts.sandbox;
  const runtimeParts = { ...parts, sandbox };
  const { root, store, mask, onListenerError } = runtimeParts;
  const observers = createObservers(onListenerError);
  for (const observer of options.observers ?? []) observers.add(observer);
  const sources = await Sources.open(root, runtimeParts);
  const causeOf = createToCause(sources.root, mask);
  const traces = createWorkTraces(observers, engine);
  const rules = async () => (await runtimeParts.project?.rules()) ?? [];
  const calls = new WorkCalls({ sources, engine, slots, traces, store, keepsWork, rules });
  return {
    ...shared,
    ...{ options, onError, runtimeParts, keepWorkspaces },
    ...{ observers, sources, causeOf, slots, traces, calls, rules },
  };
}

type Base = Awaited<ReturnType<typeof openBase>>;

/** Opens the agents, and the prompts that the engine starts. */
function openAgents(base: Base) {
  const { options, onError, runtimeParts, keepWorkspaces, engine, owners, fences } = base;
  const { observers, sources, causeOf, slots, traces, calls } = base;
  const { env, approvals } = runtimeParts;
  const runtime = toAgentRuntime(runtimeParts, {
    observers,
    causeOf,
    sources: sources.guard,
    callsOf: (...caller) => calls.ofAgent(...caller),
    principal: () => slots.principal().principal,
    guardStore: (store) => fences.guard(store),
    approvals: approvals && slots.freeWhileDeciding(approvals),
    joins: engine.waitingInputs && {
      ids: slots.joining(engine),
      read: async (id) => (await import("./joined-input.ts")).readJoining(engine, id),
    },
  });
  const factory = new AgentFactory({ sources, runtime, keepWorkspaces, ...defined(runtimeParts) });
  const context = { env, payload: {} };
  const sandboxOf = (key: SessionKey) => factory.sandboxOf(key.agent, { ...context, id: key.instance_id });
  // A node appends events to its own log, which numbers them; `engine.events` has those of all nodes.
  const log = keepsEvents(options) ? options.engine.events : undefined;
  const listeners = new OperationListeners(onError);
  const record = createRecorder(log, listeners);
  const create: CreateInstance = async ({ agent: name, instance_id: id }, payload) => {
    const stream = agentStream(name, id);
    const last_event = (await log?.last(stream)) ?? 0;
    const agent = await factory.createNamed(name, { env, id, payload, last_event });
    agent.onEvent(record(stream));
    return agent;
  };
  const instances = new Instances(create, runtimeParts.instances, (instance) => fences.fenceOf(instance));
  const work = new SessionWork({ instances, events: log, slots, fences });
  const { store } = runtimeParts;
  const endInput: NonNullable<EngineHandlers["onInputEnd"]> = async (end, request) => {
    if (log === undefined) return;
    const parts = { store, events: log, instances, observers, record };
    const { endOperation } = await import("./input-ends.ts");
    await work.end(end, request, () => endOperation(parts, end, request));
  };
  const prompts = new Prompts({ sources, engine, owners, traces, work, listeners });
  const { validateJson } = runtime;
  return { validateJson, factory, context, sandboxOf, instances, work, prompts, endInput };
}

/** Opens the runs of workflows. */
function openRuns(base: Base, agents: ReturnType<typeof openAgents>): WorkflowRuns {
  const { onError, runtimeParts, engine, fences, observers, sources, causeOf, slots, traces, calls } = base;
  const { project, loaded, isTerminal = false } = base.options;
  const { env, mask } = runtimeParts;
  const { validateJson, factory } = agents;
  const builtIns =
    project &&
    loaded &&
    new BuiltInWorkflows({ project, config: loaded.config, sources, engine, isTerminal });
  const runtime: WorkflowRuntime = {
    ...{ env, mask, validateJson, factory, stores: fences, causeOf, observers },
    toAdmitted: (...input) => calls.toAdmitted(...input),
  };
  return new WorkflowRuns({ sources, builtIns, engine, slots, runtime, traces, onFailure: onError });
}

/** Whether the engine of a service stores the events of its instances. */
export function keepsEvents(options: Pick<ServiceOptions, "works" | "keepsWork" | "keepsEvents">): boolean {
  return options.keepsEvents ?? (options.works !== false && options.keepsWork !== false);
}

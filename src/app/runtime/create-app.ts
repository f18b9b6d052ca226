import { realpathSync } from "node:fs";
import type { AgentProfile } from "../../agents/agent-profile.ts";
import { mergeProfiles } from "../../agents/agent-profile.ts";
import type { AgentRuntime } from "../../agents/agent-runtime.ts";
import type { Approvals } from "../../agents/approvals/approvals.ts";
import {
  type AgentContext,
  type AgentDefinition,
  type Dispatch,
  isAgentDefinition,
} from "../../agents/create-agent.ts";
import { type Agent, type AgentIdentity, createHarness } from "../../agents/harness.ts";
import type { SecretMask } from "../../agents/secrets.ts";
import { unsavedOf } from "../../agents/session/unsaved-work.ts";
import { defaultRetryPolicy, type RetryPolicy } from "../../agents/turn/retry.ts";
import { resolveBackend } from "../../backends/resolve-backend.ts";
import { systemClock } from "../../base/clock.ts";
import { KitError } from "../../base/kit-error.ts";
import { toSentence } from "../../base/to-sentence.ts";
import type { McpClient } from "../../mcp/client/create-mcp-client.ts";
import type { ModelResolver } from "../../models/contract.ts";
import { causeOf, type ErrorCause } from "../../protocol/error-cause.ts";
import type { ModelChoice } from "../../protocol/prompt.ts";
import type { SessionKey } from "../../protocol/session-entry.ts";
import type { PythonRunner } from "../../python/contract.ts";
import type { IsolationOptions, SandboxFactory } from "../../sandboxes/contract.ts";
import type { SessionStore } from "../../stores/contract.ts";
import { toDispatchInput } from "../service/session-input.ts";
import { AgentWrites } from "../sources/agent-writes.ts";
import { commandListProblems } from "../sources/command-list-problems.ts";
import { createCauseReader, describeFailure, failureLine } from "../sources/describe-failure.ts";
import type { SourceFile } from "../sources/discover-sources.ts";
import { followSources } from "../sources/follow-sources.ts";
import { loadProjectSources, type ProjectSources } from "../sources/load-project-sources.ts";
import type { LoadedAgent } from "../sources/load-source.ts";
import { sourceVersion } from "../sources/source-version.ts";
import { unknownSource } from "../sources/unknown-source.ts";
import { checkPayload } from "./check-payload.ts";
import { faultOfProfile } from "./check-profile.ts";
import { createHostLink } from "./host-link.ts";
import type { HostedApp } from "./hosted-app.ts";
import { createInstances, type InstanceLimits } from "./instances.ts";
import { createMcpToolSource, serverProblems } from "./mcp-tool-source.ts";
import { createObservers, type Observers } from "./observers.ts";
import { origins } from "./origins.ts";
import type { OpenProjectContext } from "./project-context.ts";
import { runWorkflow, type WorkflowHost } from "./run-workflow.ts";
import { createJsonValidator } from "./validate-json.ts";
import { waitAside } from "./wait-aside.ts";

export interface AppOptions {
  readonly root: string;
  readonly store: SessionStore;
  readonly sandbox: SandboxFactory;
  readonly isolation?: IsolationOptions;
  readonly resolveModel: ModelResolver;
  readonly defaultModel: ModelChoice;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Closed with the app. */
  readonly project?: OpenProjectContext;
  /** MCP servers whose tools every agent has; closed with the app. */
  readonly mcp?: McpClient;
  /** Python for the sessions of every agent; closed with the app. */
  readonly python?: PythonRunner;
  /** Laid under every agent's own profile: the `agent` table of the configuration. */
  readonly defaults?: AgentProfile;
  /** Laid over every agent's own profile: what the person at the terminal says. */
  readonly overrides?: AgentProfile;
  /** False for a program that brings its agent along: no file of the project is run. */
  readonly code?: boolean;
  /** Takes the application's keys out of what tools return and workflows log. */
  readonly mask?: SecretMask;
  /** Whether the next process is to know which files models have written; default true. */
  readonly keepsWrites?: boolean;
  /** Whether commands find their place in a trace in their environment; default false. */
  readonly tracesCommands?: boolean;
  /** How failing model calls are repeated. */
  readonly retry?: RetryPolicy;
  readonly onListenerError?: (error: unknown) => void;
  /** Operations that may wait in one session; default 100. */
  readonly maxWaiting?: number;
  /** Where calls of tools that need approval wait for it; without it they are denied. */
  readonly approvals?: Approvals;
  /** How many instances stay alive while nobody uses them, and how long. */
  readonly instances?: InstanceLimits;
}

const defaultAgent: AgentDefinition = { kind: "kit.agent", describe: async () => ({}) };

/** Reads the source files of a project and composes the runtime they live in. */
export async function createApp(options: AppOptions): Promise<HostedApp> {
  const observers = createObservers(options.onListenerError);
  const { approvals, mask = (text: string) => text } = options;
  const root = realpathSync(options.root);
  const reader = createCauseReader(root, mask);
  const toCause = (error: unknown, also = (text: string): string => text): ErrorCause | undefined =>
    causeOf(error, { ...reader, clean: (text) => reader.clean(also(text)) });
  const writes = new AgentWrites(root, { stored: options.keepsWrites !== false });
  const runtime = toRuntime(options, {
    observers,
    causeOf: toCause,
    sources: writes,
    ...(approvals === undefined ? {} : { approvals: waitAside(approvals, () => service.current()) }),
  });
  const hooks = followSources(root, (file, named) => writes.check(file, named));
  const versionNow = async (): Promise<string> =>
    `${writes.version()} ${await sourceVersion(root, hooks.files())}`;
  const load = async (before?: ProjectSources): Promise<ProjectSources> => {
    const code = options.code !== false;
    const loaded = await loadProjectSources(root, { code, before, ...writes.loading() });
    version = await versionNow();
    return loaded;
  };
  let version = "";
  let sources = await load().catch((error: unknown) => {
    hooks.deregister();
    throw error;
  });
  const agentFile = (name: string): LoadedAgent | undefined =>
    sources.agents.find((agent) => agent.name === name);
  const agentName = (agent: string | AgentDefinition): string => {
    if (typeof agent === "string") {
      app.checkAgent(agent);
      return agent;
    }
    const file = sources.agents.find(({ definition }) => definition === agent);
    if (file !== undefined) return file.name;
    throw new KitError({
      code: "agent_not_found",
      message: "An input can be given to an agent of a file only.",
      hint: "Export it by default from a file in src/agents.",
    });
  };

  const service = createHostLink(() => app);
  const dispatch: Dispatch = async (agent, { id, session = "default", input, ...rest }) => {
    const target = { agent: agentName(agent), instance_id: id, session };
    return await service.lasting().dispatch(target, input, rest);
  };
  // A description that is the same for every instance is one profile: its tools and schemas are made once.
  const profiles = new WeakMap<
    AgentProfile,
    { readonly of: ProjectSources; readonly profile: AgentProfile }
  >();
  const profileOf = (own: AgentProfile): AgentProfile => {
    const known = profiles.get(own);
    if (known?.of === sources) return known.profile;
    const shared: AgentProfile = { ...options.defaults, skills: sources.skills, roles: sources.roles };
    const profile = mergeProfiles(withOwnFirst(mergeProfiles(shared, own)), options.overrides ?? {});
    profiles.set(own, { of: sources, profile });
    return profile;
  };
  const bring = async (
    definition: AgentDefinition,
    context: Omit<AgentContext, "dispatch"> &
      Pick<AgentIdentity, "run_id" | "last_event"> & { readonly name?: string | undefined },
  ): Promise<Agent> => {
    const { id, env, payload, name, ...identity } = context;
    const file = sources.agents.find((agent) => agent.definition === definition);
    const own = await describe(definition, { context: { id, env, payload, dispatch }, file, root });
    return createHarness(
      {
        ...identity,
        id,
        name: name ?? file?.name ?? own.name ?? "agent",
        ...(file === undefined ? {} : { file: file.path }),
      },
      profileOf(own),
      runtime,
    );
  };
  const here = { env: options.env, payload: {} };
  const instances = createInstances(async ({ name, id, payload }) => {
    const definition = agentFile(name)?.definition ?? (name === "default" ? defaultAgent : undefined);
    if (definition === undefined) throw unknownSource("agent", name, sources);
    const last_event = (await service.current()?.lastEvent(name, id)) ?? 0;
    const agent = await bring(definition, { ...here, name, id, payload, last_event });
    agent.subscribe((event) => service.current()?.record(event));
    return agent;
  }, options.instances);
  /** Where the workspace of a session is. Of an agent that is no file of the project, or not any more: where most are. */
  const sandboxOf = async ({ agent, instance_id: id }: SessionKey): Promise<SandboxFactory> => {
    const file = agentFile(agent);
    if (file === undefined) return options.sandbox;
    const own = await describe(file.definition, { context: { ...here, id, dispatch }, file, root });
    return profileOf(own).sandbox ?? options.sandbox;
  };
  const host: WorkflowHost = {
    root,
    env: options.env,
    validateJson: runtime.validateJson,
    bring,
    agentName(agent) {
      service.lasting();
      return agentName(agent);
    },
    toInput: toDispatchInput,
    publish: observers.publish,
    get tracing() {
      return observers.tracing;
    },
    causeOf: toCause,
    mask: options.mask,
  };

  const app: HostedApp = {
    root,
    env: options.env,
    mask,
    ...(options.approvals === undefined ? {} : { approvals: options.approvals }),
    agents: () => sources.agents,
    workflows: () => sources.workflows,
    webhooks: () => sources.webhooks,
    async sandboxes() {
      const own = await Promise.all(
        sources.agents.map(async ({ name }) => {
          // One whose description fails says so where it is asked for.
          return await sandboxOf({ agent: name, instance_id: "default", session: "default" }).catch(
            () => undefined,
          );
        }),
      );
      return [...new Set([options.sandbox, ...own.filter((sandbox) => sandbox !== undefined)])];
    },
    problems: () => [
      ...sources.problems,
      ...commandListProblems(sources.agents, options.defaults),
      ...serverProblems(options.mcp),
    ],
    hasChanged: async () => (await versionNow()) !== version,
    async reload() {
      hooks.renew();
      sources = await load(sources);
      instances.renew();
    },
    instance: (name, id, payload = {}) => instances.get({ name, id, payload }),
    init: (definition, context = {}) =>
      bring(definition, { ...here, ...context, id: context.id ?? "default" }),
    run: async (name, run = {}) => (await service.get()).run(name, run),
    dispatch,
    observe: (observer) => observers.add(observer),
    host: (hosting) => service.set(hosting),
    checkAgent(name) {
      if (agentFile(name) === undefined && name !== "default") throw unknownSource("agent", name, sources);
    },
    workflow(name) {
      const workflow = sources.workflows.find((item) => item.name === name);
      if (workflow === undefined) throw unknownSource("workflow", name, sources);
      return workflow;
    },
    checkPayload: (workflow, payload) => checkPayload(workflow, payload, runtime.validateJson),
    perform: (work) => runWorkflow(host, app.workflow(work.request.workflow), work),
    get tracing() {
      return observers.tracing;
    },
    causeOf: toCause,
    renewInstances: () => instances.renew(),
    release: (name, id) => instances.release(name, id),
    async listSessions(page) {
      if (options.store.listAll === undefined) throw cannotList();
      return await options.store.listAll(page);
    },
    async forget(key, before, onEmpty) {
      const { agent, instance_id } = key;
      const { store } = options;
      const sandbox = await sandboxOf(key);
      const removed = await instances.whileAtRest(agent, instance_id, async () => {
        if ((await store.deleteUntouched?.(key, before)) !== true) return false;
        try {
          await sandbox.remove?.({ ...key, project_root: root });
        } catch (cause) {
          throw workspaceLeft(key, cause);
        }
        if ((await store.list({ agent, instance_id })).length === 0) await onEmpty();
        return true;
      });
      return removed === true;
    },
    storeProblem: () => options.store.problem?.(),
    async close() {
      await service.close();
      await instances.close();
      await options.mcp?.close();
      await options.python?.close();
      await options.project?.close();
      const lost = await unsavedOf(options.store, systemClock).close(unsavedPatienceMs);
      if (lost > 0) options.onListenerError?.(workLost(lost));
      await options.store.close();
      writes.close();
      hooks.deregister();
    },
  };
  return app;
}

function workspaceLeft({ agent, instance_id }: SessionKey, cause: unknown): KitError {
  const code = cause instanceof Error && "code" in cause ? ` (${String(cause.code)})` : "";
  return new KitError({
    code: "internal_error",
    message: `The history of ${agent}/${instance_id} is removed, and its workspace could not be${code}.`,
    hint: "Look at the rights of its folder below .kit/sandboxes, and remove it by hand.",
    cause,
  });
}

/** A stop does not wait for a store: those that are there take what is left at once. */
const unsavedPatienceMs = 1_000;

function workLost(count: number): KitError {
  const what = count === 1 ? "1 operation was" : `${count} operations were`;
  return new KitError({
    code: "store_unavailable",
    message: `What ${what} about to keep is lost with this stop: the session store is away.`,
    hint: "Where results of tools are missing, the model is told that their outcome is unknown.",
  });
}

function cannotList(): KitError {
  return new KitError({
    code: "unavailable",
    message: "The session store of this project cannot list its sessions.",
    hint: "A store with `listAll` and `deleteUntouched` can: see SessionStore.",
  });
}

function toRuntime(
  options: AppOptions,
  {
    observers,
    ...own
  }: { readonly observers: Observers } & Pick<AgentRuntime, "approvals" | "causeOf" | "sources">,
): AgentRuntime {
  return {
    store: options.store,
    resolveModel: options.resolveModel,
    resolveBackend,
    defaultModel: options.defaultModel,
    sandbox: options.sandbox,
    ...(options.isolation === undefined ? {} : { isolation: options.isolation }),
    projectRoot: options.root,
    clock: systemClock,
    retry: options.retry ?? defaultRetryPolicy,
    modelIdleTimeoutMs: 120_000,
    validateJson: createJsonValidator(),
    env: options.env,
    origins,
    tracesCommands: options.tracesCommands ?? false,
    observers: observers.all,
    maxWaitingOperations: options.maxWaiting ?? 100,
    maxIdleSessions: 1_000,
    ...(options.project === undefined ? {} : { project: options.project }),
    ...(options.mcp === undefined ? {} : { toolSources: [createMcpToolSource(options.mcp)] }),
    ...(options.python === undefined ? {} : { python: options.python }),
    ...own,
    ...(options.mask === undefined || options.mask.values.length === 0 ? {} : { mask: options.mask }),
    ...(options.onListenerError === undefined ? {} : { onListenerError: options.onListenerError }),
  };
}

/** Asks a definition for its profile; what its code does wrong is said with its place. */
async function describe(
  definition: AgentDefinition,
  asked: {
    readonly context: AgentContext;
    readonly file: SourceFile | undefined;
    readonly root: string;
  },
): Promise<AgentProfile> {
  const { context, file, root } = asked;
  const refuse = (why: string, cause?: unknown): KitError =>
    new KitError({
      code: "internal_error",
      message: `The agent${file === undefined ? "" : ` "${file.name}"`} could not be made.`,
      hint: why,
      ...(cause === undefined ? {} : { cause }),
    });
  if (!isAgentDefinition(definition)) throw refuse("Give it as createAgent makes it: createAgent({ … }).");
  let own: AgentProfile;
  try {
    own = await definition.describe(context);
  } catch (error) {
    if (error instanceof KitError) throw error;
    throw refuse(failureLine(describeFailure(error, root)), error);
  }
  const fault = faultOfProfile(own);
  if (fault !== undefined) throw refuse(toSentence(`${file === undefined ? "" : `${file.path}: `}${fault}`));
  return own;
}

// A skill or role of the agent itself takes the place of the project's of the same name.
function withOwnFirst(profile: AgentProfile): AgentProfile {
  const lastOf = <Item extends { readonly name: string }>(items: readonly Item[] = []): readonly Item[] => [
    ...new Map(items.map((item) => [item.name, item])).values(),
  ];
  return { ...profile, skills: lastOf(profile.skills), roles: lastOf(profile.roles) };
}

import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { AgentProfile } from "../../agents/agent-profile.ts";
import { mergeProfiles } from "../../agents/agent-profile.ts";
import type { AgentRuntime } from "../../agents/agent-runtime.ts";
import type { AgentContext, AgentDefinition } from "../../agents/create-agent.ts";
import type { EventListener } from "../../agents/events/emitter.ts";
import { type Agent, createHarness } from "../../agents/harness.ts";
import type { ProjectContext } from "../../agents/project-context.ts";
import { defaultRetryPolicy } from "../../agents/turn/retry.ts";
import { systemClock } from "../../base/clock.ts";
import { KitError } from "../../base/kit-error.ts";
import type { McpClient } from "../../mcp/client/create-mcp-client.ts";
import type { ModelResolver } from "../../models/contract.ts";
import type { SandboxFactory } from "../../sandboxes/contract.ts";
import type { SessionStore } from "../../stores/contract.ts";
import { discoverSources, type SourceProblem } from "./discover-sources.ts";
import { loadRoles } from "./load-roles.ts";
import { loadSkills } from "./load-skills.ts";
import { type LoadedAgent, type LoadedSource, type LoadedWorkflow, loadSource } from "./load-source.ts";
import { createMcpToolSource } from "./mcp-tool-source.ts";
import { createJsonValidator } from "./validate-json.ts";

export interface AppOptions {
  readonly root: string;
  readonly store: SessionStore;
  readonly sandbox: SandboxFactory;
  readonly resolveModel: ModelResolver;
  readonly defaultModel: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly project?: ProjectContext;
  /** MCP servers whose tools every agent has; closed with the app. */
  readonly mcp?: McpClient;
  /** Laid under every agent's own profile: the `agent` table of the configuration. */
  readonly defaults?: AgentProfile;
  readonly onListenerError?: (error: unknown) => void;
}

/** The agents and workflows of a project, alive on demand. */
export interface App {
  readonly root: string;
  agents(): readonly LoadedAgent[];
  workflows(): readonly LoadedWorkflow[];
  /** Source files, skills, roles and MCP servers that could not be used, and why. */
  problems(): readonly SourceProblem[];
  /** Reads the source files again; instances that are alive keep their sessions. */
  reload(): Promise<void>;
  /** The instance of an agent file, or of the default agent for the name "default". */
  instance(name: string, id: string): Promise<Agent>;
  /** An agent that a workflow or a program brings along. */
  init(definition: AgentDefinition, context: InitContext): Promise<Agent>;
  /** Hears the events of every agent; the function returned ends it. */
  observe(listener: EventListener): () => void;
  close(): Promise<void>;
}

export interface InitContext extends Partial<AgentContext> {
  /** The agent's name in the key of its sessions; default: the profile's, else "agent". */
  readonly name?: string;
}

const defaultAgent: AgentDefinition = { kind: "kit.agent", describe: async () => ({}) };

/** Reads the source files of a project and composes the runtime they live in. */
export async function createApp(options: AppOptions): Promise<App> {
  const observers = new Set<EventListener>();
  const instances = new Map<string, Promise<Agent>>();
  const runtime = toRuntime(options, observers);
  let loaded = await load(options.root);

  const bring = async (
    definition: AgentDefinition,
    context: Required<Pick<AgentContext, "id">> & InitContext,
  ): Promise<Agent> => {
    const own = await definition.describe({
      id: context.id,
      env: context.env ?? options.env,
      payload: context.payload ?? {},
    });
    const shared: AgentProfile = { ...options.defaults, skills: loaded.skills, roles: loaded.roles };
    const profile = withOwnFirst(mergeProfiles(shared, own));
    return createHarness({ name: context.name ?? own.name ?? "agent", id: context.id }, profile, runtime);
  };

  return {
    root: options.root,
    agents: () => loaded.agents,
    workflows: () => loaded.workflows,
    problems: () => [...loaded.problems, ...serverProblems(options.mcp)],
    async reload() {
      loaded = await load(options.root);
      // The next request makes an instance of the new code; histories are in the store.
      const old = [...instances.values()];
      instances.clear();
      for (const agent of old) await (await agent.catch(() => undefined))?.close();
    },
    instance(name, id) {
      const key = `${name}\u0000${id}`;
      let agent = instances.get(key);
      if (agent === undefined) {
        const definition =
          loaded.agents.find((item) => item.name === name)?.definition ??
          (name === "default" ? defaultAgent : undefined);
        if (definition === undefined) return Promise.reject(unknownAgent(name, loaded.agents));
        agent = bring(definition, { name, id });
        instances.set(key, agent);
        agent.catch(() => instances.delete(key));
      }
      return agent;
    },
    init: (definition, context) => bring(definition, { ...context, id: context.id ?? "default" }),
    observe(listener) {
      observers.add(listener);
      return () => observers.delete(listener);
    },
    async close() {
      for (const agent of instances.values()) await (await agent.catch(() => undefined))?.close();
      instances.clear();
      await options.mcp?.close();
      await options.store.close();
    },
  };
}

function toRuntime(options: AppOptions, observers: ReadonlySet<EventListener>): AgentRuntime {
  return {
    store: options.store,
    resolveModel: options.resolveModel,
    defaultModel: options.defaultModel,
    sandbox: options.sandbox,
    clock: systemClock,
    retry: defaultRetryPolicy,
    modelIdleTimeoutMs: 120_000,
    validateJson: createJsonValidator(),
    env: options.env,
    observers: [
      (event) => {
        for (const observer of observers) observer(event);
      },
    ],
    maxWaitingOperations: 100,
    maxIdleSessions: 1_000,
    ...(options.project === undefined ? {} : { project: options.project }),
    ...(options.mcp === undefined ? {} : { toolSources: [createMcpToolSource(options.mcp)] }),
    ...(options.onListenerError === undefined ? {} : { onListenerError: options.onListenerError }),
  };
}

function serverProblems(mcp: McpClient | undefined): readonly SourceProblem[] {
  return (mcp?.problems() ?? []).map(({ server, message }) => ({ path: `mcp.servers.${server}`, message }));
}

// A skill or role of the agent itself takes the place of the project's of the same name.
function withOwnFirst(profile: AgentProfile): AgentProfile {
  const lastOf = <Item extends { readonly name: string }>(items: readonly Item[] = []): readonly Item[] => [
    ...new Map(items.map((item) => [item.name, item])).values(),
  ];
  return { ...profile, skills: lastOf(profile.skills), roles: lastOf(profile.roles) };
}

interface Loaded {
  readonly agents: readonly LoadedAgent[];
  readonly workflows: readonly LoadedWorkflow[];
  readonly skills: NonNullable<AgentProfile["skills"]>;
  readonly roles: NonNullable<AgentProfile["roles"]>;
  readonly problems: readonly SourceProblem[];
}

async function load(root: string): Promise<Loaded> {
  const [found, skills, roles] = await Promise.all([
    discoverSources(root),
    loadSkills(root),
    loadRoles(root),
  ]);
  const results: (LoadedSource | SourceProblem)[] = [];
  for (const source of found.sources) results.push(await loadSource(root, source));
  return {
    agents: results.filter((item) => "kind" in item && item.kind === "agent") as LoadedAgent[],
    workflows: results.filter((item) => "kind" in item && item.kind === "workflow") as LoadedWorkflow[],
    skills: skills.skills,
    roles: roles.roles,
    problems: [
      ...found.problems,
      ...skills.problems,
      ...roles.problems,
      ...results.filter((item) => "message" in item),
    ],
  };
}

function unknownAgent(name: string, agents: readonly LoadedAgent[]): KitError {
  const names = agents.map((agent) => agent.name).join(", ");
  return new KitError({
    code: "agent_not_found",
    message: `There is no agent named "${name}".`,
    hint: names === "" ? `Add one as src/agents/${name}.ts.` : `The agents are: ${names}.`,
  });
}

/** The folder for kit's own files of a project, made when it is missing, and ignored by Git. */
export function stateFolder(root: string): string {
  const folder = join(root, ".kit");
  mkdirSync(folder, { recursive: true });
  return folder;
}

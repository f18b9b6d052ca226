import { realpathSync } from "node:fs";
import type { AgentProfile } from "../../agents/agent-profile.ts";
import { mergeProfiles } from "../../agents/agent-profile.ts";
import type { AgentRuntime } from "../../agents/agent-runtime.ts";
import type { AgentContext, AgentDefinition } from "../../agents/create-agent.ts";
import { type Agent, createHarness } from "../../agents/harness.ts";
import type { ProjectContext } from "../../agents/project-context.ts";
import { defaultRetryPolicy, type RetryPolicy } from "../../agents/turn/retry.ts";
import { systemClock } from "../../base/clock.ts";
import { KitError } from "../../base/kit-error.ts";
import { toSentence } from "../../base/to-sentence.ts";
import type { McpClient } from "../../mcp/client/create-mcp-client.ts";
import type { ModelResolver } from "../../models/contract.ts";
import type { PythonRunner } from "../../python/contract.ts";
import type { SandboxFactory } from "../../sandboxes/contract.ts";
import type { SessionStore } from "../../stores/contract.ts";
import type { App } from "./app.ts";
import { faultOfProfile } from "./check-profile.ts";
import { describeFailure, failureLine } from "./describe-failure.ts";
import type { SourceFile } from "./discover-sources.ts";
import { followSources } from "./follow-sources.ts";
import { createInstances } from "./instances.ts";
import { loadProjectSources, type ProjectSources } from "./load-project-sources.ts";
import { createMcpToolSource, serverProblems } from "./mcp-tool-source.ts";
import { createObservers, type Observers } from "./observers.ts";
import { runWorkflow } from "./run-workflow.ts";
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
  /** Python for the sessions of every agent; closed with the app. */
  readonly python?: PythonRunner;
  /** Laid under every agent's own profile: the `agent` table of the configuration. */
  readonly defaults?: AgentProfile;
  /** Laid over every agent's own profile: what the person at the terminal says. */
  readonly overrides?: AgentProfile;
  /** False for a program that brings its agent along: no file of the project is run. */
  readonly code?: boolean;
  /** Takes the application's keys out of what tools return and workflows log. */
  readonly mask?: (text: string) => string;
  /** How failing model calls are repeated. */
  readonly retry?: RetryPolicy;
  readonly onListenerError?: (error: unknown) => void;
}

const defaultAgent: AgentDefinition = { kind: "kit.agent", describe: async () => ({}) };

/** Reads the source files of a project and composes the runtime they live in. */
export async function createApp(options: AppOptions): Promise<App> {
  const observers = createObservers(options.onListenerError);
  const runtime = toRuntime(options, observers);
  const root = realpathSync(options.root);
  const hooks = followSources(root);
  const load = (): Promise<ProjectSources> => loadProjectSources(root, { code: options.code !== false });
  let sources = await load().catch((error: unknown) => {
    hooks.deregister();
    throw error;
  });

  const bring = async (
    definition: AgentDefinition,
    context: AgentContext & { readonly name?: string | undefined; readonly run_id?: string },
  ): Promise<Agent> => {
    const { id, env, payload, run_id } = context;
    const file = sources.agents.find((agent) => agent.definition === definition);
    const own = await describe(definition, { context: { id, env, payload }, file, root });
    const shared: AgentProfile = { ...options.defaults, skills: sources.skills, roles: sources.roles };
    const profile = mergeProfiles(withOwnFirst(mergeProfiles(shared, own)), options.overrides ?? {});
    const name = context.name ?? file?.name ?? own.name ?? "agent";
    return createHarness({ name, id, ...(run_id === undefined ? {} : { run_id }) }, profile, runtime);
  };
  const here = { env: options.env, payload: {} };
  const instances = createInstances(({ name, id, payload }) => {
    const definition =
      sources.agents.find((agent) => agent.name === name)?.definition ??
      (name === "default" ? defaultAgent : undefined);
    if (definition === undefined) throw unknown("agent", name, sources);
    return bring(definition, { ...here, name, id, payload });
  });

  return {
    root,
    agents: () => sources.agents,
    workflows: () => sources.workflows,
    webhooks: () => sources.webhooks,
    problems: () => [...sources.problems, ...serverProblems(options.mcp)],
    async reload() {
      hooks.renew();
      sources = await load();
      instances.renew();
    },
    instance: (name, id, payload = {}) => instances.get({ name, id, payload }),
    init: (definition, context = {}) =>
      bring(definition, { ...here, ...context, id: context.id ?? "default" }),
    async run(name, run = {}) {
      const workflow = sources.workflows.find((item) => item.name === name);
      if (workflow === undefined) throw unknown("workflow", name, sources);
      const mask = options.mask ?? ((text: string) => text);
      return runWorkflow({ root, env: options.env, bring, publish: observers.publish, mask }, workflow, run);
    },
    observe: (observer) => observers.add(observer),
    async close() {
      await instances.close();
      await options.mcp?.close();
      await options.python?.close();
      await options.store.close();
      hooks.deregister();
    },
  };
}

function toRuntime(options: AppOptions, observers: Observers): AgentRuntime {
  return {
    store: options.store,
    resolveModel: options.resolveModel,
    defaultModel: options.defaultModel,
    sandbox: options.sandbox,
    clock: systemClock,
    retry: options.retry ?? defaultRetryPolicy,
    modelIdleTimeoutMs: 120_000,
    validateJson: createJsonValidator(),
    env: options.env,
    observers: [observers.publish],
    maxWaitingOperations: 100,
    maxIdleSessions: 1_000,
    ...(options.project === undefined ? {} : { project: options.project }),
    ...(options.mcp === undefined ? {} : { toolSources: [createMcpToolSource(options.mcp)] }),
    ...(options.python === undefined ? {} : { python: options.python }),
    ...(options.mask === undefined ? {} : { mask: options.mask }),
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

/** There is no such file; or there is, and it could not be used: then that is what to say. */
function unknown(kind: "agent" | "workflow", name: string, sources: ProjectSources): KitError {
  const broken = sources.problems.find(
    (problem) => problem.source?.kind === kind && problem.source.name === name,
  );
  const names = (kind === "agent" ? sources.agents : sources.workflows).map((item) => item.name).join(", ");
  return new KitError({
    code: kind === "agent" ? "agent_not_found" : "workflow_not_found",
    message:
      broken === undefined
        ? `There is no ${kind} named "${name}".`
        : `The ${kind} "${name}" cannot be used: its file is broken.`,
    hint:
      broken !== undefined
        ? `${broken.path}: ${broken.message}`
        : names === ""
          ? `Add one as src/${kind}s/${name}.ts.`
          : `The ${kind}s are: ${names}.`,
  });
}

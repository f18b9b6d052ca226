import type { AgentRuntime, ToolSource } from "../../agents/agent-runtime.ts";
import type { Approvals } from "../../agents/approvals/approvals.ts";
import type { AgentProfile } from "../../agents/define/agent-profile.ts";
import {
  type AgentContext,
  type AgentDefinition,
  type InstanceContext,
  isAgentDefinition,
  mergeProfiles,
  noApplicationCalls,
} from "../../agents/define/create-agent.ts";
import type { ProfileModel } from "../../agents/define/profile-settings.ts";
import { type Agent, type AgentIdentity, createHarness } from "../../agents/harness.ts";
import type { SecretMask } from "../../agents/secrets.ts";
import { defaultModelRetryPolicy, type ModelRetryPolicy } from "../../agents/turn/retry.ts";
import { systemClock } from "../../base/clock.ts";
import { toSentence } from "../../base/error-text.ts";
import { KitError } from "../../base/kit-error.ts";
import { defined } from "../../base/record.ts";
import type { McpClient } from "../../mcp/create-mcp-client.ts";
import type { ModelResolver } from "../../models/contract.ts";
import type { PythonRunner } from "../../python/contract.ts";
import type { IsolationOptions, SandboxFactory } from "../../sandboxes/contract.ts";
import type { SessionStore } from "../../stores/contract.ts";
import { faultOfProfile } from "../sources/check-profile.ts";
import { describeFailure, failureLine } from "../sources/describe-failure.ts";
import type { SourceFile, SourceModules, SourceProblem } from "../sources/discover-sources.ts";
import { defaultAgent, defaultAgentName, type ProjectSources, type Sources } from "../sources/sources.ts";
import type { InstanceLimits } from "./instances.ts";
import { origins } from "./observers.ts";
import type { OpenProjectContext } from "./repositories.ts";
import { copyOf, isSame } from "./same-profile.ts";
import { createJsonValidator } from "./validate-json.ts";

/** Wraps a virtual sandbox, so that the store persists its workspaces. Returns any other sandbox unchanged. */
export type KeepWorkspaces = (sandbox: SandboxFactory, store: SessionStore) => SandboxFactory;

export interface AgentFactoryOptions {
  readonly sources: Sources;
  readonly runtime: AgentRuntime;
  /** Laid under every agent's own profile: the `agent` table of the configuration. */
  readonly defaults?: AgentProfile | undefined;
  /** Laid over every agent's own profile: options of a command line. */
  readonly overrides?: AgentProfile | undefined;
  /** Set if stores persist workspaces; the runtime's sandbox is already wrapped. */
  readonly keepWorkspaces?: KeepWorkspaces | undefined;
}

/** The context for an agent's function, and the identity of the agent. */
export interface AgentRequest extends InstanceContext, Pick<AgentIdentity, "run_id" | "last_event"> {
  /** The agent's name in the key of its sessions; default: of its file, else the profile's, else "agent". */
  readonly name?: string | undefined;
  /** Wraps the store of the agent: the service's, or that of its profile. */
  readonly storeFor?: ((own?: SessionStore) => SessionStore) | undefined;
}

/** Creates live agents from definitions. It depends on neither the engine nor the service: both come with its options. */
export class AgentFactory {
  readonly #options: AgentFactoryOptions;
  // A profile that all instances share is merged once, so that its tools and schemas are created once.
  readonly #profiles = new WeakMap<
    AgentProfile,
    { readonly loaded: ProjectSources; readonly profile: AgentProfile }
  >();
  /** The newest profile of each definition, and a copy for comparisons: the function may change what it returned. */
  readonly #newest = new WeakMap<
    AgentDefinition,
    { readonly profile: AgentProfile; readonly copy: unknown }
  >();

  constructor(options: AgentFactoryOptions) {
    this.#options = options;
  }

  /** Creates an agent. Throws `internal_error` for a definition whose function throws or returns no profile. */
  async create(definition: AgentDefinition, request: AgentRequest): Promise<Agent> {
    const { id, env, payload, name, storeFor, ...identity } = request;
    const { runtime } = this.#options;
    const file = this.#options.sources.fileOf(definition);
    const ending = new Ending();
    const context = this.#contextOf({ id, env, payload }, request.run_id, ending);
    const ownProfile = await this.#describe(definition, context, file);
    return createHarness(
      {
        run_id: identity.run_id,
        last_event: identity.last_event,
        id,
        name: name ?? file?.name ?? ownProfile.name ?? "agent",
        file: file?.path,
        onClosed: () => ending.close(),
      },
      storeFor === undefined
        ? this.#profileOf(ownProfile)
        : this.#keptIn(storeFor(), this.#profileOf(ownProfile)),
      storeFor === undefined
        ? runtime
        : { ...this.#keptIn(storeFor(), runtime), store: storeFor(), guardStore: storeFor },
    );
  }

  #contextOf(instance: InstanceContext, runId: string | undefined, ending: Ending): AgentContext {
    const { dispatch, startRun, getRun } = this.#options.runtime.callsOf?.(runId) ?? noApplicationCalls;
    // A property of the object itself, so that copies of the context have the signal too.
    return Object.defineProperty({ ...instance, dispatch, startRun, getRun }, "signal", {
      enumerable: true,
      get: () => ending.signal,
    }) as AgentContext;
  }

  /** Creates the agent of that name, which can be the default agent. Throws `agent_not_found`. */
  async createNamed(name: string, request: AgentRequest): Promise<Agent> {
    const { sources } = this.#options;
    const definition =
      sources.agent(name)?.definition ?? (name === defaultAgentName ? defaultAgent : undefined);
    if (definition === undefined) throw sources.unknown("agent", name);
    return await this.create(definition, { ...request, name });
  }

  /** Returns the sandbox of an instance. For an agent without a file, that is the sandbox of the configuration. */
  async sandboxOf(agent: string, instance: InstanceContext): Promise<SandboxFactory> {
    const { sources, runtime } = this.#options;
    const file = sources.agent(agent);
    if (file === undefined) return runtime.sandbox;
    const context = this.#contextOf(instance, undefined, new Ending());
    const ownProfile = await this.#describe(file.definition, context, file);
    return this.#profileOf(ownProfile).sandbox ?? runtime.sandbox;
  }

  #profileOf(ownProfile: AgentProfile): AgentProfile {
    const { sources, defaults, overrides = {} } = this.#options;
    const loaded = sources.loaded;
    const cached = this.#profiles.get(ownProfile);
    if (cached?.loaded === loaded) return cached.profile;
    const shared: AgentProfile = { ...defaults, skills: loaded.skills, roles: loaded.roles };
    const merged = mergeProfiles(withOwnFirst(mergeProfiles(shared, ownProfile)), overrides);
    const profile = this.#keptIn(this.#options.runtime.store, merged);
    this.#profiles.set(ownProfile, { loaded, profile });
    return profile;
  }

  /** Wraps the sandbox of a profile or a runtime, so that the store persists its workspaces. */
  #keptIn<Given extends { readonly sandbox?: SandboxFactory | undefined }>(
    store: SessionStore,
    parts: Given,
  ): Given {
    const { keepWorkspaces } = this.#options;
    if (keepWorkspaces === undefined || parts.sandbox === undefined) return parts;
    return { ...parts, sandbox: keepWorkspaces(parts.sandbox, store) };
  }

  /** Returns the profile of a definition; an error of the project's code names the place. */
  async #describe(
    definition: AgentDefinition,
    context: AgentContext,
    file: SourceFile | undefined,
  ): Promise<AgentProfile> {
    const refuse = (why: string, cause?: unknown, ofProgram = false): KitError =>
      new KitError({
        code: "internal_error",
        // A program reads about its own definition; a client of a server learns nothing of the project's code.
        message: ofProgram
          ? `The agent could not be made: ${why}`
          : `The agent${file === undefined ? "" : ` "${file.name}"`} could not be made.`,
        hint: ofProgram ? undefined : why,
        cause,
      });
    if (!isAgentDefinition(definition)) throw refuse("Give it as createAgent makes it: createAgent({ … }).");
    let ownProfile: AgentProfile;
    try {
      ownProfile = await definition.describe(context);
    } catch (error) {
      if (error instanceof KitError) throw error;
      throw refuse(failureLine(describeFailure(error, this.#options.sources.root)), error);
    }
    // A function mostly describes the same agent for each instance, which was checked and merged with the first one.
    const newest = this.#newest.get(definition);
    if (newest !== undefined && isSame(newest.copy, ownProfile)) return newest.profile;
    const fault = this.#profiles.has(ownProfile) ? undefined : faultOfProfile(ownProfile);
    if (fault !== undefined)
      throw refuse(
        toSentence(`${file === undefined ? "" : `${file.path}: `}${fault}`),
        undefined,
        file === undefined,
      );
    this.#newest.set(definition, { profile: ownProfile, copy: copyOf(ownProfile) });
    return ownProfile;
  }
}

/** The end of an instance. Its signal is created for an agent's function that reads it: most read none. */
class Ending {
  #controller: AbortController | undefined;
  #isClosed = false;

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.#isClosed) this.#abort();
    }
    return this.#controller.signal;
  }

  close(): void {
    this.#isClosed = true;
    this.#abort();
  }

  #abort(): void {
    this.#controller?.abort(new KitError({ code: "aborted", message: "The agent is closed." }));
  }
}

// A skill or role of the agent replaces that of the project with the same name.
function withOwnFirst(profile: AgentProfile): AgentProfile {
  const lastOf = <Item extends { readonly name: string }>(items: readonly Item[] = []): readonly Item[] => [
    ...new Map(items.map((item) => [item.name, item])).values(),
  ];
  return { ...profile, skills: lastOf(profile.skills), roles: lastOf(profile.roles) };
}

/** The parts with which the agents of a service are created. `openParts` opens them from a configuration. */
export interface RuntimeParts {
  readonly root: string;
  readonly store: SessionStore;
  readonly sandbox: SandboxFactory;
  readonly isolation?: IsolationOptions | undefined;
  /** Set if the store persists the workspaces of `sandbox`: the most bytes of each. */
  readonly persistedBytes?: number | undefined;
  readonly resolveModel: ModelResolver;
  readonly defaultModel: ProfileModel;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly project?: OpenProjectContext | undefined;
  /** MCP servers whose tools every agent has. */
  readonly mcp?: McpClient | undefined;
  /** Python for the sessions of every agent. */
  readonly python?: PythonRunner | undefined;
  /** Laid under every agent's own profile: the `agent` table of the configuration. */
  readonly defaults?: AgentProfile | undefined;
  /** Laid over every agent's own profile: options of a command line. */
  readonly overrides?: AgentProfile | undefined;
  /** False for a program that defines its agent itself: no code of the project runs. Default true. */
  readonly code?: boolean | undefined;
  /** The code of the project; default: the files in its folder. */
  readonly modules?: SourceModules | undefined;
  /** Masks the application's secrets in results of tools and logs of workflows. */
  readonly mask?: SecretMask | undefined;
  /** Whether to record for the next process which files models have written. Default true. */
  readonly keepsWrites?: boolean | undefined;
  /** Whether commands get their trace position in environment variables. Default false. */
  readonly tracesCommands?: boolean | undefined;
  /** The retry policy of model calls. */
  readonly retry?: ModelRetryPolicy | undefined;
  readonly onListenerError?: ((error: unknown) => void) | undefined;
  /** Operations that can wait in one session; default 100. */
  readonly maxWaiting?: number | undefined;
  /** Holds the tool calls that wait for approval; without it, such calls are denied. */
  readonly approvals?: Approvals | undefined;
  /** Limits for idle instances. */
  readonly instances?: InstanceLimits | undefined;
  /** Closes everything opened for the service; called after its agents are closed. */
  close(): Promise<void>;
}

/** The parts of the runtime that come from the service. */
type ServiceParts = Required<
  Pick<AgentRuntime, "observers" | "causeOf" | "sources" | "callsOf" | "principal">
> & {
  readonly approvals: Approvals | undefined;
} & Pick<AgentRuntime, "guardStore" | "joins">;

export function toAgentRuntime(parts: RuntimeParts, serviceParts: ServiceParts): AgentRuntime {
  const { mcp, mask, isolation, project, python, onListenerError } = parts;
  const { approvals, ...otherParts } = serviceParts;
  return {
    store: parts.store,
    resolveModel: parts.resolveModel,
    resolveBackend: async (choice) =>
      (await import("../../backends/resolve-backend.ts")).resolveBackend(choice),
    defaultModel: parts.defaultModel,
    sandbox: parts.sandbox,
    projectRoot: parts.root,
    clock: systemClock,
    retry: parts.retry ?? defaultModelRetryPolicy,
    modelIdleTimeoutMs: 120_000,
    validateJson: createJsonValidator(),
    env: parts.env,
    origins,
    tracesCommands: parts.tracesCommands ?? false,
    maxWaitingOperations: parts.maxWaiting ?? 100,
    maxIdleSessions: 1_000,
    ...otherParts,
    ...defined({ approvals, isolation, project, python, onListenerError }),
    ...(mcp === undefined ? {} : { toolSources: [createMcpToolSource(mcp)] }),
    ...(mask === undefined || mask.values.length === 0 ? {} : { mask }),
  };
}

/** Returns the tools of MCP servers for every operation. A missing server is a warning in the operation's log. */
function createMcpToolSource(client: McpClient): ToolSource {
  const tools: ToolSource = ({ signal, emit }) =>
    client.tools({
      signal,
      onProblem: ({ server, message }) =>
        emit({
          type: "log",
          level: "warning",
          message: `MCP server "${server}": ${message}`,
          data: { mcp_server: server },
        }),
    });
  return Object.assign(tools, { whyMissing: client.whyMissing });
}

/** Returns the problems of the MCP servers, each with its path in the configuration. */
export function serverProblems(client: McpClient | undefined): readonly SourceProblem[] {
  return (client?.problems() ?? []).map(({ server, message, details }) => ({
    path: `mcp.servers.${server}`,
    message: details === undefined ? message : `${message} It said last: ${details}`,
  }));
}

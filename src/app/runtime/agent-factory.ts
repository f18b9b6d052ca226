import type { AgentRuntime } from "../../agents/agent-runtime.ts";
import type { AgentProfile } from "../../agents/define/agent-profile.ts";
import {
  type AgentContext,
  type AgentDefinition,
  type InstanceContext,
  isAgentDefinition,
  noApplicationCalls,
} from "../../agents/define/create-agent.ts";
import { mergeProfiles } from "../../agents/define/merge-profiles.ts";
import { type Agent, type AgentIdentity, createHarness } from "../../agents/harness.ts";
import { KitError } from "../../base/kit-error.ts";
import { toSentence } from "../../base/to-sentence.ts";
import type { SandboxFactory } from "../../sandboxes/contract.ts";
import { faultOfProfile } from "../sources/check-profile.ts";
import { describeFailure, failureLine } from "../sources/describe-failure.ts";
import type { SourceFile } from "../sources/discover-sources.ts";
import { defaultAgentName, type ProjectSources, type Sources } from "../sources/sources.ts";

export interface AgentFactoryOptions {
  readonly sources: Sources;
  readonly runtime: AgentRuntime;
  /** Laid under every agent's own profile: the `agent` table of the configuration. */
  readonly defaults?: AgentProfile | undefined;
  /** Laid over every agent's own profile: options of a command line. */
  readonly overrides?: AgentProfile | undefined;
}

/** The context of an agent's function, and the identity of the agent. */
export interface AgentRequest extends InstanceContext, Pick<AgentIdentity, "run_id" | "last_event"> {
  /** The agent's name in the key of its sessions; default: of its file, else the profile's, else "agent". */
  readonly name?: string | undefined;
}

const defaultAgent: AgentDefinition = { kind: "kit.agent", describe: async () => ({}) };

/** Makes live agents of definitions. It knows neither the engine nor the service: both are in what it is given. */
export class AgentFactory {
  readonly #options: AgentFactoryOptions;
  // A description that is the same for every instance is one profile: its tools and schemas are made once.
  readonly #profiles = new WeakMap<
    AgentProfile,
    { readonly of: ProjectSources; readonly profile: AgentProfile }
  >();

  constructor(options: AgentFactoryOptions) {
    this.#options = options;
  }

  /** Throws `internal_error` for a definition whose function throws, or gives no profile. */
  async create(definition: AgentDefinition, request: AgentRequest): Promise<Agent> {
    const { id, env, payload, name, ...identity } = request;
    const file = this.#options.sources.fileOf(definition);
    const ended = new AbortController();
    const context = this.#contextOf({ id, env, payload }, request.run_id, ended.signal);
    const own = await this.#describe(definition, context, file);
    const agent = createHarness(
      {
        ...identity,
        id,
        name: name ?? file?.name ?? own.name ?? "agent",
        ...(file === undefined ? {} : { file: file.path }),
      },
      this.#profileOf(own),
      this.#options.runtime,
    );
    const { close } = agent;
    return Object.assign(agent, {
      async close(how?: Parameters<Agent["close"]>[0]) {
        await close(how);
        ended.abort(new KitError({ code: "aborted", message: "The agent is closed." }));
      },
    });
  }

  #contextOf(instance: InstanceContext, runId: string | undefined, signal: AbortSignal): AgentContext {
    const { dispatch, startRun, getRun } = this.#options.runtime.callsOf?.(runId) ?? noApplicationCalls;
    return { ...instance, signal, dispatch, startRun, getRun };
  }

  /** The agent of that name, the default agent included. Throws `agent_not_found`. */
  async createNamed(name: string, request: AgentRequest): Promise<Agent> {
    const { sources } = this.#options;
    const definition =
      sources.agent(name)?.definition ?? (name === defaultAgentName ? defaultAgent : undefined);
    if (definition === undefined) throw sources.unknown("agent", name);
    return await this.create(definition, { ...request, name });
  }

  /** Where an instance works. An agent without a file, or whose file is gone: the sandbox of the configuration. */
  async sandboxOf(agent: string, instance: InstanceContext): Promise<SandboxFactory> {
    const { sources, runtime } = this.#options;
    const file = sources.agent(agent);
    if (file === undefined) return runtime.sandbox;
    const context = this.#contextOf(instance, undefined, new AbortController().signal);
    const own = await this.#describe(file.definition, context, file);
    return this.#profileOf(own).sandbox ?? runtime.sandbox;
  }

  #profileOf(own: AgentProfile): AgentProfile {
    const { sources, defaults, overrides = {} } = this.#options;
    const of = sources.loaded;
    const known = this.#profiles.get(own);
    if (known?.of === of) return known.profile;
    const shared: AgentProfile = { ...defaults, skills: of.skills, roles: of.roles };
    const profile = mergeProfiles(withOwnFirst(mergeProfiles(shared, own)), overrides);
    this.#profiles.set(own, { of, profile });
    return profile;
  }

  /** Asks a definition for its profile; an error of its code names the place. */
  async #describe(
    definition: AgentDefinition,
    context: AgentContext,
    file: SourceFile | undefined,
  ): Promise<AgentProfile> {
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
      throw refuse(failureLine(describeFailure(error, this.#options.sources.root)), error);
    }
    const fault = faultOfProfile(own);
    if (fault !== undefined)
      throw refuse(toSentence(`${file === undefined ? "" : `${file.path}: `}${fault}`));
    return own;
  }
}

// A skill or role of the agent itself takes the place of the project's of the same name.
function withOwnFirst(profile: AgentProfile): AgentProfile {
  const lastOf = <Item extends { readonly name: string }>(items: readonly Item[] = []): readonly Item[] => [
    ...new Map(items.map((item) => [item.name, item])).values(),
  ];
  return { ...profile, skills: lastOf(profile.skills), roles: lastOf(profile.roles) };
}

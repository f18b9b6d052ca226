import type { LanguageModelV4 } from "@ai-sdk/provider";
import type { Approvals } from "../../agents/approvals/approvals.ts";
import type { Skill } from "../../agents/define/agent-profile.ts";
import type { AgentContext, AgentDefinition } from "../../agents/define/create-agent.ts";
import type { EventListener } from "../../agents/events.ts";
import type { Agent } from "../../agents/harness.ts";
import { defined } from "../../base/record.ts";
import type { SandboxFactory } from "../../sandboxes/contract.ts";
import type { SessionStore } from "../../stores/contract.ts";
import type { KitConfig } from "../config/config-schema.ts";
import type { Agents } from "./app.ts";
import type { ProjectServiceOptions } from "./open-project-service.ts";
import type { ProjectService } from "./service.ts";

export interface OpenAgentsOptions {
  /** The repository; default: the current folder. */
  readonly root?: string | undefined;
  /** Keys and secrets; default: the environment of the process. */
  readonly env?: AgentContext["env"] | undefined;
  /**
   * The store; the caller closes it, and several callers can share it. Default: the store named in the configuration,
   * else SQLite in `<root>/.kit/sessions.db`.
   */
  readonly store?: SessionStore | undefined;
  /** For agents without a sandbox; default: the sandbox named in the configuration, else a virtual workspace for each session. */
  readonly sandbox?: SandboxFactory | undefined;
  /** Models by their full name, in addition to those of the providers: `{ "scripted/test": model }`. */
  readonly models?: Readonly<Record<string, LanguageModelV4>> | undefined;
  /**
   * Holds the tool calls that wait for approval: `createApprovals()`, if a listener of the events decides. Without it,
   * `openAgents` denies such calls at once, and `openService` keeps them in memory.
   */
  readonly approvals?: Approvals | undefined;
  /** Receives the events of every agent and workflow. */
  readonly onEvent?: EventListener | undefined;
  /** Receives errors of listeners; they never fail a run. */
  readonly onListenerError?: ((error: unknown) => void) | undefined;
}

export interface OpenServiceOptions extends OpenAgentsOptions {
  /**
   * Where the engine stores accepted work: a folder, relative to the root, or "memory", which loses it with the process.
   * Default: as the configuration says, else `.kit/engine`.
   */
  readonly engine?: "memory" | (string & {}) | undefined;
}

export interface InitAgentOptions extends OpenAgentsOptions {
  /** The instance; default "default". */
  readonly id?: string | undefined;
  /** The agent's name in the key of its sessions; default: the profile's, else "agent". */
  readonly name?: string | undefined;
  readonly payload?: AgentContext["payload"] | undefined;
}

/**
 * Opens the agents and workflows of a repository behind its durable engine, with the repository's configuration, as
 * `kit start` does, but without HTTP. Accepted work survives the process, and this process resumes the work of earlier
 * ones. The caller closes the service.
 *
 * @example
 * import { openService } from "kit";
 *
 * const service = await openService({ root: "." });
 * const target = { agent: "reviewer", instance_id: "pr-7", session: "default" };
 * const { dispatch_id } = await service.dispatch(target, "Review the change.", { idempotencyKey: "pr-7" });
 * await service.close();
 */
export async function openService(options: OpenServiceOptions = {}): Promise<ProjectService> {
  return await open(options, {});
}

/**
 * Opens the agents and workflows of a repository in this process, with the repository's configuration. The caller
 * closes them: the repository's index and the session store stay open until then.
 *
 * Callers wait for all results, and no work survives the process. Use `openService` for `dispatch`: it stores inputs on
 * disk.
 *
 * @example
 * import { openAgents } from "kit";
 *
 * const agents = await openAgents({ root: "." });
 * const reviewer = await agents.instance("reviewer", "pr-7");
 * const { text } = await reviewer.session().prompt("Review the change.");
 * await agents.close();
 */
export async function openAgents(options: OpenAgentsOptions = {}): Promise<Agents> {
  const { approvals = "none" } = options;
  return (await open({ ...options, engine: "memory" }, { ...inProcess, approvals })).app;
}

/**
 * Creates an agent in this process, with the configuration of the repository at `root`. The caller closes it: the
 * repository's index and the session store stay open until then.
 *
 * @example
 * import { createAgent, initAgent } from "kit";
 *
 * const agent = await initAgent(createAgent({ model: "offline/guide" }), { root: "." });
 * const { text } = await agent.session().prompt("Which specs are there?");
 * await agent.close();
 */
export async function initAgent<Output = unknown>(
  definition: AgentDefinition<Output>,
  options: InitAgentOptions = {},
): Promise<Agent<Output>> {
  const { id, name, payload, ...around } = options;
  const inside: Inside = { ...inProcess, approvals: around.approvals ?? "none", code: false };
  const { app } = await open({ ...around, engine: "memory" }, inside);
  try {
    const agent = await app.init(definition, defined({ id, name, payload }));
    const close = agent.close.bind(agent);
    return Object.assign(agent, {
      async close(how?: Parameters<Agent["close"]>[0]) {
        await close(how);
        await app.close();
      },
    });
  } catch (error) {
    await app.close();
    throw error;
  }
}

type Inside = Partial<ProjectServiceOptions>;

/** Callers wait for all work: nothing is stored for later. */
const inProcess: Inside = { keepsWork: false, housekeeping: false, endsIdle: false };

async function open(options: OpenServiceOptions, inside: Inside): Promise<ProjectService> {
  // Loading the parts of agents only when agents are opened keeps the import of kit cheap.
  const [{ openProject }, { loadConfig }, { openProjectService }] = await Promise.all([
    import("../../project/open-project.ts"),
    import("../config/load-config.ts"),
    import("./open-project-service.ts"),
  ]);
  const { root = process.cwd(), onEvent, onListenerError, ...rest } = options;
  const loaded = await loadConfig({ cwd: root, keys: options.env });
  const project = await openProject({ root, config: loaded.config });
  return await openProjectService({
    ...rest,
    ...inside,
    project,
    loaded,
    closesProject: true,
    observers: onEvent === undefined ? [] : [onEvent],
    onError: onListenerError,
  });
}

/**
 * Types the configuration in `kit.config.ts`: `export default defineConfig({ … })`. Returns its argument.
 *
 * @example
 * ```ts
 * import { defineConfig } from "kit";
 *
 * export default defineConfig({ agent: { model: "anthropic/claude-sonnet-4-6", max_turns: 40 } });
 * ```
 */
export function defineConfig(config: KitConfig): KitConfig {
  return config;
}

/**
 * Loads a skill from a Markdown file, or from the `SKILL.md` of a folder. Throws `invalid_request` for
 * a file without instructions or with invalid front matter.
 *
 * @example
 * ```ts
 * import { type Agent, loadSkill } from "kit";
 *
 * export async function release(agent: Agent): Promise<string> {
 *   const skill = await loadSkill("shared/skills/release");
 *   return (await agent.session().skill(skill)).text;
 * }
 * ```
 */
export async function loadSkill(path: string, options: { readonly root?: string } = {}): Promise<Skill> {
  const { readSkill } = await import("../sources/load-skills.ts");
  return (await readSkill(path, options)).skill;
}

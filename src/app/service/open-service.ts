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
   * Yours to close: several may share it. Default: what the configuration names, else SQLite in
   * `<root>/.kit/sessions.db`.
   */
  readonly store?: SessionStore | undefined;
  /** For agents that name none; default: what the configuration names, else a virtual workspace for each session. */
  readonly sandbox?: SandboxFactory | undefined;
  /** Models by their whole name, beside those of the providers: `{ "scripted/test": model }`. */
  readonly models?: Readonly<Record<string, LanguageModelV4>> | undefined;
  /**
   * Where calls that need approval wait for it: `createApprovals()`, where a listener of the events decides.
   * `openAgents` denies them at once without it; `openService` keeps them in memory.
   */
  readonly approvals?: Approvals | undefined;
  /** Receives the events of every agent and workflow. */
  readonly onEvent?: EventListener | undefined;
  /** Receives what listeners throw; they never fail a run. */
  readonly onListenerError?: ((error: unknown) => void) | undefined;
}

export interface OpenServiceOptions extends OpenAgentsOptions {
  /**
   * Where accepted work is kept: a folder, from the root, or "memory", where it is gone with the process. Default: what the
   * configuration names, else `.kit/engine`.
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
 * Opens the agents and workflows of a repository behind its durable engine, under its configuration, as
 * `kit start` does without the HTTP: accepted work outlives the process, and this process resumes what one before it has
 * left. Close it when it is no longer needed.
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
 * Opens the agents and workflows of a repository in this process, under its configuration. Close them
 * when they are no longer needed: the repository's index and the session store stay open until then.
 *
 * Callers wait for what they ask, and nothing outlives the process: `dispatch` is for `openService`, which keeps inputs
 * on disk.
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
 * Makes an agent in this process, under the configuration of the repository at `root`. Close
 * it when it is no longer needed: it keeps the repository's index and the session store open.
 *
 * @example
 * import { createAgent, initAgent } from "kit";
 *
 * const agent = await initAgent(createAgent({ model: "offline/guide" }), { root: "." });
 * const { text } = await agent.session().prompt("Which specs are there?");
 * await agent.close();
 */
export async function initAgent(definition: AgentDefinition, options: InitAgentOptions = {}): Promise<Agent> {
  const { id, name, payload, ...around } = options;
  const inside: Inside = { ...inProcess, approvals: around.approvals ?? "none", code: false };
  const { app } = await open({ ...around, engine: "memory" }, inside);
  try {
    const agent = await app.init(definition, defined({ id, name, payload }));
    const { close } = agent;
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

/** Callers wait for all work: nothing is kept for later. */
const inProcess: Inside = { keepsWork: false, housekeeping: false, endsIdle: false };

async function open(options: OpenServiceOptions, inside: Inside): Promise<ProjectService> {
  // The parts of agents are loaded when agents are opened: importing kit stays cheap.
  const [{ openProject }, { loadConfig }, { openProjectService }] = await Promise.all([
    import("../../project/open-project.ts"),
    import("../config/load-config.ts"),
    import("./open-project-service.ts"),
  ]);
  const { root = process.cwd(), onEvent, onListenerError, ...rest } = options;
  const loaded = await loadConfig({ cwd: root });
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
 * Gives `kit.config.ts` its types: `export default defineConfig({ … })`. Returns what it is given.
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
 * a file that is not a skill: one without instructions, or with front matter that is not what it should be.
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

import type { LanguageModelV4 } from "@ai-sdk/provider";
import type { AgentContext, AgentDefinition } from "../agents/create-agent.ts";
import type { EventListener } from "../agents/events/emitter.ts";
import type { Agent } from "../agents/harness.ts";
import type { SandboxFactory } from "../sandboxes/contract.ts";
import type { SessionStore } from "../stores/contract.ts";

export interface InitAgentOptions {
  /** The instance; default "default". */
  readonly id?: string;
  /** The agent's name in the key of its sessions; default: the profile's, else "agent". */
  readonly name?: string;
  readonly payload?: AgentContext["payload"];
  /** Keys and secrets; default: the environment of the process. */
  readonly env?: AgentContext["env"];
  /** The repository whose specs, guidelines and instructions it works under; default: the current folder. */
  readonly root?: string;
  /** Default: the agent's own, else SQLite in `<root>/.kit/sessions.db`. */
  readonly store?: SessionStore;
  /** Default: the agent's own, else a virtual workspace below `<root>/.kit/sandboxes`. */
  readonly sandbox?: SandboxFactory;
  /** Models by their whole name, beside those of the providers: `{ "scripted/test": model }`. */
  readonly models?: Readonly<Record<string, LanguageModelV4>>;
  readonly onEvent?: EventListener;
}

/**
 * Brings an agent to life in this process, under the configuration of the repository at `root`. Close
 * it when it is no longer needed: it keeps the repository's index and the session store open.
 */
export async function initAgent(definition: AgentDefinition, options: InitAgentOptions = {}): Promise<Agent> {
  // What an agent needs to live is loaded when there is one: importing kit stays cheap.
  const [{ openProject }, { loadConfig }, { openApp }, { toProfile }, { virtual }] = await Promise.all([
    import("../project/open-project.ts"),
    import("./config/load-config.ts"),
    import("./agents/open-app.ts"),
    import("./config/agent-config.ts"),
    import("../sandboxes/virtual/virtual-sandbox.ts"),
  ]);
  const root = options.root ?? process.cwd();
  const { config, environment } = await loadConfig({ cwd: root });
  const project = await openProject({ root, config });
  try {
    const env = options.env ?? environment;
    const app = await openApp({
      project,
      env,
      defaults: toProfile(config.agent, config.compaction),
      sandbox: options.sandbox ?? virtual({ root: project.root }),
      ...(config.mcp === undefined ? {} : { mcp: config.mcp }),
      ...(config.providers === undefined ? {} : { providers: config.providers }),
      ...(options.store === undefined ? {} : { store: options.store }),
      ...(options.models === undefined ? {} : { models: options.models }),
    });
    if (options.onEvent !== undefined) app.observe(options.onEvent);
    const agent = await app.init(definition, {
      id: options.id ?? "default",
      env,
      ...(options.name === undefined ? {} : { name: options.name }),
      ...(options.payload === undefined ? {} : { payload: options.payload }),
    });
    const close = async (): Promise<void> => {
      await agent.close();
      await app.close();
      await project.close();
    };
    return { ...agent, close };
  } catch (error) {
    await project.close();
    throw error;
  }
}

import type { LanguageModelV4 } from "@ai-sdk/provider";
import type { Approvals } from "../../agents/approvals/approvals.ts";
import type { AgentContext } from "../../agents/create-agent.ts";
import type { EventListener } from "../../agents/events/emitter.ts";
import { defined } from "../../base/defined.ts";
import type { SandboxFactory } from "../../sandboxes/contract.ts";
import type { SessionStore } from "../../stores/contract.ts";
import { lendStore } from "../../stores/lend-store.ts";
import type { Agents, App } from "../runtime/app.ts";

export interface OpenAgentsOptions {
  /** The repository; default: the current folder. */
  readonly root?: string;
  /** Keys and secrets; default: the environment of the process. */
  readonly env?: AgentContext["env"];
  /**
   * Yours to close: several may share it. Default: what the configuration names, else SQLite in
   * `<root>/.kit/sessions.db`.
   */
  readonly store?: SessionStore;
  /** For agents that name none; default: what the configuration names, else a virtual workspace for each session. */
  readonly sandbox?: SandboxFactory;
  /** Models by their whole name, beside those of the providers: `{ "scripted/test": model }`. */
  readonly models?: Readonly<Record<string, LanguageModelV4>>;
  /**
   * Where calls that need approval wait for it: `createApprovals()`, if somebody listens to the events and
   * decides. Without it they are denied at once.
   */
  readonly approvals?: Approvals;
  /** Hears the events of every agent and workflow. */
  readonly onEvent?: EventListener;
  /** Told of listeners that throw; they never harm a run. */
  readonly onListenerError?: (error: unknown) => void;
}

/**
 * Opens the agents and workflows of a repository in this process, under its configuration. Close them
 * when they are no longer needed: the repository's index and the session store stay open until then.
 *
 * Nothing is accepted here to be done later: `dispatch` is for `openService`, which keeps it on disk.
 */
export async function openAgents(options: OpenAgentsOptions = {}): Promise<Agents> {
  return await open(options, true);
}

/** The same, without running the project's own agent and workflow files. */
export async function openWithoutSources(options: OpenAgentsOptions): Promise<App> {
  return await open(options, false);
}

async function open(options: OpenAgentsOptions, code: boolean): Promise<App> {
  // What agents need to live is loaded when there is one: importing kit stays cheap.
  const [{ openProject }, { loadConfig }, { openApp }, { toAppOptions }] = await Promise.all([
    import("../../project/open-project.ts"),
    import("../config/load-config.ts"),
    import("../runtime/open-app.ts"),
    import("../runtime/to-app-options.ts"),
  ]);
  const { root = process.cwd(), env, onEvent, store, ...own } = options;
  const { config, environment, fileSecrets = [] } = await loadConfig({ cwd: root });
  const project = await openProject({ root, config });
  try {
    const app = await openApp({
      ...toAppOptions({ config, environment: env ?? environment, fileSecrets }, project.root),
      ...defined(own),
      ...(store === undefined ? {} : { store: lendStore(store) }),
      project,
      code,
    });
    if (onEvent !== undefined) app.observe(onEvent);
    const close = async (): Promise<void> => {
      await app.close();
      await project.close();
    };
    return { ...app, close };
  } catch (error) {
    await project.close();
    throw error;
  }
}

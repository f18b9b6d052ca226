import type { AgentContext, AgentDefinition, InstanceContext } from "../../agents/define/create-agent.ts";
import type { EventListener } from "../../agents/events.ts";
import type { Agent } from "../../agents/harness.ts";
import type { ApplicationCalls } from "../../protocol/run-calls.ts";
import type { SandboxFactory } from "../../sandboxes/contract.ts";
import type {
  LoadedAgent,
  LoadedWebhook,
  LoadedWorkflow,
  SourceProblem,
} from "../sources/discover-sources.ts";

/** The agents and workflows of a project, alive on demand. */
export interface App extends ApplicationCalls {
  readonly root: string;
  /** The `env` of agents, workflows and webhooks. */
  readonly env: AgentContext["env"];
  /** Takes the application's own keys out of a text that leaves it. */
  readonly mask: (text: string) => string;
  agents(): readonly LoadedAgent[];
  workflows(): readonly LoadedWorkflow[];
  webhooks(): readonly LoadedWebhook[];
  /** Where agents work: the sandbox of the configuration, and those that agent files bring along. */
  sandboxes(): Promise<readonly SandboxFactory[]>;
  /** Source files, skills, roles and MCP servers that could not be used, and why. */
  problems(): readonly SourceProblem[];
  /**
   * Reads the source files again. What runs goes on with the old code to its end; what is asked next
   * waits for it and has the new code. Histories are in the store: no session is lost.
   */
  reload(): Promise<void>;
  /** Whether a source file, or a file of the project that one imports, is another one since it was read. */
  hasChanged(): Promise<boolean>;
  /**
   * The instance of an agent file, or of the default agent for the name "default". `payload` is what the
   * agent's function is told where this brings the instance to life.
   */
  instance(name: string, id: string, payload?: AgentContext["payload"]): Promise<Agent>;
  /** An agent that a program brings along. */
  init(definition: AgentDefinition, context?: InitContext): Promise<Agent>;
  /**
   * Runs a workflow and gives its result. A failure is a `KitError` whose `meta.run_id` names the run and
   * whose `cause` is what the workflow threw. The run is as durable as the engine of its service; in memory it
   * ends with the process.
   */
  run(workflow: string, options?: RunOptions): Promise<WorkflowResult>;
  /**
   * Gives an input to a session of an agent; resolves once it is on disk. Throws `unavailable` in an
   * application of `openAgents`, which keeps nothing on disk.
   */
  readonly dispatch: ApplicationCalls["dispatch"];
  /** Calls the listener with the events of every agent and workflow; the function returned ends it. */
  onEvent(listener: EventListener): () => void;
  /** @deprecated Use `onEvent`. */
  observe(listener: EventListener): () => void;
  close(): Promise<void>;
}

export interface InitContext extends Partial<InstanceContext> {
  /** The agent's name in the key of its sessions; default: of its file, else the profile's, else "agent". */
  readonly name?: string;
}

export interface RunOptions {
  readonly payload?: AgentContext["payload"];
  /** Default: the application's. */
  readonly env?: AgentContext["env"];
  /** Stops the agents of the run, and the run with them. */
  readonly signal?: AbortSignal;
  /** The request that started the run. */
  readonly request?: Request;
  /** Hears the run as one stream: its start, its log, what its agents do, its end. */
  readonly onEvent?: EventListener;
}

export interface WorkflowResult {
  readonly run_id: string;
  readonly result: unknown;
}

/** The agents and workflows of a project in one process: what is asked of it, its caller waits for. */
export type Agents = Omit<App, "dispatch">;

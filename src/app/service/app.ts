import type { Skill } from "../../agents/define/agent-profile.ts";
import type { AgentContext, AgentDefinition, InstanceContext } from "../../agents/define/create-agent.ts";
import type { EventListener } from "../../agents/events.ts";
import type { Agent } from "../../agents/harness.ts";
import type { ApplicationCalls, WorkflowReference } from "../../protocol/run-calls.ts";
import type { SandboxFactory } from "../../sandboxes/contract.ts";
import type {
  LoadedAgent,
  LoadedWebhook,
  LoadedWorkflow,
  SourceProblem,
} from "../sources/discover-sources.ts";

/** The agents and workflows of a project, which start on demand. */
export interface App extends ApplicationCalls {
  readonly root: string;
  /** The `env` of agents, workflows and webhooks. */
  readonly env: AgentContext["env"];
  /** Masks the application's secrets in a text that leaves the process. */
  readonly mask: (text: string) => string;
  agents(): readonly LoadedAgent[];
  workflows(): readonly LoadedWorkflow[];
  webhooks(): readonly LoadedWebhook[];
  /** The skills of the project. */
  skills(): readonly Skill[];
  /** The sandboxes of the agents: that of the configuration, and those that agent files define. */
  sandboxes(): Promise<readonly SandboxFactory[]>;
  /** The source files, skills, roles and MCP servers that cannot be used, with the reasons. */
  problems(): readonly SourceProblem[];
  /**
   * Reads the source files again. Running operations end with the old code; later calls wait for the reload and use
   * the new code. No session is lost: the histories are in the store.
   */
  reload(): Promise<void>;
  /** Whether a source file, or a file of the project that it imports, has changed since kit read it. */
  hasChanged(): Promise<boolean>;
  /**
   * Returns the instance of an agent, named by the name or the default export of its file; the name "default" is the
   * default agent. If the call creates the instance, the agent's function gets `payload`.
   */
  instance<Output = unknown>(
    agent: string | AgentDefinition<Output>,
    id: string,
    payload?: AgentContext["payload"],
  ): Promise<Agent<Output>>;
  /** Creates an agent that a program defines. */
  init<Output = unknown>(definition: AgentDefinition<Output>, context?: InitContext): Promise<Agent<Output>>;
  /**
   * Runs a workflow, named by the name or the default export of its file, and returns its result. Throws a `KitError` if it fails: `meta.run_id` names the run, and `cause`
   * is the error that the workflow threw. The run is as durable as the engine of the service; with an engine in memory
   * it ends with the process.
   */
  run<Payload, Result>(
    workflow: WorkflowReference<Payload, Result>,
    ...options: RunArguments<NoInfer<Payload>>
  ): Promise<WorkflowResult<Result>>;
  run(workflow: string, options?: RunOptions): Promise<WorkflowResult>;
  /**
   * Dispatches an input to a session of an agent. Resolves once the input is on disk. Throws `unavailable` in an
   * application of `openAgents`, which stores nothing on disk.
   */
  readonly dispatch: ApplicationCalls["dispatch"];
  /** Calls the listener with the events of every agent and workflow. Returns a function that removes the listener. */
  onEvent(listener: EventListener): () => void;
  close(): Promise<void>;
}

export interface InitContext extends Partial<InstanceContext> {
  /** The agent's name in the key of its sessions; default: the name of its file, else the profile's, else "agent". */
  readonly name?: string;
}

/** Options with the workflow's payload, which is optional if all of its fields are. */
type RunArguments<Payload> =
  Record<never, never> extends Payload
    ? [options?: RunOptions<Payload>]
    : [options: RunOptions<Payload> & { readonly payload: Payload }];

export interface RunOptions<Payload = AgentContext["payload"]> {
  readonly payload?: Payload;
  /** Default: the application's. */
  readonly env?: AgentContext["env"];
  /** Stops the agents of the run, and the run with them. */
  readonly signal?: AbortSignal;
  /** The request that started the run. */
  readonly request?: Request;
  /** Receives all events of the run: its start, its log, the events of its agents, its end. */
  readonly onEvent?: EventListener;
}

export interface WorkflowResult<Result = unknown> {
  readonly run_id: string;
  readonly result: Result;
}

/** The agents and workflows of a project in one process: callers wait for the results of all calls. */
export type Agents = Omit<App, "dispatch">;

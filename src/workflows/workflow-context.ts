import type { AgentDefinition } from "../agents/create-agent.ts";
import type { Agent } from "../agents/harness.ts";

/** What a workflow's `run` is given. */
export interface WorkflowContext {
  /** The run. */
  readonly id: string;
  readonly payload: Readonly<Record<string, unknown>>;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The request that started the run, where there was one. */
  readonly req?: Request;
  readonly log: WorkflowLog;
  /** Fires when the run is cancelled. */
  readonly signal: AbortSignal;
  /** Brings an agent to life; it is closed with the run. */
  init(agent: AgentDefinition, options?: { readonly id?: string; readonly name?: string }): Promise<Agent>;
}

/** The name of the requirements for the workflow context. */
export type KitContext = WorkflowContext;

/** Says something in the run's log. `data` must be JSON-safe. */
export interface WorkflowLog {
  info(message: string, data?: unknown): void;
  warn(message: string, data?: unknown): void;
  error(message: string, data?: unknown): void;
}

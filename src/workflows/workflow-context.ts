import type { AgentDefinition, DispatchInput } from "../agents/define/create-agent.ts";
import type { Agent } from "../agents/harness.ts";
import type { RunContext } from "../engine/contract.ts";
import type { DispatchReceipt } from "../protocol/dispatch.ts";

/**
 * What a workflow's `run` is given.
 *
 * A run goes on after a crash or a long wait: the workflow's function is called again from its start, and
 * each `step`, `sleep`, `waitFor`, `now`, `uuid`, `dispatch` and agent operation that had ended gives what it
 * gave before. So they must come in the same order each time; what else the function does, it does again.
 */
export interface WorkflowContext<Payload = Readonly<Record<string, unknown>>>
  extends Pick<RunContext, "step" | "sleep" | "now" | "uuid" | "attempt"> {
  /** The run. */
  readonly id: string;
  /** As the workflow's `payload` schema gives it, where it has one. */
  readonly payload: Payload;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The request that started the run, where there was one; gone after a restart. */
  readonly req?: Request;
  readonly log: WorkflowLog;
  /** Fires when the run is cancelled, and when it is suspended. */
  readonly signal: AbortSignal;
  /**
   * Brings an agent to life; it is closed with the run. What its sessions do is recorded as steps: prompt,
   * stream, skill, task, shell and compact give their recorded results in a replay, and an operation that
   * a crash interrupted goes on.
   */
  init(agent: AgentDefinition, options?: { readonly id?: string; readonly name?: string }): Promise<Agent>;
  /** The payload of the next signal of that name, such as a human's answer; undefined after `timeoutMs`. */
  waitFor<Value = unknown>(
    name: string,
    options?: { readonly timeoutMs?: number },
  ): Promise<Value | undefined>;
  /** Gives an input to a session of an agent, without waiting for the answer; once, however often it is replayed. */
  dispatch(
    agent: string | AgentDefinition,
    input: Omit<DispatchInput, "idempotencyKey">,
  ): Promise<DispatchReceipt>;
}

/** The name of the requirements for the workflow context. */
export type KitContext<Payload = Readonly<Record<string, unknown>>> = WorkflowContext<Payload>;

/** Says something in the run's log. `data` must be JSON-safe. */
export interface WorkflowLog {
  info(message: string, data?: unknown): void;
  warn(message: string, data?: unknown): void;
  error(message: string, data?: unknown): void;
}

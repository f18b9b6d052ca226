import type { StandardSchemaV1 } from "@standard-schema/spec";
import type { AgentDefinition } from "../agents/define/create-agent.ts";
import type { Agent } from "../agents/harness.ts";
import type { RunContext } from "../engine/contract.ts";
import type { DispatchReceipt } from "../protocol/dispatch.ts";
import type {
  Dispatch,
  DispatchInput,
  RunCalls,
  RunHandle,
  StartRun,
  WorkflowReference,
} from "../protocol/run-calls.ts";

/** A schema of zod, valibot, … (Standard Schema), or a JSON Schema. */
export type WorkflowSchema<Input = unknown, Output = unknown> =
  | StandardSchemaV1<Input, Output>
  | { readonly [keyword: string]: unknown };

/**
 * The context that a workflow's `run` receives.
 *
 * A run goes on after a crash or a long wait: the workflow's function is called again from its start, and
 * each `step`, `sleep`, `waitFor`, `now`, `uuid`, `dispatch`, `startRun`, `run` and agent operation that had ended
 * gives what it gave before. So they must come in the same order each time; what else the function does, it does again.
 */
export interface WorkflowContext<Payload = Readonly<Record<string, unknown>>>
  extends Pick<RunContext, "step" | "sleep" | "now" | "uuid" | "attempt" | "patched">,
    RunCalls {
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
  /**
   * The payload of the next signal of that name, such as a human's answer; undefined after `timeoutMs`. With a `schema`,
   * the value is typed and checked: a signal that does not fit is refused with `invalid_request`, and the run keeps
   * waiting. One that came before the wait began, or whose sender could not be answered, is passed over with a warning in
   * the run's log.
   *
   * @example
   * import { defineWorkflow } from "kit";
   * import { z } from "zod";
   *
   * export default defineWorkflow({
   *   async run(ctx) {
   *     const schema = z.object({ approved: z.boolean() });
   *     const answer = await ctx.waitFor("approval", { schema, timeoutMs: 86_400_000 });
   *     return answer?.approved ?? false;
   *   },
   * });
   */
  waitFor: WaitFor;
  /** Starts a run that is cancelled with this one, once, however often it is replayed. */
  readonly startRun: StartRun;
  /** Starts a run and waits for its result: `startRun`, then `result` of its handle. */
  run<Input, Result>(workflow: WorkflowReference<Input, Result>, payload: NoInfer<Input>): Promise<Result>;
  run(workflow: string, payload?: Readonly<Record<string, unknown>>): Promise<unknown>;
  /** Returns a handle for a run. The journal records the calls of the handle, too. */
  getRun(runId: string): RunHandle;
  /** Gives an input to a session of an agent, without waiting for the answer; once, however often it is replayed. */
  dispatch(
    agent: Parameters<Dispatch>[0],
    input: Omit<DispatchInput, "idempotencyKey">,
  ): Promise<DispatchReceipt>;
}

export interface WaitFor {
  <Value>(
    name: string,
    options: { readonly schema: SchemaOf<Value>; readonly timeoutMs?: undefined },
  ): Promise<Value>;
  <Value = unknown>(
    name: string,
    options?: { readonly schema?: SchemaOf<Value> | undefined; readonly timeoutMs?: number | undefined },
  ): Promise<Value | undefined>;
}

type SchemaOf<Value> = WorkflowSchema<unknown, Value>;

/** The name of the requirements for the workflow context. */
export type KitContext<Payload = Readonly<Record<string, unknown>>> = WorkflowContext<Payload>;

/** Says something in the run's log. `data` must be JSON-safe. */
export interface WorkflowLog {
  info(message: string, data?: unknown): void;
  warn(message: string, data?: unknown): void;
  error(message: string, data?: unknown): void;
}

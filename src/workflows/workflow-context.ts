import type { StandardSchemaV1 } from "@standard-schema/spec";
import type { AgentDefinition } from "../agents/define/create-agent.ts";
import type { Agent } from "../agents/harness.ts";
import type { RunContext } from "../engine/contract.ts";
import type { DispatchReceipt } from "../protocol/dispatch.ts";
import type {
  Dispatch,
  DispatchInput,
  PayloadArguments,
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
 * To resume a run after a crash or a long wait, kit calls the workflow's function again from its start: each `step`,
 * `sleep`, `waitFor`, `now`, `uuid`, `dispatch`, `startRun`, `run` and agent operation that had ended returns its recorded
 * result. The function must call them in the same order each time; all other code runs again.
 */
export interface WorkflowContext<Payload = Readonly<Record<string, unknown>>>
  extends Pick<RunContext, "step" | "sleep" | "now" | "uuid" | "attempt" | "patched">,
    RunCalls {
  /** The id of the run. */
  readonly id: string;
  /** The payload; the result of the workflow's `payload` schema if it has one. */
  readonly payload: Payload;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The HTTP request that started the run, if there was one; missing after a restart. */
  readonly req?: Request;
  readonly log: WorkflowLog;
  /** Fires when the run is cancelled, and when it is suspended. */
  readonly signal: AbortSignal;
  /**
   * Creates an instance of an agent, which is closed with the run. The operations of its sessions are recorded as steps:
   * prompt, stream, skill, task, shell and compact return their recorded results in a replay, and an operation that a
   * crash interrupted resumes.
   */
  init<Output = unknown>(
    agent: AgentDefinition<Output>,
    options?: { readonly id?: string; readonly name?: string },
  ): Promise<Agent<Output>>;
  /**
   * Returns the payload of the next signal of that name, such as a person's answer; `undefined` after `timeoutMs`. With a
   * `schema`, the value is typed and validated: kit refuses an invalid signal with `invalid_request`, and the run keeps
   * waiting. An invalid signal from before the wait, or with an unreachable sender, is skipped with a warning in the run's
   * log.
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
  /** Starts a run that is cancelled with this one. A replay does not start it again. */
  readonly startRun: StartRun;
  /** Starts a run and waits for its result: `startRun`, then `result` of its handle. */
  run<Input, Result>(
    workflow: WorkflowReference<Input, Result>,
    ...given: PayloadArguments<NoInfer<Input>, never>
  ): Promise<Result>;
  run(workflow: string, payload?: Readonly<Record<string, unknown>>): Promise<unknown>;
  /** Returns a handle for a run. The journal records the calls of the handle, too. */
  getRun(runId: string): RunHandle;
  /** Dispatches an input to a session of an agent, without waiting for the answer. A replay does not dispatch it again. */
  dispatch(
    agent: Parameters<Dispatch>[0],
    input: Omit<DispatchInput, "idempotencyKey">,
  ): Promise<DispatchReceipt>;
}

export interface WaitFor {
  <Value>(
    name: string,
    options: { readonly schema: SchemaOf<Value>; readonly timeoutMs?: undefined; readonly message?: string },
  ): Promise<Value>;
  <Value = unknown>(
    name: string,
    options?: {
      readonly schema?: SchemaOf<Value> | undefined;
      readonly timeoutMs?: number | undefined;
      /** A text for the person who sends the signal: the list of what waits has it. */
      readonly message?: string | undefined;
    },
  ): Promise<Value | undefined>;
}

type SchemaOf<Value> = WorkflowSchema<unknown, Value>;

/** The name that kit's requirements give the workflow context. */
export type KitContext<Payload = Readonly<Record<string, unknown>>> = WorkflowContext<Payload>;

/** Writes to the run's log. `data` must be JSON-safe. */
export interface WorkflowLog {
  info(message: string, data?: unknown): void;
  warn(message: string, data?: unknown): void;
  error(message: string, data?: unknown): void;
}

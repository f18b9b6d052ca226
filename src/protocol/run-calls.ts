import type { DispatchReceipt } from "./dispatch.ts";
import type { JoinMode, PromptSettings } from "./prompt.ts";

export interface DispatchInput extends PromptSettings {
  /** The agent's instance. */
  readonly id: string;
  /** Default "default". */
  readonly session?: string;
  /** A string is the message; other JSON is sent as its JSON text. */
  readonly input: unknown;
  /**
   * "next_turn": the message joins the operation that runs in the session, and its next model call reads it. The dispatch then ends
   * with the result `{ joined: operation_id }`. If none runs, it is an ordinary dispatch. Only with `client_id`, `images` and `files`.
   */
  readonly join?: JoinMode | undefined;
  /** Inputs of an instance with the same key are processed once. */
  readonly idempotencyKey?: string | undefined;
}

/**
 * Enqueues an input for a session of an agent, named by the name or the default export of the agent's file. Resolves
 * once the application has accepted the input. Throws `agent_not_found`.
 */
export type Dispatch = (
  agent: string | { readonly kind: "kit.agent" },
  input: DispatchInput,
) => Promise<DispatchReceipt>;

/**
 * A workflow from `defineWorkflow`, for callers that start it. `Payload` is the input type of the workflow's payload
 * schema.
 */
export interface WorkflowReference<Payload = never, Result = unknown> {
  readonly kind: "kit.workflow";
  /** For the type checker only: never set. */
  readonly "~types"?: { readonly payload: (payload: Payload) => void; readonly result: Result } | undefined;
}

/** A started run. It continues if its caller does not wait for it. */
export interface RunHandle<Result = unknown> {
  readonly runId: string;
  /**
   * Resolves with the result of the run once it has ended. Throws a `KitError` with the code of a failed run and its id
   * in `meta.run_id`; `aborted` for a cancelled run.
   */
  result(options?: { readonly signal?: AbortSignal | undefined }): Promise<Result>;
  /** Sends a value to the run's `waitFor` of that name. */
  signal(name: string, payload?: unknown): Promise<void>;
  /** Cancels the run. Returns false if it had already ended. */
  cancel(): Promise<boolean>;
}

export interface StartRunOptions {
  /** Calls with the same key start only one run of the workflow. */
  readonly idempotencyKey?: string | undefined;
}

/** A payload, optional if all of its fields are, and options. */
export type PayloadArguments<Payload, Options> =
  Record<never, never> extends Payload
    ? [payload?: Payload, options?: Options]
    : [payload: Payload, options?: Options];

/** Starts a run; resolves once the application has accepted it. Throws `workflow_not_found`, `invalid_request`. */
export interface StartRun {
  <Payload, Result>(
    workflow: WorkflowReference<Payload, Result>,
    ...args: PayloadArguments<NoInfer<Payload>, StartRunOptions>
  ): Promise<RunHandle<Result>>;
  (
    workflow: string,
    payload?: Readonly<Record<string, unknown>>,
    options?: StartRunOptions,
  ): Promise<RunHandle>;
}

/** Starts and finds workflow runs. Agents, tools, webhooks, workflows and programs have these calls. */
export interface RunCalls {
  readonly startRun: StartRun;
  /** Returns a handle for a run id; does not check that the run exists. */
  getRun(runId: string): RunHandle;
}

/** The calls that start work in an application and find it again. */
export interface ApplicationCalls extends RunCalls {
  readonly dispatch: Dispatch;
}

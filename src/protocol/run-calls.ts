import type { DispatchReceipt } from "./dispatch.ts";
import type { PromptChoices } from "./prompt.ts";

export interface DispatchInput extends PromptChoices {
  /** The agent's instance. */
  readonly id: string;
  /** Default "default". */
  readonly session?: string;
  /** The message; other JSON becomes its text. */
  readonly input: unknown;
  /** Inputs of an instance with the same key are processed once. */
  readonly idempotencyKey?: string | undefined;
}

/**
 * Enqueues an input for a session of an agent of a file, which is given by its name or by the file's default export;
 * resolves once the application has accepted it. Throws `agent_not_found`.
 */
export type Dispatch = (
  agent: string | { readonly kind: "kit.agent" },
  input: DispatchInput,
) => Promise<DispatchReceipt>;

/**
 * A workflow as those who start it know it: by what it takes and gives. `defineWorkflow` makes one.
 * `Payload` is what callers give, before the workflow's schema has read it.
 */
export interface WorkflowReference<Payload = never, Result = unknown> {
  readonly kind: "kit.workflow";
  /** For the type checker alone: never there. */
  readonly "~types"?: { readonly payload: (payload: Payload) => void; readonly result: Result } | undefined;
}

/** A run that was started. It goes on when its starter does not wait for it. */
export interface RunHandle<Result = unknown> {
  readonly runId: string;
  /**
   * Resolves with the result of the run once it has ended. Throws a `KitError` of the code with which it failed, whose
   * `meta.run_id` names it; `aborted` for a run that was cancelled.
   */
  result(options?: { readonly signal?: AbortSignal | undefined }): Promise<Result>;
  /** Hands a value to the run's `waitFor` of that name; see `RunCalls.signalRun`. */
  signal(name: string, payload?: unknown): Promise<void>;
  /** False when it had ended. */
  cancel(): Promise<boolean>;
}

export interface StartRunOptions {
  /** The same key within a workflow starts one run. */
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
    ...given: PayloadArguments<NoInfer<Payload>, StartRunOptions>
  ): Promise<RunHandle<Result>>;
  (
    workflow: string,
    payload?: Readonly<Record<string, unknown>>,
    options?: StartRunOptions,
  ): Promise<RunHandle>;
}

/** Starts and finds workflow runs: in agents, tools, webhooks, workflows and programs. */
export interface RunCalls {
  readonly startRun: StartRun;
  /** A run of which only the id is known. */
  getRun(runId: string): RunHandle;
}

/** The calls into an application: what gives it work, and what finds the work again. */
export interface ApplicationCalls extends RunCalls {
  readonly dispatch: Dispatch;
}

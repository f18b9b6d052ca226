import type { Approvals } from "../../agents/approvals/approvals.ts";
import type { AgentContext } from "../../agents/create-agent.ts";
import type { KitError } from "../../base/kit-error.ts";
import type { RunContext, RunRequest } from "../../engine/contract.ts";
import type { DispatchReceipt } from "../../protocol/dispatch.ts";
import type { ErrorCause } from "../../protocol/error-cause.ts";
import type { KitEvent } from "../../protocol/event.ts";
import type { PromptChoices } from "../../protocol/prompt.ts";
import type { SessionKey, TouchedSessionPage } from "../../protocol/session-entry.ts";
import type { Tracing } from "../../protocol/tracing.ts";
import type { LoadedWorkflow } from "../sources/workflow-source.ts";
import type { App, RunOptions, WorkflowResult } from "./app.ts";

/** An application as the service sees it whose work it does. */
export interface HostedApp extends App {
  /** Where tool calls wait for somebody's word; without it they are denied. */
  readonly approvals?: Approvals;
  /** From now on the application's events, dispatches and runs go through this service. */
  host(service: HostService): void;
  /** Throws `agent_not_found` for a name that no agent has, `agent_not_found` with a hint for a broken file. */
  checkAgent(name: string): void;
  /** Throws `workflow_not_found`, in the same way. */
  workflow(name: string): LoadedWorkflow;
  /** Throws `invalid_request` with `meta.issues` for a payload that the workflow's schema refuses. */
  checkPayload(workflow: LoadedWorkflow, payload: unknown): Promise<unknown>;
  /** Does the work of a run, or what is left of it. */
  perform(work: RunWork): Promise<unknown>;
  /** The tracing of the first observer that has one; undefined where no observer traces. */
  readonly tracing: Tracing | undefined;
  /** Why something failed, as records keep it: without secrets and paths of the machine. */
  causeOf(error: unknown): ErrorCause | undefined;
  /** Has every instance come to life anew when it is next asked for: another process may have worked for it. */
  renewInstances(): void;
  /** `SessionStore.problem` of the store that agents share. */
  storeProblem(): KitError | undefined;
  /** Lets an instance go after what it does has ended; it comes to life again when it is asked for. */
  release(name: string, id: string): Promise<void>;
  /**
   * A page of all sessions in the store that agents share. Throws `unavailable` for a store of the project's own that cannot
   * list them.
   */
  listSessions(page: {
    readonly limit: number;
    readonly cursor?: string | undefined;
  }): Promise<TouchedSessionPage>;
  /**
   * Removes a session that nobody has touched since `before` (ms since 1970), with those below it and its workspace, unless its
   * instance is at work; whether it did. `onEmpty` is called where it was the last of its instance, before that may come
   * to life again.
   */
  forget(key: SessionKey, before: number, onEmpty: () => Promise<void>): Promise<boolean>;
}

/** What a service does for its application. */
export interface HostService {
  /** The index of the newest event of an instance. */
  lastEvent(agent: string, instanceId: string): Promise<number>;
  /** Hears the events of instances, in their order. */
  record(event: KitEvent): void;
  dispatch(
    target: SessionKey,
    input: unknown,
    options: PromptChoices & { readonly idempotencyKey?: string },
  ): Promise<DispatchReceipt>;
  run(workflow: string, options: RunOptions): Promise<WorkflowResult>;
  /** Waits for somebody, in an agent's tool say: what other work there is may go on in its place. */
  whileAside<Value>(
    ask: (signal: AbortSignal) => Promise<Value>,
    wait: {
      /** The same when it is waited for again. */
      readonly key: string;
      readonly signal: AbortSignal;
      /** Whether the operation does nothing else meanwhile, and could go on from its log. */
      readonly mayRest?: (() => boolean) | undefined;
    },
  ): Promise<Value>;
}

export interface RunWork {
  readonly context: RunContext;
  readonly request: RunRequest;
  /** Whether its stream has the `run_start`: a killed process loses the events that it has not written. */
  readonly hasStartEvent: boolean;
  readonly local?: LocalRun | undefined;
}

/** What a run has of the process that started it; a run that goes on elsewhere does without. */
export interface LocalRun {
  readonly env?: AgentContext["env"];
  readonly request?: Request;
  /** Told why the run failed, which says more than its record. */
  onFailure?(error: KitError): void;
}

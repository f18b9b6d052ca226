import type { Approvals } from "../../agents/approvals/approvals.ts";
import type { KitError } from "../../base/kit-error.ts";
import type { Engine, RunReceipt } from "../../engine/contract.ts";
import type { DispatchReceipt } from "../../protocol/dispatch.ts";
import type { KitEvent } from "../../protocol/event.ts";
import type { Message } from "../../protocol/message.ts";
import type { PromptChoices, PromptReply, PromptRequest } from "../../protocol/prompt.ts";
import type { ApplicationCalls } from "../../protocol/run-calls.ts";
import type { SessionKey } from "../../protocol/session-entry.ts";
import type {
  ForkBody,
  Forked,
  OperationEvents,
  OperationPage,
  OperationsQuery,
  TurnDetail,
  TurnQuery,
} from "../../protocol/trace.ts";
import type { WorkCause } from "../../protocol/work-cause.ts";
import type { ServiceCluster } from "../cluster/service-cluster.ts";
import type { AllowRuleFile } from "../config/allow-rule-file.ts";
import type { App } from "./app.ts";
import type { LogPage, LogPageQuery } from "./log-page.ts";
import type { Retention } from "./retention.ts";
import type { OperationEventsQuery } from "./trace.ts";

export interface PromptCall {
  /** Without an idempotency key, the prompt is aborted when this fires. */
  readonly signal?: AbortSignal | undefined;
  readonly idempotencyKey?: string | undefined;
  /** The caller's principal: principals have equal shares of the work. Default: the instance stands for one. */
  readonly principal?: string | undefined;
  /** Called when the turn of the prompt in the line of its session has come; not with an idempotency key. */
  readonly onStart?: (() => void) | undefined;
  /** Receives the events of this prompt as they are made, tasks included. */
  readonly onEvent?: ((event: KitEvent) => void) | undefined;
}

export interface InstanceTarget {
  readonly agent: string;
  readonly instance_id: string;
}

/** The sender of work, whose share of the work it is, and what began it, as its record says. */
export interface WorkSender {
  readonly principal?: string | undefined;
  readonly cause?: WorkCause | undefined;
}

/**
 * An application at work: its agents and workflows behind a durable engine. All that enters, from HTTP,
 * a webhook, a workflow or the command line, enters here.
 *
 * Names are checked here (`agent_not_found`, `workflow_not_found`), ids and shapes by the caller.
 */
export interface Service {
  readonly app: App;
  /** Runs, dispatches, schedules and their events are asked for here. */
  readonly engine: Engine;
  /** Tool calls that wait for a decision. */
  readonly approvals: Approvals;
  /** Writes rules that let calls run without an approval of the configuration. */
  allowRules(): Promise<AllowRuleFile>;
  /** All sessions, and the removal of old ones. */
  readonly sessions: Retention;
  /** The problem that keeps the service from working until an operator repairs it; `/health` says so. */
  problem(): KitError | undefined;
  prompt(target: SessionKey, request: PromptRequest, call?: PromptCall): Promise<PromptReply>;
  /** Resolves once the input is on disk. A text is the message; other JSON is given as its text. */
  dispatch(
    target: SessionKey,
    input: unknown,
    options?: PromptChoices & Pick<PromptCall, "idempotencyKey" | "principal">,
  ): Promise<DispatchReceipt>;
  /** Throws `not_found` for an instance that has no history. */
  history(target: SessionKey): Promise<readonly Message[]>;
  /** A page of all that a session's log holds. Throws `not_found` for a session that has none. */
  historyPage(target: SessionKey, page: LogPageQuery): Promise<LogPage>;
  /** The operations of an instance, newest first. */
  operations(target: InstanceTarget, query?: OperationsQuery): Promise<OperationPage>;
  /** A page of the events of an operation and of its tasks. Throws `not_found` for one that has none. */
  operationEvents(
    target: InstanceTarget & { readonly operation_id: string },
    query?: OperationEventsQuery,
  ): Promise<OperationEvents>;
  /** The request and the answer of a turn. Throws `not_found` for one that is not, or no longer, known. */
  turn(target: InstanceTarget & { readonly turn_id: string }, query?: TurnQuery): Promise<TurnDetail>;
  /**
   * Does a turn again in a new session of the same instance, with other choices. Resolves once that is on disk. Throws `not_found` for a turn
   * that is not known, `conflict` for a session that exists, `invalid_request` for a turn that cannot be forked and rules that it was not told.
   */
  fork(
    target: InstanceTarget & { readonly turn_id: string },
    choices?: ForkBody,
    options?: { readonly principal?: string | undefined },
  ): Promise<Omit<Forked, "status">>;
  /** Whether an input of each of these sessions is worked on, on any machine. */
  working(sessions: readonly SessionKey[]): Promise<readonly boolean[]>;
  /** Aborts what runs in the session, or in all sessions of the instance. */
  abort(target: InstanceTarget & { readonly session?: string | undefined }): Promise<boolean>;
  /** Aborts, then deletes sessions, workspaces and events. False for an instance that has nothing. */
  remove(target: InstanceTarget): Promise<boolean>;
  /** The instance's events after an index, then each new one; of one session where it is named. */
  events(
    target: InstanceTarget,
    options: {
      readonly after?: number | undefined;
      readonly session?: string | undefined;
      readonly signal?: AbortSignal;
    },
  ): AsyncIterable<KitEvent>;
  /** Throws `invalid_request` when the payload does not fit the workflow's schema. */
  startRun(
    workflow: string,
    payload: Readonly<Record<string, unknown>>,
    options?: {
      readonly idempotencyKey?: string | undefined;
      readonly principal?: string | undefined;
      readonly request?: Request;
    },
  ): Promise<RunReceipt>;
  /** Gives work to the service, and finds it again, as agents, tools and webhooks do: for a sender. */
  callsFor(sender?: WorkSender): ApplicationCalls;
  /** Reads the source files again, as `App.reload` does, and puts the schedules that they declare by now. */
  reload(): Promise<void>;
  /**
   * Says that this process is about to end: `isLeaving` is true from now on, and where several machines share the work, the others
   * take over what is not at work here. It goes on accepting and answering until `drain`.
   */
  leave(): Promise<void>;
  readonly isLeaving: boolean;
  /** The other machines that share the work; absent where one process does all of it. */
  readonly nodes?: ServiceCluster;
  /** Accepts nothing more, lets work end, and closes the engine. The agents stay open: see `close`. */
  drain(options?: { readonly timeoutMs?: number }): Promise<void>;
}

/** A service that its opener closes. */
export interface ProjectService extends Service {
  /** Drains for at most `timeoutMs` (default 30,000), then closes the agents and what was opened for them. */
  close(options?: { readonly timeoutMs?: number }): Promise<void>;
}

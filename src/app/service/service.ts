import type { Approvals } from "../../agents/approvals/approvals.ts";
import type { KitError } from "../../base/kit-error.ts";
import type { Engine, RunReceipt } from "../../engine/contract.ts";
import type { BrowserLogins } from "../../mcp/auth/browser-logins.ts";
import type { DispatchReceipt } from "../../protocol/dispatch.ts";
import type { KitEvent } from "../../protocol/event.ts";
import type { GuidelineUsage } from "../../protocol/guideline-usage.ts";
import type { Message } from "../../protocol/message.ts";
import type { PromptReply, PromptRequest, PromptSettings } from "../../protocol/prompt.ts";
import type { ApplicationCalls, DispatchInput } from "../../protocol/run-calls.ts";
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
import type { AbortTarget } from "../cluster/node-calls.ts";
import type { ServiceCluster } from "../cluster/service-cluster.ts";
import type { AllowRuleFile } from "../config/allow-rule-file.ts";
import type { App } from "./app.ts";
import type { FollowOptions } from "./follow-operation.ts";
import type { UsageSelection } from "./guideline-usage.ts";
import type { InboxListing, InboxPage } from "./inbox.ts";
import type { LogPage, LogPageQuery } from "./log-page.ts";
import type { Retention } from "./retention.ts";
import type { OperationEventsQuery } from "./trace.ts";

export interface PromptCall {
  /** Aborts a prompt without an idempotency key; with one, only stops waiting for its reply. */
  readonly signal?: AbortSignal | undefined;
  readonly idempotencyKey?: string | undefined;
  /** When the request came, in ms by `performance.now()`; default: now. It matters with a key only. */
  readonly receivedAt?: number | undefined;
  /** The caller's principal. Principals get equal shares of the work; without one, the instance counts as a principal. */
  readonly principal?: string | undefined;
  /** Called when the engine starts the prompt; not called with an idempotency key. */
  readonly onStart?: (() => void) | undefined;
  /** Receives the events of this prompt and its tasks as they are emitted. */
  readonly onEvent?: ((event: KitEvent) => void) | undefined;
  /** With an idempotency key: the index after which `onEvent` receives the events; default: the newest event's. */
  readonly after?: number | undefined;
}

export interface InstanceTarget {
  readonly agent: string;
  readonly instance_id: string;
}

/** The sender of work: the principal whose share it uses, and the cause that its record keeps. */
export interface WorkSender {
  readonly principal?: string | undefined;
  readonly cause?: WorkCause | undefined;
}

/**
 * The agents and workflows of an application behind a durable engine. HTTP routes, webhooks, workflows and the command
 * line call it.
 *
 * It checks names (`agent_not_found`, `workflow_not_found`); the caller checks ids and shapes.
 */
export interface Service {
  readonly app: App;
  /** Reads and changes runs, dispatches, schedules and their events. */
  readonly engine: Engine;
  /** Tool calls that wait for a decision. */
  readonly approvals: Approvals;
  /** Returns the writer of rules that let calls run without an approval of the configuration. */
  allowRules(): Promise<AllowRuleFile>;
  /** All sessions, and the removal of old ones. */
  readonly sessions: Retention;
  /** Returns a problem that stops the service until an operator fixes it; `/health` reports it. */
  problem(): KitError | undefined;
  prompt(target: SessionKey, request: PromptRequest, call?: PromptCall): Promise<PromptReply>;
  /** Dispatches an input; resolves once it is on disk. A text is the message; other JSON becomes a text. */
  dispatch(
    target: SessionKey,
    input: unknown,
    options?: Pick<DispatchInput, "join"> &
      PromptSettings &
      Pick<PromptCall, "idempotencyKey" | "principal" | "receivedAt">,
  ): Promise<DispatchReceipt & { readonly operation_id: string }>;
  /** Throws `not_found` for an instance that has no history. */
  history(target: SessionKey): Promise<readonly Message[]>;
  /** Returns a page of the messages in a session's log. Throws `not_found` for a session without a log. */
  historyPage(target: SessionKey, page: LogPageQuery): Promise<LogPage>;
  /** Returns the operations of an instance, newest first. */
  operations(target: InstanceTarget, query?: OperationsQuery): Promise<OperationPage>;
  /** Returns a page of the events of an operation and its tasks. Throws `not_found` for an operation without events. */
  operationEvents(
    target: InstanceTarget & { readonly operation_id: string },
    query?: OperationEventsQuery,
  ): Promise<OperationEvents>;
  /**
   * Returns the events of an operation and its tasks, from the first one to the end of the operation; one that is queued is
   * waited for. Throws `not_found`.
   */
  followOperation(
    target: InstanceTarget & { readonly operation_id: string },
    options: FollowOptions,
  ): Promise<AsyncIterable<KitEvent>>;
  /** Returns the request and the answer of a turn. Throws `not_found` for an unknown or deleted turn. */
  turn(target: InstanceTarget & { readonly turn_id: string }, query?: TurnQuery): Promise<TurnDetail>;
  /**
   * Repeats a turn in a new session of the same instance, with other choices. Resolves once the input is on disk.
   * Throws `not_found` for an unknown turn, `conflict` for a session that exists, and `invalid_request` for a turn that
   * cannot be forked or a rule that was not in its prompt.
   */
  fork(
    target: InstanceTarget & { readonly turn_id: string },
    choices?: ForkBody,
    options?: { readonly principal?: string | undefined },
  ): Promise<Omit<Forked, "status">>;
  /** Returns how often the turns of sessions were shown the rules of the project. Leaves out agents with their own store. */
  guidelineUsage(selection?: UsageSelection): Promise<GuidelineUsage>;
  /** Returns the sessions of which an input runs on any machine. */
  atWork(): Promise<readonly SessionKey[]>;
  /** Returns the sessions in which a call waits for a decision; with `among`, only those that it names. */
  waitingSessions(among?: readonly SessionKey[]): Promise<readonly SessionKey[]>;
  /** Returns a page of what waits for a person, oldest first, and the number of all. */
  waiting(listing: InboxListing): Promise<InboxPage>;
  /** The logins of persons at MCP servers; absent if the configuration has none. */
  readonly logins?: BrowserLogins;
  /**
   * Aborts the running inputs of the session, or of all sessions of the instance; with `operation_id` only that operation, also
   * if it is still queued. Returns whether there was one.
   */
  abort(target: AbortTarget): Promise<boolean>;
  /** Aborts an instance and deletes its sessions, workspaces and events. Returns whether it had any. */
  remove(target: InstanceTarget): Promise<boolean>;
  /** Yields the instance's events after an index, then each new one; only those of `session` if it is set. */
  events(
    target: InstanceTarget,
    options: {
      readonly after?: number | undefined;
      /** The id of the stream that `after` belongs to; the events of another stream are not read. */
      readonly id?: string | undefined;
      readonly session?: string | undefined;
      readonly signal?: AbortSignal;
    },
  ): AsyncIterable<KitEvent>;
  /** Starts a run. Throws `invalid_request` if the payload does not match the workflow's schema. */
  startRun(
    workflow: string,
    payload: Readonly<Record<string, unknown>>,
    options?: Pick<PromptCall, "idempotencyKey" | "principal" | "receivedAt"> & {
      readonly request?: Request;
    },
  ): Promise<RunReceipt>;
  /** Returns the calls with which agents, tools and webhooks start and find work, in the name of a sender. */
  callsFor(sender?: WorkSender): ApplicationCalls;
  /** Reads the source files again, as `App.reload` does, and updates the schedules. */
  reload(): Promise<void>;
  /**
   * Announces that this process is about to end: sets `isLeaving`. In a cluster, the other nodes take over the work that
   * does not run here. The process continues to accept work and to answer until `drain`.
   */
  leave(): Promise<void>;
  readonly isLeaving: boolean;
  /** The other nodes of the cluster; absent if one process does all work. */
  readonly nodes?: ServiceCluster;
  /** Accepts no more work, waits for running work, and closes the engine. The agents stay open: see `close`. */
  drain(options?: { readonly timeoutMs?: number }): Promise<void>;
}

/** A service that its opener closes. */
export interface ProjectService extends Service {
  /** Drains for at most `timeoutMs` (default 30,000), then closes the agents and everything opened for them. */
  close(options?: { readonly timeoutMs?: number }): Promise<void>;
}

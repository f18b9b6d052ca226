import type { LanguageModelV4FunctionTool } from "@ai-sdk/provider";
import type { AgentBackend, BackendChoice } from "../backends/contract.ts";
import type { Clock } from "../base/clock.ts";
import type { KitError } from "../base/kit-error.ts";
import type { ModelResolver } from "../models/contract.ts";
import type { ErrorCause } from "../protocol/error-cause.ts";
import type { EventBody, OperationKind } from "../protocol/event.ts";
import type { Message } from "../protocol/message.ts";
import type { ForkPlace, PromptRequest } from "../protocol/prompt.ts";
import type { ApplicationCalls } from "../protocol/run-calls.ts";
import type { SessionKey } from "../protocol/session-entry.ts";
import type { PythonRunner, PythonSession } from "../python/contract.ts";
import type { IsolationOptions, Sandbox, SandboxFactory } from "../sandboxes/contract.ts";
import type { MaybePromise, SessionStore } from "../stores/contract.ts";
import type { Approvals } from "./approvals/approvals.ts";
import type { AgentProfile } from "./define/agent-profile.ts";
import type { ProfileModel } from "./define/profile-settings.ts";
import type { AnyTool, ToolLookup, ValidateJson } from "./define/tool.ts";
import type { EventHub, EventObservers, EventScope, OperationPart, OperationTracing } from "./events.ts";
import type { OperationLog } from "./log/operation-log.ts";
import type { PastOperation } from "./log/past-operation.ts";
import type { SessionState } from "./log/session-state.ts";
import type { NextAttempt, Suspension } from "./log/suspension.ts";
import type { UnsavedWork } from "./log/unsaved-work.ts";
import type { ProjectContext, Repository, SourceGuard, Workplace } from "./project-context.ts";
import type { SessionPrompt } from "./prompt/system-prompt.ts";
import type { SecretMask } from "./secrets.ts";
import type { TaskCall } from "./tools/built-in-tools.ts";
import type { Spending } from "./turn/budget.ts";
import type { ModelRetryPolicy } from "./turn/retry.ts";

/** The services that an agent runs on; the composition root provides them. */
export interface AgentRuntime {
  readonly store: SessionStore;
  /** Makes the store of an agent refuse stale writers if several machines share the work. Throws for a store that cannot. */
  readonly guardStore?: ((agentStore: SessionStore) => SessionStore) | undefined;
  readonly resolveModel: ModelResolver;
  /** Resolves the chosen backend; undefined for `typed`, kit's own turn loop. */
  readonly resolveBackend: (choice: BackendChoice) => MaybePromise<AgentBackend | undefined>;
  /** Used where the profile names no model. */
  readonly defaultModel: ProfileModel;
  /** Used where the profile names no sandbox. */
  readonly sandbox: SandboxFactory;
  /** Passed to sandboxes: how the project's configuration isolates commands. */
  readonly isolation?: IsolationOptions;
  /** Passed to sandboxes: the project's folder on this machine. */
  readonly projectRoot?: string | undefined;
  /** Keeps files that models write apart from files that the process loads; without it, neither is tracked. */
  readonly sources?: SourceGuard;
  readonly clock: Clock;
  readonly retry: ModelRetryPolicy;
  readonly modelIdleTimeoutMs: number;
  readonly validateJson: ValidateJson;
  /** Specs, guidelines and instructions of the repository; none for an agent without a project. */
  readonly project?: ProjectContext;
  /** Tools of other systems, listed again for every operation; the agent's own tool of the same name wins. */
  readonly toolSources?: readonly ToolSource[];
  /** Python for sessions; without it, they have none. */
  readonly python?: PythonRunner;
  /** Where calls that need approval wait for it; without it, they are denied at once. */
  readonly approvals?: Approvals;
  readonly env: Readonly<Record<string, string | undefined>>;
  /**
   * The calls of agents and their tools into the application; without it, they fail with `unavailable`. Runs that a run's
   * agent starts have that run as their parent. Records of work that an operation's tools start name the operation.
   */
  readonly callsOf?: ((runId: string | undefined, operation?: OperationName) => ApplicationCalls) | undefined;
  /** Returns the principal of the running code. */
  readonly principal?: (() => string | undefined) | undefined;
  /** The inputs that wait for a session and may join its running operation; without it, none does. */
  readonly joins?: WaitingInputs | undefined;
  /** Removes the application's own keys from prompts, answers, events and logs. */
  readonly mask?: SecretMask;
  /** The cause that error events report; without it, they report only what any reader may see. */
  readonly causeOf?:
    | ((error: unknown, mask?: (text: string) => string) => ErrorCause | undefined)
    | undefined;
  /** Whether commands get the trace context of their call as environment variables. */
  readonly tracesCommands?: boolean;
  /** The run step or trace that the calling code belongs to. */
  readonly origins?: Origins;
  /** Listeners for the events of every agent. */
  readonly observers: EventObservers;
  readonly onListenerError?: (error: unknown) => void;
  readonly maxWaitingOperations: number;
  /** Idle sessions whose history stays in memory; the history of other sessions is read again on use. */
  readonly maxIdleSessions: number;
}

/** Accepted inputs that wait for a session and are to join its operation, of the principal of the running code. */
export interface WaitingInputs {
  /** Their ids, in their order. Called before each model call, so it answers from memory. */
  ids(session: SessionKey): readonly string[];
  /** Returns an input that is to join the running operation; undefined for one that has ended. */
  read(id: string): Promise<JoiningInput | undefined>;
}

export interface JoiningInput extends Pick<PromptRequest, "message" | "client_id" | "images" | "files"> {
  /** The operation that the input would have had. */
  readonly operation_id: string;
}

/** The run step or trace in which the caller started an operation; its `operation_start` event carries it. */
export type OperationOrigin = Pick<
  Extract<EventBody, { type: "operation_start" }>,
  "step" | "step_id" | "traceparent" | "tracestate"
>;

/** Tracks the origin of work across asynchronous calls: an `AsyncLocalStorage`. */
export interface Origins {
  /** The origin of the calling code. */
  getStore(): OperationOrigin | undefined;
  /** Runs `work` with this origin instead of the surrounding one. */
  run<Value>(origin: OperationOrigin, work: () => Value): Value;
}

/** The internals of an agent that its sessions use. */
export interface Harness {
  readonly name: string;
  /** The file that describes it, relative to the project's root. */
  readonly file?: string | undefined;
  readonly id: string;
  readonly run_id?: string | undefined;
  readonly profile: AgentProfile;
  readonly runtime: AgentRuntime;
  readonly store: SessionStore;
  /** Finished work that the store could not take. */
  readonly unsaved: UnsavedWork;
  readonly events: EventHub;
  /** Runs a task below an operation; the `task` tool calls it. */
  startTask(
    operation: Operation,
    task: {
      readonly text: string;
      /** Identifies the task within its operation: the same key resumes the same task. */
      readonly key: string;
      readonly call?: TaskCall;
      readonly options: { readonly agent?: string; readonly role?: string; readonly cwd?: string };
    },
  ): Promise<{ readonly text: string }>;
  /** The live session of that name, created if there is none. */
  liveSession(name: string, options?: LiveSessionOptions): LiveSession;
  /** Evicts the session that has been idle longest. */
  readonly liveSessions: {
    markBusy(live: LiveSession): void;
    markIdle(live: LiveSession): void;
  };
  /** Forgets a session that gets no more calls, such as a task's. */
  drop(live: LiveSession): void;
  /** The Python of a session, with its variables. Throws `unavailable` where the runtime has none. */
  python(name: string): PythonSession;
}

/**
 * Lists the tools that are available now, such as those of MCP servers. The same tool is the same object
 * each time. The source reports unavailable servers with `emit` and rejects only when the signal fires.
 */
export interface ToolSource {
  (operation: Pick<Operation, "signal" | "emit">): Promise<readonly AnyTool[]>;
  /** Explains to the model why a tool is missing; undefined if the source does not know the name. */
  readonly whyMissing?: (name: string) => string | undefined;
}

/** The tools of a session and their schemas for providers. */
export interface Toolkit {
  readonly tools: ToolLookup;
  readonly schemas: readonly LanguageModelV4FunctionTool[];
}

/** An operation as records name it. */
export interface OperationName extends SessionKey {
  readonly operation_id: string;
}

/** Reports the errors of an operation, each once, and says whether its engine tries the operation again. */
export interface OperationFailures {
  /** The cause that events report. */
  causeOf(error: KitError): ErrorCause | undefined;
  /**
   * Emits the `error` event of an error that ends the operation, unless it was reported before, by the turn that failed.
   * Returns the engine's next attempt; undefined if the operation has failed for good.
   */
  report(error: unknown, turnId?: string): Promise<NextAttempt | undefined>;
}

/** One call on a session while it runs. */
export interface Operation {
  readonly id: string;
  /** Secrets granted to this operation, by name; empty until its options are read. */
  secrets: Readonly<Record<string, string>>;
  /** Removes the application's keys and the granted secrets from texts; undefined if there are none. */
  mask: SecretMask | undefined;
  /** The repository that the operation works in; undefined until its prompt is prepared. */
  repository: Repository | undefined;
  readonly kind: OperationKind;
  /** The task id, if the operation is a task of another one. */
  readonly task_id: string | undefined;
  /** The part of the operation that an agent of its backend has taken over. */
  part: OperationPart | undefined;
  readonly signal: AbortSignal;
  readonly state: SessionState;
  readonly live: LiveSession;
  readonly spending: Spending;
  /** Rules that it and its tasks leave out: ids of rules, and files. */
  rulesLeftOut: ReadonlySet<string>;
  /** The logged work of a resumed operation. */
  readonly past: PastOperation | undefined;
  /** Set if the operation resumes after a suspension, because its approval was decided. */
  readonly suspension: Suspension | undefined;
  readonly failures: OperationFailures;
  /** Undefined if tracing is off. */
  readonly tracing: OperationTracing | undefined;
  /** Tasks that the operation has started and that still run. */
  tasks: readonly Promise<unknown>[];
  /** Appends what the operation adds to the history. */
  readonly log: OperationLog;
  emit(body: EventBody, turnId?: string): void;
  /** Says before an event is made whether there is a listener for it. */
  readonly events: Pick<EventHub, "skip">;
}

export interface OperationRequest {
  readonly kind: OperationKind;
  /** The user's text, for its first event. */
  readonly message?: string | undefined;
  /** How many pictures come with the text. */
  readonly images?: number | undefined;
  /** The client's own id of the message. */
  readonly clientId?: string | undefined;
  /** The message before which the session goes on. */
  readonly rewindBefore?: string | undefined;
  /** The message of another session before which this new session begins. */
  readonly fork?: ForkPlace | undefined;
  readonly id?: string | undefined;
  /** The id may name an interrupted operation, which is then resumed. */
  readonly resumes?: boolean | undefined;
  readonly signal?: AbortSignal | undefined;
  readonly scope?: Partial<Pick<EventScope, "task_id" | "parent_operation_id">>;
  /** The operation that started this task. */
  readonly parent?: Operation;
}

/** A session that this process has open: its queue, state and sandbox. */
export interface LiveSession {
  readonly key: SessionKey;
  readonly profile: AgentProfile;
  /** 0 for a session of the agent itself, 1 for its tasks, … */
  readonly depth: number;
  readonly queue: {
    /** Whether an operation runs. */
    readonly busy: boolean;
    /** Resolves when all operations enqueued until now have ended. */
    drained(): Promise<void>;
  };
  /** Keeps the beginning of the session's prompts unchanged, for the provider's cache. */
  readonly prompt: SessionPrompt;
  /** The operation that runs now. */
  readonly current: Operation | undefined;
  /** Tools and their schemas, built once. */
  toolkit(): Toolkit;
  /** Opens the sandbox on first use. */
  sandbox(): Promise<Sandbox>;
  /** The session's working folder; opens the sandbox only if the factory cannot tell. */
  workplace(signal: AbortSignal): Promise<Workplace>;
  /** The session's working folder; undefined if only the open sandbox can tell. */
  located(): Workplace | undefined;
  /** Enqueues `work` as one operation. */
  operate<Value>(request: OperationRequest, work: (operation: Operation) => Promise<Value>): Promise<Value>;
  /** The stored state, for readers; does not wait for the queue. */
  load(): MaybePromise<SessionState>;
  /** The active messages as the store has them now, including those of other processes. */
  history(): Promise<readonly Message[]>;
  /** Whether the running operation can be dropped from memory and later resume from its log without loss. */
  readonly maySuspend: boolean;
  /** Stops the running operation and waits until it has ended. False when none was running. */
  abort(): Promise<boolean>;
  /** Drops the history from memory; the store still has it. False if the session's sandbox must stay open. */
  evict(): boolean;
  /** Aborts the running operation, refuses waiting ones and closes the sandbox. */
  close(): Promise<void>;
}

export interface LiveSessionOptions {
  readonly parent?: SessionKey;
  readonly profile?: AgentProfile;
  /** A task shares its parent's sandbox and does not close it. */
  readonly sandbox?: Pick<LiveSession, "sandbox" | "workplace" | "located">;
  readonly depth?: number;
}

/** The backend of an operation and its context. */
export interface BackendWork {
  /** Undefined for kit's own loop. */
  readonly backend: AgentBackend | undefined;
  readonly projectRoot: string | undefined;
  /** Ended runs, of this process and earlier ones. */
  runs: number;
}

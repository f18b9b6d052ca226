import type { LanguageModelV4FunctionTool } from "@ai-sdk/provider";
import type { AgentBackend, BackendChoice } from "../backends/contract.ts";
import type { Clock } from "../base/clock.ts";
import type { ModelResolver } from "../models/contract.ts";
import type { EventBody, OperationKind } from "../protocol/event.ts";
import type { Message } from "../protocol/message.ts";
import type { ModelChoice } from "../protocol/prompt.ts";
import type { SessionEntry, SessionKey } from "../protocol/session-entry.ts";
import type { PythonRunner, PythonSession } from "../python/contract.ts";
import type { IsolationOptions, Sandbox, SandboxFactory } from "../sandboxes/contract.ts";
import type { MaybePromise, SessionStore } from "../stores/contract.ts";
import type { Approvals } from "./approvals/approvals.ts";
import type { AgentProfile } from "./define/agent-profile.ts";
import type { AnyTool, ToolLookup, ValidateJson } from "./define/tool.ts";
import type { EventHub, EventListener, EventScope, OperationTracing } from "./events.ts";
import type { PastOperation } from "./log/past-operation.ts";
import type { SessionState } from "./log/session-state.ts";
import type { Rested } from "./log/suspension.ts";
import type { ProjectContext, Repository, SourceGuard, Workplace } from "./project-context.ts";
import type { SessionPrompt } from "./prompt/session-prompt.ts";
import type { SecretMask } from "./secrets.ts";
import type { OperationQueue } from "./session/operation-queue.ts";
import type { TaskCall } from "./tools/task-tool.ts";
import type { OperationPart } from "./turn/backend-work.ts";
import type { Spending } from "./turn/budget.ts";
import type { RetryPolicy } from "./turn/retry.ts";
import type { ToolRunOptions } from "./turn/tool-calls.ts";

/** What an agent needs of the world around it; the composition root fills it in. */
export interface AgentRuntime {
  readonly store: SessionStore;
  readonly resolveModel: ModelResolver;
  /** Gives the backend that is meant; kit's own loop where none is named. */
  readonly resolveBackend: (choice: BackendChoice | undefined) => MaybePromise<AgentBackend>;
  /** Used where the profile names no model. */
  readonly defaultModel: ModelChoice;
  /** Used where the profile names no sandbox. */
  readonly sandbox: SandboxFactory;
  /** Told to sandboxes: how the project's configuration walls commands in. */
  readonly isolation?: IsolationOptions;
  /** Told to sandboxes: the project's folder on this machine. */
  readonly projectRoot?: string;
  /** Keeps what models write apart from what the process runs; without it, neither is known. */
  readonly sources?: SourceGuard;
  readonly clock: Clock;
  readonly retry: RetryPolicy;
  readonly modelIdleTimeoutMs: number;
  readonly validateJson: ValidateJson;
  /** Specs, guidelines and instructions of the repository; none for an agent without a project. */
  readonly project?: ProjectContext;
  /** Tools from elsewhere, asked for by every operation; a tool of the agent's own of the same name wins. */
  readonly toolSources?: readonly ToolSource[];
  /** Python for sessions; without it, they have none. */
  readonly python?: PythonRunner;
  /** Where calls that need approval wait for it; without it, they are denied at once. */
  readonly approvals?: Approvals;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Takes the application's own keys out of what agents are told, say and keep, whoever put them there. */
  readonly mask?: SecretMask;
  /** Why something failed, as events tell it; without it they tell what is safe for any reader. */
  readonly causeOf?: ToolRunOptions["causeOf"];
  /** Whether commands find their place in a trace in their environment. */
  readonly tracesCommands?: boolean;
  /** Whose work the code that asks is part of. */
  readonly origins?: Origins;
  /** Who hears the events of every agent, as they come and go. */
  readonly observers: ReadonlySet<EventListener>;
  readonly onListenerError?: (error: unknown) => void;
  readonly maxWaitingOperations: number;
  /** Idle sessions whose history stays in memory; the others are read again when they are needed. */
  readonly maxIdleSessions: number;
}

/** The step of a run, or the trace, that an operation was asked for in: its `operation_start` says so. */
export type OperationOrigin = Pick<
  Extract<EventBody, { type: "operation_start" }>,
  "step" | "step_id" | "traceparent" | "tracestate"
>;

/** Whose work the code at work is part of, over all that it waits for. */
export interface Origins {
  current(): OperationOrigin | undefined;
  /** Runs work as part of that, and of nothing around it. */
  run<Value>(origin: OperationOrigin, work: () => Value): Value;
}

/** The inside of an agent, as its sessions see it. */
export interface Harness {
  readonly name: string;
  /** The file that describes it, relative to the project's root. */
  readonly file?: string;
  readonly id: string;
  readonly run_id?: string;
  readonly profile: AgentProfile;
  readonly runtime: AgentRuntime;
  readonly store: SessionStore;
  readonly events: EventHub;
  /** Runs a task below an operation; the `task` tool asks for it. */
  startTask(
    operation: Operation,
    task: {
      readonly text: string;
      /** Names the task below its operation: the same key goes on with the same task. */
      readonly key: string;
      readonly call?: TaskCall;
      readonly options: { readonly agent?: string; readonly role?: string; readonly cwd?: string };
    },
  ): Promise<{ readonly text: string }>;
  /** The session of that name, brought to life when it is not. */
  live(name: string, options?: LiveSessionOptions): LiveSession;
  /** A session has something to do, or nothing more: what rests longest is forgotten first. */
  wake(live: LiveSession): void;
  rest(live: LiveSession): void;
  /** Forgets a session that will not be asked again, such as a task's. */
  drop(live: LiveSession): void;
  /** The Python of a session, with its variables. Throws `unavailable` where the runtime has none. */
  python(name: string): PythonSession;
}

/**
 * Gives the tools that are there now: those of MCP servers, for instance. The same tool is the same object
 * each time. What cannot be had is said with `emit`; only the signal makes it reject.
 */
export interface ToolSource {
  (operation: Pick<Operation, "signal" | "emit">): Promise<readonly AnyTool[]>;
  /** Why a tool of that name is not there, as a model is told; undefined where the source knows of none. */
  readonly whyMissing?: (name: string) => string | undefined;
}

/** The tools of a session, and what providers are told of them. */
export interface Toolkit {
  readonly tools: ToolLookup;
  readonly schemas: readonly LanguageModelV4FunctionTool[];
}

/** One call on a session while it runs. */
export interface Operation {
  readonly id: string;
  /** Secrets granted to this operation, by name; none until its options are read. */
  secrets: Readonly<Record<string, string>>;
  /** Takes the application's keys and those secrets out of texts; absent where there are none. */
  mask: SecretMask | undefined;
  /** Where it works, as far as it is known; undefined until its prompt is prepared. */
  repository: Repository | undefined;
  readonly kind: OperationKind;
  /** The task that it is, below another operation. */
  readonly task_id: string | undefined;
  /** The part of it that an agent of its backend has taken over. */
  part: OperationPart | undefined;
  readonly signal: AbortSignal;
  readonly state: SessionState;
  readonly live: LiveSession;
  readonly spending: Spending;
  /** What was done of it before, where it is resumed. */
  readonly past: PastOperation | undefined;
  /** Where it goes on because there is a word that it rested for. */
  readonly rested: Rested | undefined;
  /** Undefined where nothing is traced. */
  readonly tracing: OperationTracing | undefined;
  /** The tasks it has started and that have not ended. */
  tasks: readonly Promise<unknown>[];
  /** Appends what follows from the history that the operation knows; see `appendWork`. */
  commit(entries: readonly SessionEntry[]): MaybePromise<void>;
  /** The same, for who goes on before the log has it; see `appendAhead`. */
  commitAhead(entries: readonly SessionEntry[]): MaybePromise<void>;
  /** Waits for what is ahead of the log, and throws what failed of it. */
  stored(): MaybePromise<void>;
  /** Appends to the history as it is by now, after reading what another process has added; see `appendLatest`. */
  append(entries: readonly SessionEntry[], input?: string): MaybePromise<void>;
  /**
   * Has `write` append what was done and cannot be had again, such as results of tools. Where the store is away it rejects as
   * the append does, and the entries stay in memory: they are written once the store is back, before anything else.
   */
  keeping(
    entries: readonly SessionEntry[],
    write: (entries: readonly SessionEntry[]) => MaybePromise<void>,
  ): MaybePromise<void>;
  emit(body: EventBody, turnId?: string): void;
}

export interface OperationRequest {
  readonly kind: OperationKind;
  readonly id?: string;
  /** The id may be that of an operation which was interrupted: it is gone on with then. */
  readonly resumes?: boolean;
  readonly signal?: AbortSignal;
  readonly scope?: Partial<EventScope>;
  /** Set where the operation takes its place in line. */
  readonly origin?: OperationOrigin | undefined;
  /** The operation whose task this is. */
  readonly parent?: Operation;
}

/** A session that this process has open: its place in line, its state, its sandbox. */
export interface LiveSession {
  readonly key: SessionKey;
  readonly profile: AgentProfile;
  /** 0 for a session of the agent itself, 1 for its tasks, … */
  readonly depth: number;
  readonly queue: OperationQueue;
  /** Keeps the beginning of its prompts as it is. */
  readonly prompt: SessionPrompt;
  /** The operation that runs now. */
  readonly current: Operation | undefined;
  /** Tools and their schemas, built once. */
  toolkit(): Toolkit;
  /** Opened when it is first asked for. */
  sandbox(): Promise<Sandbox>;
  /** Where it works; opens the sandbox only where nothing else tells. */
  workplace(signal: AbortSignal): MaybePromise<Workplace>;
  /** Runs `work` as one operation, after those that were asked before it. */
  operate<Value>(request: OperationRequest, work: (operation: Operation) => Promise<Value>): Promise<Value>;
  /** The state as stored, for readers; waits for nothing. */
  load(): MaybePromise<SessionState>;
  /** The active messages as they are in the store by now, whoever has written them. */
  history(): Promise<readonly Message[]>;
  /** Whether what runs could be given up in memory, and go on from its log: nothing else is lost with it. */
  readonly mayRest: boolean;
  /** Stops the running operation and waits until it has ended. False when none was running. */
  abort(): Promise<boolean>;
  /** Forgets the history, which is in the store. False when the session must stay for its sandbox. */
  evict(): boolean;
  /** Stops what runs, turns away what waits, and gives the sandbox back. */
  close(): Promise<void>;
}

export interface LiveSessionOptions {
  readonly parent?: SessionKey;
  readonly profile?: AgentProfile;
  /** A task shares the sandbox of its parent, and does not close it. */
  readonly sandbox?: Pick<LiveSession, "sandbox" | "workplace">;
  readonly depth?: number;
}

import type {
  LanguageModelV4CallOptions,
  LanguageModelV4FunctionTool,
  LanguageModelV4Prompt,
} from "@ai-sdk/provider";
import type { Clock } from "../../base/clock.ts";
import type { ResolvedModel } from "../../models/contract.ts";
import type { TurnPurpose } from "../../protocol/event.ts";
import type { AssistantMessage, Message, ToolCallPart } from "../../protocol/message.ts";
import type { SessionEntry } from "../../protocol/session-entry.ts";
import type { SessionStore } from "../../stores/contract.ts";
import type { BackendWork, Operation } from "../agent-runtime.ts";
import type { ModelSettings } from "../define/profile-settings.ts";
import type { JsonSchema } from "../define/tool.ts";
import type { NativeOutput } from "../output/typed-output.ts";
import type { LoopPrompt } from "../prompt/turn-records.ts";
import type { TurnHooks } from "./hook-calls.ts";
import type { ModelFailure, ModelRetryPolicy } from "./retry.ts";
import type { ToolRunOptions } from "./tool-calls.ts";

/** The values that all turns of one operation share. */
export interface TurnLoop {
  readonly operation: Operation;
  /** Keeps the parts of requests besides their messages. */
  readonly store: SessionStore;
  /** The backend that decides the turns. */
  readonly work: BackendWork;
  /** The model that answers. */
  readonly resolved: ResolvedModel;
  /** The models that take over if this one fails permanently. */
  readonly fallback:
    | {
        /** The fallback model, once it has taken over, and the settings for it. */
        readonly current: (loop: TurnLoop) => Pick<TurnLoop, "resolved" | "settings"> | undefined;
        /** Switches to the next model and returns its name; undefined if none is left. */
        readonly next: (failure: ModelFailure) => Promise<string | undefined>;
      }
    | undefined;
  readonly prompt: LoopPrompt;
  readonly session: LoopSession;
  readonly tools: readonly LanguageModelV4FunctionTool[];
  /** The options of tool calls, if a backend brings tools of its own; default: those of the session. */
  readonly toolRun?: (() => ToolRunOptions) | undefined;
  readonly settings: Pick<
    LanguageModelV4CallOptions,
    | "reasoning"
    | "responseFormat"
    | "toolChoice"
    | "maxOutputTokens"
    | "headers"
    | "providerOptions"
    | "stopSequences"
  >;
  /** The settings of the profile and the call; those that the turn itself needs win. */
  readonly modelSettings?: ModelSettings | undefined;
  /** The only tools of the operation's first turn, by name; every later turn has all. */
  readonly forcedTools?: readonly string[] | undefined;
  readonly hooks?: TurnHooks | undefined;
  /** Whether the caller asks again in words if the provider refuses the response format. */
  readonly mayDropSchema?: boolean;
  /** Creates the reader of a typed answer, whose deltas carry the result so far; absent for a plain text. */
  readonly partialResult?: (() => { push(text: string): unknown }) | undefined;
  readonly purpose: TurnPurpose;
  readonly retry: ModelRetryPolicy;
  readonly idleTimeoutMs: number;
  readonly clock: Clock;
  /** Whether waiting inputs may join the operation. */
  readonly joins: boolean;
  /** The prompt that replaces the history if a backend sends its own messages. */
  readonly sent?: LanguageModelV4Prompt;
  /** Whether readers get no deltas: they would take them for the answer. */
  readonly hidesDeltas?: boolean;
  /** The log entries of an answer; default: the message itself. */
  readonly toEntries?: (entry: SessionEntry, message: AssistantMessage) => readonly SessionEntry[];
}

/** The session around the turns of an operation. */
export interface LoopSession {
  /** Returns the options of tool calls, created for the first call. */
  toolRun(): ToolRunOptions;
  /** Appends the messages of waiting inputs that join the operation; returns nothing if no input waits. */
  join(): Promise<void> | undefined;
  /** Whether the history must be compacted before the next model call. */
  needsRoom(reason: "threshold" | "overflow"): boolean;
  makeRoom(reason: "threshold" | "overflow"): Promise<void>;
  /** Entries to append with tool results, such as guidelines for the touched files; undefined if there are none. */
  afterTools(calls: readonly ToolCallPart[]): Promise<readonly SessionEntry[]> | undefined;
  /** The options that make the provider enforce a schema; undefined if it cannot. */
  nativeOutput(schema: JsonSchema, offersTools: boolean): NativeOutput | undefined;
}

/** The options of a loop's tool calls. */
export function toolRunOf({ toolRun, session }: TurnLoop): ToolRunOptions {
  return toolRun === undefined ? session.toolRun() : toolRun();
}

/** The log entry of a message that belongs to a loop's operation. */
export function toEntry(
  loop: Pick<TurnLoop, "operation">,
  message: Message,
): Extract<SessionEntry, { type: "message" }> {
  return { version: 1, type: "message", message, operation_id: loop.operation.id };
}

import type { ErrorCause } from "./error-cause.ts";
import type { ErrorCode } from "./error-code.ts";
import type { FinishReason } from "./message.ts";
import type { PromptPrefix, TurnReceipt } from "./receipt.ts";
import type { TraceContext } from "./trace-context.ts";
import type { Usage } from "./usage.ts";

/** What a session can be asked to do. */
export type OperationKind = "prompt" | "stream" | "skill" | "task" | "shell" | "compact" | "python";

/** Fields of every event. `index` counts from 1 within one stream. */
export interface EventContext {
  readonly index: number;
  /** ISO 8601, UTC, milliseconds. */
  readonly timestamp: string;
  /** Absent in what a run says itself, which is no agent's. */
  readonly agent?: string;
  /** The run's id, on the events of the run itself. */
  readonly instance_id: string;
  readonly session?: string;
  /** The run's id, on the events of the run itself. */
  readonly operation_id: string;
  readonly run_id?: string;
  readonly turn_id?: string;
  readonly task_id?: string;
  readonly parent_operation_id?: string;
}

/** An error as events and replies carry it: safe for any reader. */
export interface EventError {
  readonly type: ErrorCode;
  readonly message: string;
  /** What the code of the project threw. For those who may read the record or the stream; never in a public reply. */
  readonly cause?: ErrorCause;
}

/**
 * What each type carries beside the common fields. `is_aborted` goes with `is_error`: somebody has stopped it,
 * it has not failed by itself.
 */
export type EventBody =
  | ({
      readonly type: "operation_start";
      readonly operation_kind: OperationKind;
      /** Set where an operation that was interrupted goes on, or had its answer already. */
      readonly resumed?: true;
      /** The step of the run that asked for it. */
      readonly step?: string;
      readonly step_id?: string;
    } & Partial<TraceContext>)
  | {
      readonly type: "operation";
      readonly operation_kind: OperationKind;
      readonly duration_ms: number;
      readonly is_error: boolean;
      readonly is_aborted?: true;
      readonly usage?: Usage;
    }
  | { readonly type: "agent_start"; readonly model: string }
  | {
      readonly type: "turn_request";
      readonly model: string;
      /** Who serves the model, as its package names it: `openai.responses`. Absent in older logs. */
      readonly provider?: string;
      readonly purpose: TurnPurpose;
      /** From 1; above 1 for a retry of the same turn. Deltas of the attempt before are void. */
      readonly attempt: number;
      /** Absent where the call is not of the session's own prompt, such as one that sums it up. */
      readonly prefix?: PromptPrefix;
      /** What was in front of the model: rules, specs, instructions, skills, memories. Absent likewise. */
      readonly receipt?: TurnReceipt;
    }
  | {
      readonly type: "turn";
      readonly model: string;
      readonly usage: Usage;
      readonly finish_reason: FinishReason;
      readonly purpose: TurnPurpose;
      /** The provider's id of the answer, and the model that gave it, where the provider says so. */
      readonly response_id?: string;
      readonly response_model?: string;
      /** Until the first piece of the answer. */
      readonly first_chunk_ms?: number;
      readonly duration_ms: number;
    }
  | {
      /** The end of every turn, of one that failed or was stopped too; only one that goes on later has none. */
      readonly type: "turn_end";
      readonly tool_calls: number;
      readonly is_error?: true;
      readonly is_aborted?: true;
    }
  | { readonly type: "idle" }
  | { readonly type: "abort_requested" }
  | { readonly type: "aborted" }
  | {
      readonly type: "error";
      readonly error: EventError;
      readonly will_retry: boolean;
      /** Set where it waits before it tries again. */
      readonly retry_in_ms?: number;
      /** The model that is asked instead, where several are named. */
      readonly next_model?: string;
    }
  | { readonly type: "text_delta"; readonly text: string }
  | { readonly type: "reasoning_delta"; readonly text: string }
  | {
      readonly type: "tool_start";
      readonly tool_call_id: string;
      readonly tool: string;
      readonly args: unknown;
      /** Set where the tool is an MCP server's. */
      readonly mcp?: McpOrigin;
    }
  | {
      readonly type: "tool_end";
      readonly tool_call_id: string;
      readonly tool: string;
      readonly result: string;
      readonly is_error: boolean;
      /** What a tool threw, and where in the project. */
      readonly cause?: ErrorCause;
      readonly duration_ms: number;
    }
  | {
      /** A call waits for somebody's word. It stands between the call's `tool_start` and `tool_end`. */
      readonly type: "approval_request";
      readonly approval_id: string;
      readonly tool_call_id: string;
      readonly tool: string;
      readonly args: unknown;
      /** ISO 8601; absent where it waits as long as it takes. */
      readonly expires_at?: string;
    }
  | {
      readonly type: "approval";
      readonly approval_id: string;
      readonly tool_call_id: string;
      readonly tool: string;
      readonly approved: boolean;
      readonly reason?: string;
      readonly by?: string;
    }
  | { readonly type: "command_start"; readonly command: string; readonly tool_call_id?: string }
  | {
      readonly type: "command_end";
      readonly command: string;
      readonly exit_code: number | null;
      readonly tool_call_id?: string;
      readonly duration_ms: number;
    }
  | {
      readonly type: "task_start";
      /** The task that starts: its own events have the same. */
      readonly task_id: string;
      /** The call of the `task` tool that asks for it, of the turn in `turn_id`. */
      readonly tool_call_id?: string;
      readonly role?: string;
      readonly task_agent?: string;
      readonly cwd?: string;
      readonly prompt: string;
    }
  | {
      readonly type: "task_end";
      readonly task_id: string;
      readonly is_error: boolean;
      readonly duration_ms: number;
    }
  | {
      /** What somebody asks for who has come behind retention: these events were removed. Its own index is the last of them. */
      readonly type: "gap";
      readonly missing_from: number;
      readonly missing_to: number;
    }
  | { readonly type: "compaction_start"; readonly reason: CompactionReason; readonly tokens_before: number }
  | {
      readonly type: "compaction_end";
      readonly reason: CompactionReason;
      readonly tokens_before: number;
      readonly tokens_after: number;
      readonly is_error: boolean;
    }
  | ({ readonly type: "run_start"; readonly workflow: string } & Partial<TraceContext>)
  | {
      readonly type: "run_end";
      readonly workflow: string;
      /** As the record's status says it. Absent in older logs. */
      readonly reason?: "completed" | "failed" | "cancelled";
      readonly is_error: boolean;
      readonly is_aborted?: true;
      readonly error?: EventError;
      readonly duration_ms: number;
    }
  | {
      readonly type: "step_start";
      readonly step: string;
      /** Names the step among those of its run, which may have the same name: the same in each attempt. */
      readonly step_id?: string;
      /** From 1. */
      readonly attempt?: number;
    }
  | {
      readonly type: "step_end";
      readonly step: string;
      readonly step_id?: string;
      readonly is_error: boolean;
      readonly is_aborted?: true;
      readonly error?: EventError;
      readonly duration_ms: number;
    }
  | {
      readonly type: "log";
      readonly level: "info" | "warning" | "error";
      readonly message: string;
      readonly data?: unknown;
    };

/** Why a model is called: for the work, to shorten the history, or to repair a typed output. */
export type TurnPurpose = "agent" | "compaction" | "repair";
export type CompactionReason = "threshold" | "overflow" | "manual";

/** Where a call of an MCP server's tool goes. */
export interface McpOrigin {
  /** The server's name in the configuration. */
  readonly server: string;
  /** The tool as the server names it. */
  readonly tool: string;
  /** A process's streams, or HTTP. */
  readonly transport: "pipe" | "tcp";
}

export type KitEvent = EventContext & EventBody;
export type EventType = EventBody["type"];

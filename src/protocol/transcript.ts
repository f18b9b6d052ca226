import type { OperationKind } from "./enums.ts";
import type { EventError } from "./errors.ts";
import type { CompactionReason, TurnPurpose } from "./event.ts";
import type { Usage } from "./message.ts";

interface Item {
  /** The item's identity, which does not change while the item grows. */
  readonly id: string;
  readonly operation_id: string;
  /** How many operations are above this one: 0, or 1 and more in a task. */
  readonly depth: number;
  /** ISO 8601. */
  readonly started_at: string;
}

/** How work ended, or what it does now. */
export type WorkState = "running" | "waiting" | "done" | "failed" | "stopped";

/** A prompt, a skill, a task or another call on a session. */
export interface OperationItem extends Item {
  readonly kind: "operation";
  readonly operation_kind: OperationKind;
  /** For a task: the operation that started it. */
  readonly parent_operation_id: string | undefined;
  /** The user's text. */
  readonly message: string | undefined;
  readonly state: WorkState;
  /** From 1: how often kit has started over, or asked the model again. */
  readonly attempts: number;
  /** The error of the last attempt that failed. */
  readonly error?: EventError | undefined;
  readonly usage?: Usage | undefined;
  readonly ended_at?: string | undefined;
}

/** A call of the model. A retry is another item. */
export interface TurnItem extends Item {
  readonly kind: "turn";
  readonly turn_id: string | undefined;
  readonly model: string;
  readonly purpose: TurnPurpose;
  readonly attempt: number;
  /** The index of its `turn_request`. */
  readonly event_index: number;
  /** How many rules, specs and other items were in the model's context. */
  readonly receipt_items: number | undefined;
  readonly state: WorkState;
  readonly error?: EventError | undefined;
  readonly usage?: Usage | undefined;
  readonly first_chunk_ms?: number | undefined;
  readonly ended_at?: string | undefined;
}

/** A text of the model. */
export interface TextItem extends Item {
  readonly kind: "text" | "thinking";
  readonly turn_id: string | undefined;
  readonly text: string;
  /** Whether more text can follow. */
  readonly is_open: boolean;
}

/** A call of a tool. */
export interface CallItem extends Item {
  readonly kind: "call";
  readonly tool_call_id: string;
  readonly tool: string;
  readonly args: unknown;
  /** `stopped` if its result is not known. */
  readonly state: WorkState;
  readonly progress?: unknown;
  readonly result?: string | undefined;
  /** How long the tool worked, without the time that the call waited for a person. */
  readonly duration_ms?: number | undefined;
  readonly ended_at?: string | undefined;
  /** Set while the call waits for a decision. */
  readonly approval_id?: string | undefined;
  /** The question that the running call asks a person. */
  readonly question?: string | undefined;
  readonly waits_since?: string | undefined;
  /** How long it waited for decisions. */
  readonly waited_ms?: number | undefined;
  readonly decision?: { readonly approved: boolean; readonly by?: string; readonly reason?: string };
}

/** A task that the agent gave to another agent or role. Its own work has items of a greater depth. */
export interface TaskItem extends Item {
  readonly kind: "task";
  readonly task_id: string;
  readonly label: string;
  readonly prompt: string;
  readonly state: WorkState;
  readonly ended_at?: string | undefined;
}

/** The history was shortened. */
export interface CompactionItem extends Item {
  readonly kind: "compaction";
  readonly reason: CompactionReason;
  readonly state: WorkState;
  readonly tokens_before: number;
  readonly tokens_after?: number | undefined;
  readonly ended_at?: string | undefined;
}

/** An attempt failed and another one follows. One item per operation, until the model answers. */
export interface RetryItem extends Item {
  readonly kind: "retry";
  readonly error: EventError;
  /** The attempt that follows, from 2. */
  readonly attempt: number;
  /** From `started_at`. */
  readonly retry_in_ms: number;
  readonly next_model: string | undefined;
  /** Whether the next attempt has begun. */
  readonly has_begun: boolean;
}

/** The end of an operation. */
export interface EndItem extends Item {
  readonly kind: "end";
  readonly state: "done" | "failed" | "stopped";
  readonly duration_ms: number;
  readonly attempts: number;
  readonly usage?: Usage | undefined;
  readonly error?: EventError | undefined;
}

/** A message of the user that joined a running operation. */
export interface JoinedItem extends Item {
  readonly kind: "joined";
  readonly message: string;
  /** The operation that the receipt of its dispatch names. */
  readonly joined_from: string;
}

/** Older events were removed. */
export interface GapItem extends Item {
  readonly kind: "gap";
}

export type TranscriptItem =
  | OperationItem
  | TurnItem
  | TextItem
  | CallItem
  | TaskItem
  | CompactionItem
  | RetryItem
  | EndItem
  | JoinedItem
  | GapItem;

/** The work of an agent in order: the fold of its events. Immutable. */
export interface Transcript {
  readonly items: readonly TranscriptItem[];
  /** The index of the last event in it. */
  readonly index: number;
  /** The running operation. */
  readonly operation: string | undefined;
  /** `waiting`: a call waits for a person; `retrying`: an attempt failed and another one follows. */
  readonly state: "idle" | "working" | "waiting" | "retrying";
}

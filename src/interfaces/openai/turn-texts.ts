import type { KitEvent } from "../../protocol/event.ts";
import type { FinishReason, Usage } from "../../protocol/message.ts";
import { addUsage, noUsage } from "../../protocol/read-records.ts";
import { OpenWork } from "../ai-sdk/open-work.ts";

export interface TextDelta {
  readonly kind: "text" | "reasoning";
  readonly text: string;
  readonly turn: string;
}

/** The news of an event for a client that sees texts, and nothing of the agent's own tools and tasks. */
export type TurnNews =
  | { readonly type: "delta"; readonly delta: TextDelta }
  /** The turn has ended; `isTorn`: what it has said is void, and a model says it again. */
  | { readonly type: "turn_end"; readonly isTorn: boolean }
  /** Nothing goes on before the caller has run these calls of its tools. */
  | { readonly type: "calls"; readonly calls: readonly CallerCall[] }
  | { readonly type: "end"; readonly end: TurnsEnd };

export interface CallerCall {
  readonly id: string;
  readonly name: string;
  /** JSON. */
  readonly args: string;
}

/** The part of an operation that a client reads. */
export interface Segment {
  readonly operationId: string;
  /** The index of the event at which the caller's calls waited whose results it has brought; default: the operation's first events. */
  readonly after?: number | undefined;
}

/** Returns the id of the waiting call that the caller knows by its own id. */
export function approvalOf(callId: string): string {
  return callId.replace(/^call_/, "caller_");
}

export interface TurnsEnd {
  readonly status: "completed" | "failed" | "cancelled";
  /** The reason of the last turn. */
  readonly finishReason: FinishReason;
  readonly error: { readonly type: string; readonly message: string };
  /** ISO 8601. */
  readonly at: string;
}

/** Reads what an operation says from its events, and what it and its tasks use. */
export class TurnTexts {
  readonly #operationId: string;
  readonly #after: number;
  readonly #work: OpenWork;
  /** The caller's calls by the ids of their approvals; undefined for those that an earlier answer told. */
  readonly #calls = new Map<string, CallerCall | undefined>();
  hasBeginning: boolean;
  /** The tokens of all models that were called. */
  usage: Usage = noUsage;
  /** The turn that a model answers; until it ends, what it said can become void. */
  #turn: string | undefined;
  #finishReason: FinishReason = "stop";
  #error = { type: "internal_error", message: "The agent failed." };

  constructor({ operationId, after = 0 }: Segment) {
    this.#operationId = operationId;
    this.#after = after;
    this.hasBeginning = after === 0;
    this.#work = new OpenWork(operationId);
  }

  /** Returns what an event says; undefined for those up to `after`. */
  push(event: KitEvent): TurnNews | undefined {
    this.#work.push(event);
    const isKnown = event.index <= this.#after;
    if (event.type === "approval_request" && event.kind === "caller" && !this.#calls.has(event.approval_id)) {
      const { approval_id, tool: name, args } = event;
      const call = { id: approval_id.replace(/^caller_/, "call_"), name, args: JSON.stringify(args ?? {}) };
      this.#calls.set(approval_id, isKnown ? undefined : call);
    }
    if (event.index === this.#after) this.hasBeginning = this.#work.awaited.some((id) => this.#calls.has(id));
    return isKnown ? undefined : (this.#said(event) ?? this.#waiting());
  }

  /** The calls of the caller, once there is a new one and nothing else goes on. Decisions of one request come one after the other. */
  #waiting(): TurnNews | undefined {
    const { awaited } = this.#work;
    if (!awaited.every((id) => this.#calls.has(id))) return undefined;
    const calls = awaited.flatMap((id) => this.#calls.get(id) ?? []);
    return calls.length === 0 ? undefined : { type: "calls", calls };
  }

  #said(event: KitEvent): TurnNews | undefined {
    if (event.type === "turn") this.usage = addUsage(this.usage, event.usage);
    if (event.operation_id !== this.#operationId) return undefined;
    switch (event.type) {
      case "operation_start":
        // The answer that a killed process was reading is requested again.
        return this.#tear(undefined);
      case "turn_request":
        return event.purpose === "compaction" ? undefined : this.#tear(event.turn_id ?? "");
      case "text_delta":
      case "reasoning_delta": {
        // A summary of the history is not said to the client.
        if (this.#turn === undefined) return undefined;
        const kind = event.type === "text_delta" ? "text" : "reasoning";
        return { type: "delta", delta: { kind, text: event.text, turn: this.#turn } };
      }
      case "turn":
        if (event.purpose === "compaction") return undefined;
        this.#turn = undefined;
        this.#finishReason = event.finish_reason;
        return { type: "turn_end", isTorn: false };
      case "error":
        if (!event.will_retry) this.#error = event.error;
        return undefined;
      case "operation": {
        const { is_error, is_aborted, timestamp: at } = event;
        const status = is_aborted ? "cancelled" : is_error ? "failed" : "completed";
        const error = is_aborted ? stopped : this.#error;
        return { type: "end", end: { status, finishReason: this.#finishReason, error, at } };
      }
      default:
        return undefined;
    }
  }

  #tear(next: string | undefined): TurnNews | undefined {
    const isTorn = this.#turn !== undefined;
    this.#turn = next;
    return isTorn ? { type: "turn_end", isTorn } : undefined;
  }
}

/** The error of work that was stopped. */
export const stopped = { type: "aborted", message: "The answer was stopped." } as const;

import type { KitEvent } from "../../protocol/event.ts";
import type { FinishReason, Usage } from "../../protocol/message.ts";
import { addUsage, noUsage } from "../../protocol/read-records.ts";

export interface TextDelta {
  readonly kind: "text" | "reasoning";
  readonly text: string;
  readonly turn: string;
}

/** What an event says to a client that sees texts, and nothing of the agent's own tools and tasks. */
export type TurnNews =
  | { readonly type: "delta"; readonly delta: TextDelta }
  /** The turn has ended; `isTorn`: what it has said is void, and a model says it again. */
  | { readonly type: "turn_end"; readonly isTorn: boolean }
  | { readonly type: "end"; readonly end: TurnsEnd };

export interface TurnsEnd {
  readonly status: "completed" | "failed" | "cancelled";
  /** Of the last turn. */
  readonly finishReason: FinishReason;
  readonly error: { readonly type: string; readonly message: string };
  /** ISO 8601. */
  readonly at: string;
}

/** Reads what an operation says from its events, and what it and its tasks use. */
export class TurnTexts {
  readonly #operationId: string;
  /** The tokens of all models that were called. */
  usage: Usage = noUsage;
  /** The turn that a model answers; until it ends, what it said can become void. */
  #turn: string | undefined;
  #finishReason: FinishReason = "stop";
  #error = { type: "internal_error", message: "The agent failed." };

  constructor(operationId: string) {
    this.#operationId = operationId;
  }

  push(event: KitEvent): TurnNews | undefined {
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

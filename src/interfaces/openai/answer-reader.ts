import type { KitEvent } from "../../protocol/event.ts";
import type { FinishReason, Usage } from "../../protocol/message.ts";
import { addUsage, noUsage } from "../../protocol/read-records.ts";
import type { UiChunk } from "../../protocol/ui.ts";
import { UiFold } from "../ai-sdk/fold.ts";

/**
 * The news of an event for a client that sees what the agent says and the calls of its own functions, and nothing of the agent's tools and
 * tasks. Texts, sources and files are the chunks of chat pages.
 */
export type AnswerNews =
  | UiChunk
  /** A call of the caller's begins, whose arguments follow; `call_void`: it becomes none, or begins again. */
  | { readonly type: "call_start"; readonly id: string; readonly name: string }
  | { readonly type: "call_delta"; readonly id: string; readonly text: string }
  | { readonly type: "call_void"; readonly id: string }
  /** Nothing goes on before the caller has run these calls. */
  | { readonly type: "calls"; readonly calls: readonly CallerCall[] }
  | { readonly type: "end"; readonly end: AnswerEnd };

export interface CallerCall {
  readonly id: string;
  readonly name: string;
  /** JSON, so far. */
  args: string;
}

/** The part of an operation that a client reads. */
export interface Segment {
  readonly operationId: string;
  /** The index of the event at which the caller's calls waited whose results it has brought; default: the operation's first events. */
  readonly after?: number | undefined;
}

export interface AnswerEnd {
  readonly status: "completed" | "failed" | "cancelled";
  /** The reason of the last turn. */
  readonly finishReason: FinishReason;
  readonly error: { readonly type: string; readonly message: string };
  /** ISO 8601. */
  readonly at: string;
}

/** The error of work that was stopped. */
export const stopped = { type: "aborted", message: "The answer was stopped." } as const;

/** The id of a call as the caller knows it. Clients send it without the response, so it names the operation. */
function toCallerId(toolCallId: string): string {
  return toolCallId.replace(/^op_/, "call_");
}

/** Returns the operation of a call that the caller knows by an id. */
export function operationOfCall(callId: string): string | undefined {
  const [, ulid] = /^call_([0-9A-Z]{26})-/.exec(callId) ?? [];
  return ulid === undefined ? undefined : `op_${ulid}`;
}

/** Returns the ids of the waits for the caller's results, by the ids of its calls. */
export function awaitedOfCaller({ awaitedOfPage }: UiFold): ReadonlyMap<string, string> {
  return new Map([...awaitedOfPage].map(([id, wait]) => [toCallerId(id), wait]));
}

/** Reads from its events what an operation says, and what it and its tasks use. */
export class AnswerReader {
  readonly #operationId: string;
  readonly #after: number;
  readonly #ui: UiFold;
  /** The calls that wait, by the ids of their waits; undefined for those that an earlier answer told. */
  readonly #waiting = new Map<string, CallerCall | undefined>();
  /** The calls whose arguments the model writes, until they wait. */
  readonly #written = new Map<string, CallerCall>();
  hasBeginning: boolean;
  /** The tokens of all models that were called. */
  usage: Usage = noUsage;
  #finishReason: FinishReason = "stop";
  #error = { type: "internal_error", message: "The agent failed." };

  constructor({ operationId, after = 0 }: Segment) {
    this.#operationId = operationId;
    this.#after = after;
    this.hasBeginning = after === 0;
    this.#ui = new UiFold(operationId);
  }

  /** Returns what an event says; nothing for those up to `after`. */
  push(event: KitEvent): readonly AnswerNews[] {
    const chunks = this.#ui.push(event);
    const isKnown = event.index <= this.#after;
    const news = isKnown ? [] : chunks.flatMap((chunk) => this.#ofChunk(chunk));
    if (event.type === "approval_request" && event.kind === "caller" && !this.#waiting.has(event.approval_id))
      news.push(...this.#waits(event, isKnown));
    if (event.index === this.#after)
      this.hasBeginning = this.#ui.work.awaited.some((id) => this.#waiting.has(id));
    if (isKnown) return [];
    this.#note(event);
    const end = this.#endOf(event) ?? this.#calls();
    return end === undefined ? news : [...news, end];
  }

  #ofChunk(chunk: UiChunk): readonly AnswerNews[] {
    switch (chunk.type) {
      case "tool-input-start": {
        if (chunk.providerExecuted === true) return [];
        const call = { id: toCallerId(chunk.toolCallId), name: chunk.toolName, args: "" };
        this.#written.set(call.id, call);
        return [{ type: "call_start", id: call.id, name: call.name }];
      }
      case "tool-input-delta": {
        const call = this.#written.get(toCallerId(chunk.toolCallId));
        if (call === undefined) return [];
        call.args += chunk.inputTextDelta;
        return [{ type: "call_delta", id: call.id, text: chunk.inputTextDelta }];
      }
      case "tool-output-available":
      case "tool-output-error":
        // The arguments of a call that did not wait were not what its tool takes, and the model calls again.
        return this.#void(toCallerId(chunk.toolCallId));
      case "reset-step":
        return [...[...this.#written.keys()].flatMap((id) => this.#void(id)), chunk];
      default:
        return [chunk];
    }
  }

  #void(id: string): readonly AnswerNews[] {
    return this.#written.delete(id) ? [{ type: "call_void", id }] : [];
  }

  #waits(
    { approval_id, tool: name, args: given }: Extract<KitEvent, { type: "approval_request" }>,
    isKnown: boolean,
  ): readonly AnswerNews[] {
    const [id] = [...awaitedOfCaller(this.#ui)].find(([, wait]) => wait === approval_id) ?? [];
    const args = JSON.stringify(given ?? {});
    const written = id === undefined ? undefined : this.#written.get(id);
    if (id === undefined || isKnown || (written !== undefined && isSame(written.args, args))) {
      this.#waiting.set(approval_id, written);
      if (id !== undefined) this.#written.delete(id);
      return [];
    }
    const call = { id, name, args };
    this.#waiting.set(approval_id, call);
    return [...this.#void(id), { type: "call_start", id, name }, { type: "call_delta", id, text: args }];
  }

  /** The calls of the caller, once there is a new one and nothing else goes on. Decisions of one request come one after the other. */
  #calls(): AnswerNews | undefined {
    const { awaited } = this.#ui.work;
    if (!awaited.every((id) => this.#waiting.has(id))) return undefined;
    const calls = awaited.flatMap((id) => this.#waiting.get(id) ?? []);
    return calls.length === 0 ? undefined : { type: "calls", calls };
  }

  #note(event: KitEvent): void {
    if (event.type === "turn") this.usage = addUsage(this.usage, event.usage);
    if (event.operation_id !== this.#operationId) return;
    if (event.type === "turn" && event.purpose !== "compaction") this.#finishReason = event.finish_reason;
    if (event.type === "error" && !event.will_retry) this.#error = event.error;
  }

  #endOf(event: KitEvent): AnswerNews | undefined {
    if (event.type !== "operation" || event.operation_id !== this.#operationId) return undefined;
    const { is_error, is_aborted, timestamp: at } = event;
    const status = is_aborted ? "cancelled" : is_error ? "failed" : "completed";
    const error = is_aborted ? stopped : this.#error;
    return { type: "end", end: { status, finishReason: this.#finishReason, error, at } };
  }
}

/** Whether what a model wrote are these arguments, which a hook or a mask can have changed. */
function isSame(written: string, args: string): boolean {
  try {
    return written === args || JSON.stringify(JSON.parse(written)) === args;
  } catch {
    return false;
  }
}

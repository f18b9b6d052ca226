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
  /** Nothing goes on before the caller has run these calls. Before, kit can still void them or change their arguments. */
  | { readonly type: "calls"; readonly calls: readonly CallerCall[] }
  | { readonly type: "end"; readonly end: AnswerEnd };

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

/** Returns the operation of a call that the caller knows by an id. */
export function operationOfCall(callId: string): string | undefined {
  const [, ulid] = /^call_([0-9A-Z]{26})-/.exec(callId) ?? [];
  return ulid === undefined ? undefined : `op_${ulid}`;
}

/** Returns the ids of the waits for the caller's results, by the ids of its calls. */
export function awaitedOfCaller({ awaitedOfPage }: UiFold): ReadonlyMap<string, string> {
  return new Map([...awaitedOfPage].map(([id, wait]) => [id.replace(/^op_/, "call_"), wait]));
}

/** Reads from its events what an operation says, and what it and its tasks use. */
export class AnswerReader {
  readonly #operationId: string;
  readonly #after: number;
  readonly #ui: UiFold;
  /** The calls that wait, by the ids of their waits; undefined for those that an earlier answer told. */
  readonly #waiting = new Map<string, CallerCall | undefined>();
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
    if (event.type === "approval_request" && event.kind === "caller" && !this.#waiting.has(event.approval_id))
      this.#waits(event, isKnown);
    if (event.index === this.#after)
      this.hasBeginning = this.#ui.work.awaited.some((id) => this.#waiting.has(id));
    if (isKnown) return [];
    this.#note(event);
    const end = this.#endOf(event) ?? this.#calls();
    return end === undefined ? chunks : [...chunks, end];
  }

  #waits(
    { approval_id, tool: name, args }: Extract<KitEvent, { type: "approval_request" }>,
    isKnown: boolean,
  ): void {
    const [id] = [...awaitedOfCaller(this.#ui)].find(([, wait]) => wait === approval_id) ?? [];
    const call = id === undefined || isKnown ? undefined : { id, name, args: JSON.stringify(args ?? {}) };
    this.#waiting.set(approval_id, call);
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

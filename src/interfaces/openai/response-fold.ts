import type { KitEvent } from "../../protocol/event.ts";
import type { OpenAiResponse, ResponseBody } from "../../protocol/openai.ts";
import {
  type CallerCall,
  type Segment,
  stopped,
  type TextDelta,
  type TurnsEnd,
  TurnTexts,
} from "./turn-texts.ts";

/** An event of a response. */
export interface ResponseEvent {
  readonly type: string;
  readonly sequence_number: number;
  readonly [field: string]: unknown;
}

type Unnumbered = Omit<ResponseEvent, "sequence_number"> & { readonly type: string };

/** How many events of a response one event of kit can become, at most. */
const perEvent = 16;
/** The events before those of the operation. */
const head = 2;

/**
 * Returns the position in the instance's events that a reader has reached with a `sequence_number`; `first_index` is the index of
 * the operation's first event.
 */
export function positionOf(sequenceNumber: number, first_index: number): number {
  return sequenceNumber < head ? 0 : first_index + Math.floor((sequenceNumber - head) / perEvent);
}

interface OpenItem {
  readonly kind: TextDelta["kind"];
  readonly turn: string;
  readonly index: number;
  readonly item: Record<string, unknown> & { readonly id: string };
  text: string;
}

/**
 * Folds the events of one operation and its tasks, from the first one on, into the events of a response. Numbers come from the
 * indexes of kit's events: they rise with gaps, and are the same in a replay, also after the log has joined deltas.
 */
export class ResponseFold {
  readonly #texts: TurnTexts;
  readonly #after: number | undefined;
  #response: OpenAiResponse;
  #open: OpenItem | undefined;
  #firstIndex: number | undefined;
  /** Whether the operation has ended, or waits for calls of the caller. */
  isOver = false;

  constructor(segment: Segment, response: OpenAiResponse) {
    this.#after = segment.after;
    this.#texts = new TurnTexts(segment);
    this.#response = response;
  }

  /** Whether calls of the caller waited where the response begins, if it goes on with their results. */
  get hasBeginning(): boolean {
    return this.#texts.hasBeginning;
  }

  /** The response so far. */
  get response(): OpenAiResponse {
    return this.#response;
  }

  /** The first events of a stream. */
  begin(): readonly ResponseEvent[] {
    return ["response.created", "response.in_progress"].map((type, sequence_number) => ({
      type,
      sequence_number,
      response: this.#response,
    }));
  }

  /** Returns the events of the response that an event of kit becomes. */
  push(event: KitEvent): readonly ResponseEvent[] {
    this.#firstIndex ??= this.#after === undefined ? event.index : this.#after + 1;
    const base = head + (event.index - this.#firstIndex) * perEvent;
    const isFirst = this.#response.status === "queued";
    if (isFirst) this.#response = { ...this.#response, status: "in_progress" };
    return this.#events(event).map((each, at) => {
      // A replay begins the item with another delta, at whose index this one can be a part of a joined one.
      const place = /text\.delta$/.test(each.type) ? perEvent - 1 : at;
      return { ...each, sequence_number: base + place };
    });
  }

  /** Ends a response whose operation ended before it had begun, or whose events do not tell the end. */
  end(status: TurnsEnd["status"], error?: TurnsEnd["error"]): readonly ResponseEvent[] {
    const events = this.#end({ status, finishReason: "stop", error: error ?? stopped, at: "" });
    return events.map((each, place) => ({ ...each, sequence_number: head + place }));
  }

  #events(event: KitEvent): readonly Unnumbered[] {
    const news = this.#texts.push(event);
    switch (news?.type) {
      case "delta":
        return this.#delta(news.delta);
      case "turn_end":
        return this.#close(news.isTorn ? "incomplete" : "completed");
      case "calls":
        return [
          ...news.calls.flatMap((call) => this.#call(call)),
          ...this.#end({ status: "completed", finishReason: "stop", error: stopped, at: event.timestamp }),
        ];
      case "end":
        return this.#end(news.end);
      default:
        return [];
    }
  }

  #delta({ kind, turn, text }: TextDelta): readonly Unnumbered[] {
    const events: Unnumbered[] = [];
    if (this.#open?.kind !== kind || this.#open.turn !== turn) {
      events.push(...this.#close("completed"));
      const index = this.#response.output.length;
      const id = this.#itemId(kind === "text" ? "msg" : "rs");
      const item =
        kind === "text"
          ? { type: "message", id, status: "in_progress", role: "assistant", content: [] }
          : { type: "reasoning", id, status: "in_progress", summary: [], content: [] };
      this.#open = { kind, turn, index, item, text: "" };
      this.#setItem(item);
      events.push(
        { type: "response.output_item.added", output_index: index, item },
        { type: "response.content_part.added", ...placeOf(this.#open), part: partOf(this.#open) },
      );
    }
    this.#open.text += text;
    const more = kind === "text" ? { logprobs: [] } : {};
    events.push({ type: `${typeOf(kind)}.delta`, ...placeOf(this.#open), delta: text, ...more });
    return events;
  }

  #close(status: "completed" | "incomplete"): readonly Unnumbered[] {
    const open = this.#open;
    if (open === undefined) return [];
    this.#open = undefined;
    const part = partOf(open);
    const item = { ...open.item, status, content: [part] };
    this.#setItem(item);
    const place = placeOf(open);
    const more = open.kind === "text" ? { logprobs: [] } : {};
    return [
      { type: `${typeOf(open.kind)}.done`, ...place, text: open.text, ...more },
      { type: "response.content_part.done", ...place, part },
      { type: "response.output_item.done", output_index: open.index, item },
    ];
  }

  #end({ status: ended, finishReason, error, at }: TurnsEnd): readonly Unnumbered[] {
    const closed = this.#close(ended === "completed" ? "completed" : "incomplete");
    this.isOver = true;
    const reason =
      finishReason === "length"
        ? "max_output_tokens"
        : finishReason === "content-filter"
          ? "content_filter"
          : undefined;
    const status = ended === "completed" && reason !== undefined ? "incomplete" : ended;
    const { output } = this.#response;
    this.#response = {
      ...this.#response,
      status,
      // The words of a killed process are void, and stand in no finished answer.
      output: ended === "completed" ? output.filter(({ status: of }) => of !== "incomplete") : output,
      usage: this.#usage,
      completed_at: status === "completed" ? Math.floor(Date.parse(at) / 1_000) : null,
      error: ended === "failed" ? { code: error.type, message: error.message } : null,
      incomplete_details: status === "incomplete" && reason !== undefined ? { reason } : null,
    };
    const type = `response.${status === "cancelled" ? "incomplete" : status}`;
    return [...closed, { type, response: this.#response }];
  }

  #call({ id: call_id, name, args }: CallerCall): readonly Unnumbered[] {
    const output_index = this.#response.output.length;
    const id = this.#itemId("fc");
    const item = { type: "function_call", id, call_id, name, arguments: args, status: "completed" };
    this.#setItem(item);
    const place = { item_id: id, output_index };
    const added = { ...item, arguments: "", status: "in_progress" };
    return [
      { type: "response.output_item.added", output_index, item: added },
      { type: "response.function_call_arguments.delta", ...place, delta: args },
      { type: "response.function_call_arguments.done", ...place, name, arguments: args },
      { type: "response.output_item.done", output_index, item },
    ];
  }

  #itemId(kind: "msg" | "rs" | "fc"): string {
    return `${kind}_${this.#response.id.replace(/^resp_/, "")}_${this.#response.output.length}`;
  }

  #setItem(item: OpenItem["item"]): void {
    const output = [...this.#response.output];
    const at = output.findIndex(({ id }) => id === item.id);
    output[at === -1 ? output.length : at] = item;
    this.#response = { ...this.#response, output };
  }

  get #usage(): OpenAiResponse["usage"] {
    const { input, output, total_tokens, cache_read, reasoning = 0 } = this.#texts.usage;
    return {
      input_tokens: input,
      input_tokens_details: { cached_tokens: cache_read },
      output_tokens: output,
      output_tokens_details: { reasoning_tokens: reasoning },
      total_tokens,
    };
  }
}

function typeOf(kind: OpenItem["kind"]): string {
  return kind === "text" ? "response.output_text" : "response.reasoning_text";
}

function placeOf({ item, index }: OpenItem): Record<string, unknown> {
  return { item_id: item.id, output_index: index, content_index: 0 };
}

function partOf({ kind, text }: OpenItem): Record<string, unknown> {
  return kind === "text"
    ? { type: "output_text", text, annotations: [], logprobs: [] }
    : { type: "reasoning_text", text };
}

/** A response that has not begun, with the fields that its request sets. */
export function newResponse(
  { id, model, createdAt }: { readonly id: string; readonly model: string; readonly createdAt: number },
  body: Partial<ResponseBody> = {},
): OpenAiResponse {
  const { background, store, reasoning } = body;
  return {
    id,
    object: "response",
    created_at: createdAt,
    completed_at: null,
    status: background === true ? "queued" : "in_progress",
    incomplete_details: null,
    model,
    previous_response_id: body.previous_response_id ?? null,
    instructions: body.instructions ?? null,
    output: [],
    error: null,
    usage: null,
    metadata: body.metadata ?? {},
    background: background ?? false,
    store: store ?? true,
    tools: (body.tools ?? []).map((tool) => ({ description: null, parameters: null, strict: null, ...tool })),
    reasoning: reasoning ? { effort: reasoning.effort ?? null, summary: null } : null,
    // An agent chooses the following itself.
    tool_choice: "auto",
    parallel_tool_calls: true,
    text: { format: { type: "text" } },
    truncation: "disabled",
    temperature: 1,
    top_p: 1,
    presence_penalty: 0,
    frequency_penalty: 0,
    top_logprobs: 0,
    max_output_tokens: null,
    max_tool_calls: null,
    service_tier: "default",
    safety_identifier: null,
    prompt_cache_key: null,
  };
}

import type { KitEvent } from "../../protocol/event.ts";
import type { OpenAiResponse, ResponseBody } from "../../protocol/openai.ts";
import {
  type AnswerEnd,
  type AnswerNews,
  AnswerReader,
  type CallerCall,
  type Segment,
  stopped,
} from "./answer-reader.ts";

/** An event of a response. */
export interface ResponseEvent {
  readonly type: string;
  readonly sequence_number: number;
  readonly [field: string]: unknown;
}

type Unnumbered = Omit<ResponseEvent, "sequence_number"> & { readonly type: string };

/** How many events of a response one event of kit can become, at most; with calls of the caller more, and then it is the last. */
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

type Item = OpenAiResponse["output"][number];

/** An item of the texts of one kind that the model says one after the other. */
interface OpenText {
  readonly index: number;
  readonly item: Item;
  readonly kind: "text" | "reasoning";
  text: string;
  readonly annotations: object[];
}

/**
 * Folds the events of one operation and its tasks, from the first one on, into the events of a response. Numbers come from the
 * indexes of kit's events: they rise with gaps, and are the same in a replay, also after the log has joined deltas.
 */
export class ResponseFold {
  readonly #answer: AnswerReader;
  readonly #after: number | undefined;
  #response: OpenAiResponse;
  #open: OpenText | undefined;
  /** The items that events of the log begin; a replay counts the same. */
  #stored = 0;
  /** The items before the running turn. */
  #kept = 0;
  #firstIndex: number | undefined;
  /** Whether the operation has ended, or waits for calls of the caller. */
  isOver = false;

  constructor(segment: Segment, response: OpenAiResponse) {
    this.#after = segment.after;
    this.#answer = new AnswerReader(segment);
    this.#response = response;
  }

  /** Whether calls of the caller waited where the response begins, if it goes on with their results. */
  get hasBeginning(): boolean {
    return this.#answer.hasBeginning;
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
    const events: ResponseEvent[] = [];
    for (const each of this.#answer.push(event).flatMap((news) => this.#toEvents(news, event))) {
      // A replay begins the item with another delta, at whose index this one can be a part of a joined one.
      const place = /text\.delta$/.test(each.type) ? perEvent - 1 : events.length;
      events.push({ ...each, sequence_number: base + place });
    }
    return events;
  }

  /** Ends a response whose operation ended before it had begun, or whose events do not tell the end. */
  end(status: AnswerEnd["status"], error?: AnswerEnd["error"]): readonly ResponseEvent[] {
    const events = this.#end({ status, finishReason: "stop", error: error ?? stopped, at: "" });
    return events.map((each, place) => ({ ...each, sequence_number: head + place }));
  }

  #toEvents(news: AnswerNews, event: KitEvent): readonly Unnumbered[] {
    switch (news.type) {
      case "text-delta":
      case "reasoning-delta": {
        const kind = news.type === "text-delta" ? "text" : "reasoning";
        const { open, opened } = this.#openText(kind);
        open.text += news.delta;
        const more = kind === "text" ? { logprobs: [] } : {};
        return [...opened, { type: `${typeOf(kind)}.delta`, ...placeOf(open), delta: news.delta, ...more }];
      }
      case "text-end":
      case "reasoning-end":
        // A turn that ends without its `turn` was torn, or has failed.
        return this.#close(isVoiding.has(event.type) ? "incomplete" : "completed");
      case "message-metadata":
        return this.#close("completed");
      case "start-step":
        this.#kept = this.#response.output.length;
        return [];
      case "reset-step": {
        // Also of the turn's items that were complete.
        const output = this.#response.output.map((item, at) =>
          at < this.#kept ? item : { ...item, status: "incomplete" },
        );
        this.#response = { ...this.#response, output };
        return [];
      }
      case "source-url": {
        // The text that follows belongs to the source.
        const { open, opened } = this.#openText("text");
        const { url, title = url } = news;
        const at = open.text.length;
        const annotation = { type: "url_citation", url, title, start_index: at, end_index: at };
        const annotation_index = open.annotations.push(annotation) - 1;
        const type = "response.output_text.annotation.added";
        return [...opened, { type, ...placeOf(open), annotation_index, annotation }];
      }
      case "file": {
        const [, result] = /^data:image\/[^;,]+;base64,(.*)$/s.exec(news.url) ?? [];
        if (result === undefined) return [];
        const id = this.#itemId("ig", ++this.#stored);
        const image = { type: "image_generation_call", id, status: "in_progress", result: null };
        const closed = this.#close("completed");
        const { index, added } = this.#add(image);
        return [...closed, added, this.#done(index, { ...image, status: "completed", result })];
      }
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

  /** Opens an item for texts, unless one of the kind is open. */
  #openText(kind: OpenText["kind"]): { readonly open: OpenText; readonly opened: readonly Unnumbered[] } {
    if (this.#open?.kind === kind) return { open: this.#open, opened: [] };
    const closed = this.#close("completed");
    const id = this.#itemId(kind === "text" ? "msg" : "rs", ++this.#stored);
    const { index, added } = this.#add(
      kind === "text"
        ? { type: "message", id, status: "in_progress", role: "assistant", content: [] }
        : { type: "reasoning", id, status: "in_progress", summary: [], content: [] },
    );
    const open = { kind, index, item: added.item, text: "", annotations: [] };
    this.#open = open;
    const part = { ...placeOf(open), part: partOf(open) };
    return { open, opened: [...closed, added, { type: "response.content_part.added", ...part }] };
  }

  #close(status: "completed" | "incomplete"): readonly Unnumbered[] {
    const open = this.#open;
    if (open === undefined) return [];
    this.#open = undefined;
    const part = partOf(open);
    const place = placeOf(open);
    const more = open.kind === "text" ? { logprobs: [] } : {};
    return [
      { type: `${typeOf(open.kind)}.done`, ...place, text: open.text, ...more },
      { type: "response.content_part.done", ...place, part },
      this.#done(open.index, { ...open.item, status, content: [part] }),
    ];
  }

  /** Clients run a call once its item is done, whatever its status, and refuse to end with one that never is: so it comes whole. */
  #call({ id: call_id, name, args }: CallerCall): readonly Unnumbered[] {
    const id = this.#itemId("fc", call_id.replace(/^call_[^-]*-/, ""));
    const item = { type: "function_call", id, call_id, name, arguments: "", status: "in_progress" };
    const { index, added } = this.#add(item);
    const place = { item_id: id, output_index: index };
    return [
      added,
      { type: "response.function_call_arguments.delta", ...place, delta: args },
      { type: "response.function_call_arguments.done", ...place, name, arguments: args },
      this.#done(index, { ...item, arguments: args, status: "completed" }),
    ];
  }

  #end({ status: ended, finishReason, error, at }: AnswerEnd): readonly Unnumbered[] {
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

  /** The id of an item, which names the response, and is the same in a replay. */
  #itemId(kind: "msg" | "rs" | "fc" | "ig", name: string | number): string {
    return `${kind}_${this.#response.id.replace(/^resp_/, "")}-${name}`;
  }

  #add(item: Item): { readonly index: number; readonly added: Unnumbered & { readonly item: Item } } {
    const { output } = this.#response;
    this.#response = { ...this.#response, output: [...output, item] };
    const output_index = output.length;
    return {
      index: output_index,
      added: { type: "response.output_item.added", output_index, item },
    };
  }

  #done(output_index: number, item: Item): Unnumbered {
    const output = this.#response.output.with(output_index, item);
    this.#response = { ...this.#response, output };
    return { type: "response.output_item.done", output_index, item };
  }

  get #usage(): OpenAiResponse["usage"] {
    const { input, output, total_tokens, cache_read, reasoning = 0 } = this.#answer.usage;
    return {
      input_tokens: input,
      input_tokens_details: { cached_tokens: cache_read },
      output_tokens: output,
      output_tokens_details: { reasoning_tokens: reasoning },
      total_tokens,
    };
  }
}

/** The events at which a text ends that its turn has not ended. */
const isVoiding: ReadonlySet<KitEvent["type"]> = new Set([
  "operation_start",
  "turn_request",
  "error",
  "aborted",
  "operation",
]);

function typeOf(kind: OpenText["kind"]): string {
  return kind === "text" ? "response.output_text" : "response.reasoning_text";
}

function placeOf({ item, index }: OpenText): Record<string, unknown> {
  return { item_id: item.id, output_index: index, content_index: 0 };
}

function partOf({ kind, text, annotations }: OpenText): Record<string, unknown> {
  return kind === "text"
    ? { type: "output_text", text, annotations: [...annotations], logprobs: [] }
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
    tool_choice: body.tool_choice ?? "auto",
    // An agent chooses the following itself.
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

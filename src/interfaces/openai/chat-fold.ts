import type { KitEvent } from "../../protocol/event.ts";
import type { Usage } from "../../protocol/message.ts";
import type { ChatCompletion } from "../../protocol/openai.ts";
import {
  type AnswerEnd,
  type AnswerNews,
  AnswerReader,
  type CallerCall,
  type Segment,
  stopped,
} from "./answer-reader.ts";

interface ChatHead extends Segment {
  /** The agent's name. */
  readonly model: string;
  /** When the work was accepted, in seconds since 1970. */
  readonly created: number;
}

/** A part of an answer as a client of Chat Completions gets it. */
export interface ChatDelta {
  readonly role?: "assistant";
  readonly content?: string;
  /** The field that DeepSeek, vLLM, LiteLLM and their clients use; OpenAI itself has none. */
  readonly reasoning_content?: string;
  readonly tool_calls?: readonly object[];
  readonly annotations?: readonly object[];
}

/** Folds the events of one operation and its tasks into a completion, or its chunks. */
export class ChatFold {
  readonly #head: Pick<ChatCompletion, "id" | "created" | "model">;
  readonly #answer: AnswerReader;
  #text = "";
  #reasoning = "";
  #annotations: readonly object[] = [];
  /** The texts before the running turn. */
  #kept = { text: "", reasoning: "", annotations: this.#annotations };
  /** The text that stands between the texts before and after the agent's own calls, which are one message here. */
  #gap = "";
  #calls: readonly CallerCall[] = [];
  #end: AnswerEnd | undefined;
  /** Whether a text became void that the chunks have said: no later chunk can take it back. */
  isTorn = false;

  constructor({ operationId, after, model, created }: ChatHead) {
    this.#head = { id: `chatcmpl-${operationId.replace(/^op_/, "")}`, created, model };
    this.#answer = new AnswerReader({ operationId, after });
  }

  /** Whether the operation has ended, or waits for calls of the caller. */
  get isOver(): boolean {
    return this.#end !== undefined || this.#calls.length > 0;
  }

  /** Why there is no answer; undefined if there is one. */
  get error(): AnswerEnd["error"] | undefined {
    if (this.#calls.length > 0) return undefined;
    if (this.#end === undefined) return stopped;
    return this.#end.status === "completed" ? undefined : this.#end.error;
  }

  /** Returns what an event adds to the answer. */
  push(event: KitEvent): readonly ChatDelta[] {
    return this.#answer.push(event).flatMap((news) => this.#add(news) ?? []);
  }

  #add(news: AnswerNews): ChatDelta | undefined {
    switch (news.type) {
      case "start-step":
        this.#kept = { text: this.#text, reasoning: this.#reasoning, annotations: this.#annotations };
        this.#gap = this.#text === "" ? "" : "\n\n";
        return undefined;
      case "reset-step": {
        const { text, reasoning, annotations } = this.#kept;
        this.isTorn ||= this.#text.length > text.length;
        [this.#text, this.#reasoning, this.#annotations] = [text, reasoning, annotations];
        this.#gap = text === "" ? "" : "\n\n";
        return undefined;
      }
      case "reasoning-delta":
        this.#reasoning += news.delta;
        return { reasoning_content: news.delta };
      case "text-delta": {
        const content = this.#gap + news.delta;
        this.#gap = "";
        this.#text += content;
        return { content };
      }
      case "source-url": {
        const at = this.#text.length;
        const { url, title = url } = news;
        const annotation = {
          type: "url_citation",
          url_citation: { url, title, start_index: at, end_index: at },
        };
        this.#annotations = [...this.#annotations, annotation];
        return { annotations: [annotation] };
      }
      case "calls":
        this.#calls = news.calls;
        return { tool_calls: news.calls.map((call, index) => ({ index, ...toToolCall(call) })) };
      case "end":
        this.#end = news.end;
        return undefined;
      default:
        return undefined;
    }
  }

  /** The whole answer. */
  toCompletion(): ChatCompletion {
    const message = {
      role: "assistant",
      content: this.#text === "" && this.#calls.length > 0 ? null : this.#text,
      refusal: null,
      ...(this.#reasoning === "" ? {} : { reasoning_content: this.#reasoning }),
      ...(this.#annotations.length === 0 ? {} : { annotations: this.#annotations }),
      ...(this.#calls.length === 0 ? {} : { tool_calls: this.#calls.map(toToolCall) }),
    };
    const choice = { index: 0, message, finish_reason: this.#finishReason, logprobs: null };
    return { ...this.#head, object: "chat.completion", choices: [choice], usage: this.#usage };
  }

  /** A chunk with a part of the answer. */
  toChunk(delta: ChatDelta): object {
    return this.#chunk([{ index: 0, delta, finish_reason: null, logprobs: null }]);
  }

  /** The last chunks: the reason of the end, and the usage if the client asks for it. */
  toLastChunks({ withUsage }: { readonly withUsage: boolean }): readonly object[] {
    const end = this.#chunk([{ index: 0, delta: {}, finish_reason: this.#finishReason, logprobs: null }]);
    return withUsage ? [end, { ...this.#chunk([]), usage: this.#usage }] : [end];
  }

  #chunk(choices: readonly object[]): object {
    return { ...this.#head, object: "chat.completion.chunk", choices };
  }

  get #finishReason(): string {
    if (this.#calls.length > 0) return "tool_calls";
    const reason = this.#end?.finishReason;
    return reason === "length" ? reason : reason === "content-filter" ? "content_filter" : "stop";
  }

  get #usage(): ChatCompletion["usage"] {
    const { input, output, total_tokens, cache_read, reasoning = 0 }: Usage = this.#answer.usage;
    return {
      prompt_tokens: input,
      completion_tokens: output,
      total_tokens,
      prompt_tokens_details: { cached_tokens: cache_read },
      completion_tokens_details: { reasoning_tokens: reasoning },
    };
  }
}

function toToolCall({ id, name, args }: CallerCall): object {
  return { id, type: "function", function: { name, arguments: args } };
}

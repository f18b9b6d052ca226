import type { KitEvent } from "../../protocol/event.ts";
import type { Usage } from "../../protocol/message.ts";
import type { ChatCompletion } from "../../protocol/openai.ts";
import { type Segment, stopped, type TurnsEnd, TurnTexts } from "./turn-texts.ts";

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
}

/** Folds the events of one operation and its tasks into a completion, or its chunks. */
export class ChatFold {
  readonly #head: Pick<ChatCompletion, "id" | "created" | "model">;
  readonly #texts: TurnTexts;
  #text = "";
  #reasoning = "";
  /** The lengths of the texts when the running turn began. */
  #kept = { text: 0, reasoning: 0 };
  #lastTurn: string | undefined;
  #calls: readonly object[] = [];
  #end: TurnsEnd | undefined;
  /** Whether a text became void that the chunks have said: no later chunk can take it back. */
  isTorn = false;

  constructor({ operationId, after, model, created }: ChatHead) {
    this.#head = { id: `chatcmpl-${operationId.replace(/^op_/, "")}`, created, model };
    this.#texts = new TurnTexts({ operationId, after });
  }

  /** Whether the operation has ended, or waits for calls of the caller. */
  get isOver(): boolean {
    return this.#end !== undefined || this.#calls.length > 0;
  }

  /** Why there is no answer; undefined if there is one. */
  get error(): TurnsEnd["error"] | undefined {
    if (this.#calls.length > 0) return undefined;
    if (this.#end === undefined) return stopped;
    return this.#end.status === "completed" ? undefined : this.#end.error;
  }

  /** Returns what an event adds to the answer. */
  push(event: KitEvent): ChatDelta | undefined {
    const news = this.#texts.push(event);
    switch (news?.type) {
      case "delta": {
        const { kind, turn } = news.delta;
        if (kind === "reasoning") {
          this.#reasoning += news.delta.text;
          return { reasoning_content: news.delta.text };
        }
        // The texts before and after the agent's own calls are one message here.
        const isNext = this.#text !== "" && this.#lastTurn !== turn;
        const content = isNext ? `\n\n${news.delta.text}` : news.delta.text;
        this.#lastTurn = turn;
        this.#text += content;
        return { content };
      }
      case "turn_end":
        if (news.isTorn) {
          this.isTorn ||= this.#text.length > this.#kept.text;
          this.#text = this.#text.slice(0, this.#kept.text);
          this.#reasoning = this.#reasoning.slice(0, this.#kept.reasoning);
        }
        this.#kept = { text: this.#text.length, reasoning: this.#reasoning.length };
        return undefined;
      case "calls": {
        const calls = news.calls.map(({ id, name, args }) => ({
          id,
          type: "function",
          function: { name, arguments: args },
        }));
        this.#calls = calls;
        return { tool_calls: calls.map((call, index) => ({ index, ...call })) };
      }
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
      ...(this.#calls.length === 0 ? {} : { tool_calls: this.#calls }),
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
    const { input, output, total_tokens, cache_read, reasoning = 0 }: Usage = this.#texts.usage;
    return {
      prompt_tokens: input,
      completion_tokens: output,
      total_tokens,
      prompt_tokens_details: { cached_tokens: cache_read },
      completion_tokens_details: { reasoning_tokens: reasoning },
    };
  }
}

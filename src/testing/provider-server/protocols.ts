/** The answer of a model in one call, as the server sends it. */
export interface ProviderAnswer {
  readonly text?: string;
  readonly toolCall?: { readonly id: string; readonly name: string; readonly args: string };
}

/** One provider's streaming protocol: its path, and the chunks of its stream. */
export interface ProviderProtocol {
  readonly provider: "openai" | "anthropic" | "google" | "local";
  /** The path in `providers.<name>.base_url`, after the server's address. */
  readonly basePath: string;
  readonly matches: (path: string) => boolean;
  /** The stream as it is sent, one event per entry. */
  readonly chunks: (answer: ProviderAnswer) => readonly string[];
  readonly errorBody: (message: string) => string;
  /** An error that replaces the rest of a stream. */
  readonly errorChunk: (message: string) => string;
}

const sse = (data: unknown, event?: string): string =>
  `${event === undefined ? "" : `event: ${event}\n`}data: ${JSON.stringify(data)}\n\n`;

function halves(text: string): readonly string[] {
  const middle = Math.ceil(text.length / 2);
  return [text.slice(0, middle), text.slice(middle)].filter((part) => part !== "");
}

/** OpenAI's chat completions, which every compatible endpoint supports. */
const chatCompletions: ProviderProtocol = {
  provider: "local",
  basePath: "/compatible/v1",
  // OpenAI's audio models use it too.
  matches: (path) => /^\/(compatible|openai)\/v1\/chat\/completions$/.test(path),
  chunks({ text, toolCall }) {
    const chunk = (delta: unknown, finish_reason: string | null = null): string =>
      sse({
        id: "c1",
        object: "chat.completion.chunk",
        created: 1,
        model: "m",
        choices: [{ index: 0, delta, finish_reason }],
      });
    const chunks = [
      chunk({ role: "assistant", content: "" }),
      ...halves(text ?? "").map((content) => chunk({ content })),
    ];
    if (toolCall !== undefined) {
      const call = (part: object): string => chunk({ tool_calls: [{ index: 0, ...part }] });
      chunks.push(
        call({ id: toolCall.id, type: "function", function: { name: toolCall.name, arguments: "" } }),
      );
      for (const part of halves(toolCall.args)) chunks.push(call({ function: { arguments: part } }));
    }
    chunks.push(chunk({}, toolCall === undefined ? "stop" : "tool_calls"));
    chunks.push(
      sse({
        id: "c1",
        object: "chat.completion.chunk",
        created: 1,
        model: "m",
        choices: [],
        usage: { prompt_tokens: 11, completion_tokens: 7, total_tokens: 18 },
      }),
    );
    return [...chunks, "data: [DONE]\n\n"];
  },
  errorBody: (message) =>
    JSON.stringify({ error: { message, type: "server_error", param: null, code: null } }),
  errorChunk: (message) => sse({ error: { message, type: "server_error", param: null, code: null } }),
};

/** OpenAI's responses, which `openai/…` models use. */
const responses: ProviderProtocol = {
  provider: "openai",
  basePath: "/openai/v1",
  matches: (path) => path === "/openai/v1/responses",
  chunks({ text, toolCall }) {
    let sequence_number = 0;
    const event = (type: string, data: object): string => {
      sequence_number += 1;
      return sse({ type, sequence_number, ...data }, type);
    };
    const response = { id: "r1", object: "response", created_at: 1, model: "m", output: [] };
    const chunks = [event("response.created", { response: { ...response, status: "in_progress" } })];
    if (text !== undefined) {
      const item = { id: "m1", type: "message", role: "assistant", status: "in_progress", content: [] };
      chunks.push(event("response.output_item.added", { output_index: 0, item }));
      for (const delta of halves(text)) {
        chunks.push(
          event("response.output_text.delta", {
            item_id: "m1",
            output_index: 0,
            content_index: 0,
            delta,
            logprobs: [],
          }),
        );
      }
      const content = [{ type: "output_text", text, annotations: [], logprobs: [] }];
      chunks.push(
        event("response.output_item.done", {
          output_index: 0,
          item: { ...item, status: "completed", content },
        }),
      );
    }
    if (toolCall !== undefined) {
      const item = {
        id: "f1",
        type: "function_call",
        call_id: toolCall.id,
        name: toolCall.name,
        arguments: "",
        status: "in_progress",
      };
      chunks.push(event("response.output_item.added", { output_index: 1, item }));
      for (const delta of halves(toolCall.args))
        chunks.push(
          event("response.function_call_arguments.delta", { item_id: "f1", output_index: 1, delta }),
        );
      chunks.push(
        event("response.function_call_arguments.done", {
          item_id: "f1",
          output_index: 1,
          arguments: toolCall.args,
        }),
      );
      chunks.push(
        event("response.output_item.done", {
          output_index: 1,
          item: { ...item, arguments: toolCall.args, status: "completed" },
        }),
      );
    }
    const usage = {
      input_tokens: 11,
      input_tokens_details: { cached_tokens: 3 },
      output_tokens: 7,
      output_tokens_details: { reasoning_tokens: 0 },
      total_tokens: 18,
    };
    chunks.push(
      event("response.completed", {
        response: {
          ...response,
          status: "completed",
          incomplete_details: null,
          usage,
          service_tier: "default",
        },
      }),
    );
    return chunks;
  },
  errorBody: chatCompletions.errorBody,
  errorChunk: (message) =>
    sse({ type: "error", sequence_number: 99, code: "server_error", message, param: null }, "error"),
};

const anthropic: ProviderProtocol = {
  provider: "anthropic",
  basePath: "/anthropic/v1",
  matches: (path) => path === "/anthropic/v1/messages",
  chunks({ text, toolCall }) {
    const event = (type: string, data: object): string => sse({ type, ...data }, type);
    const usage = {
      input_tokens: 8,
      cache_read_input_tokens: 3,
      cache_creation_input_tokens: 0,
      output_tokens: 1,
    };
    const message = {
      id: "a1",
      type: "message",
      role: "assistant",
      model: "m",
      content: [],
      stop_reason: null,
      stop_sequence: null,
      usage,
    };
    const chunks = [event("message_start", { message })];
    let index = 0;
    const block = (content_block: object, deltas: readonly object[]): void => {
      chunks.push(event("content_block_start", { index, content_block }));
      for (const delta of deltas) chunks.push(event("content_block_delta", { index, delta }));
      chunks.push(event("content_block_stop", { index }));
      index += 1;
    };
    if (text !== undefined)
      block(
        { type: "text", text: "" },
        halves(text).map((part) => ({ type: "text_delta", text: part })),
      );
    if (toolCall !== undefined) {
      const deltas = halves(toolCall.args).map((partial_json) => ({
        type: "input_json_delta",
        partial_json,
      }));
      block({ type: "tool_use", id: toolCall.id, name: toolCall.name, input: {} }, deltas);
    }
    const stop_reason = toolCall === undefined ? "end_turn" : "tool_use";
    chunks.push(
      event("message_delta", { delta: { stop_reason, stop_sequence: null }, usage: { output_tokens: 7 } }),
    );
    return [...chunks, event("message_stop", {})];
  },
  errorBody: (message) => JSON.stringify({ type: "error", error: { type: "api_error", message } }),
  errorChunk: (message) => sse({ type: "error", error: { type: "overloaded_error", message } }, "error"),
};

const google: ProviderProtocol = {
  provider: "google",
  basePath: "/google/v1beta",
  matches: (path) => path.startsWith("/google/v1beta/models/") && path.includes(":streamGenerateContent"),
  chunks({ text, toolCall }) {
    const usageMetadata = {
      promptTokenCount: 11,
      candidatesTokenCount: 7,
      totalTokenCount: 18,
      cachedContentTokenCount: 3,
    };
    const part = (content: object, finishReason?: string): string =>
      sse({
        candidates: [
          {
            index: 0,
            content: { role: "model", parts: [content] },
            finishReason,
          },
        ],
        usageMetadata,
      });
    const chunks = halves(text ?? "").map((half) => part({ text: half }));
    if (toolCall !== undefined) {
      // This protocol carries arguments as a value: broken JSON cannot be sent, but a wrong shape can.
      const args = toObject(toolCall.args);
      chunks.push(part({ functionCall: { id: toolCall.id, name: toolCall.name, args } }));
    }
    return [...chunks, part({ text: "" }, "STOP")];
  },
  errorBody: (message) => JSON.stringify({ error: { code: 500, message, status: "INTERNAL" } }),
  errorChunk: (message) => sse({ error: { code: 503, message, status: "UNAVAILABLE" } }),
};

function toObject(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return { broken: text };
  }
}

export const providerProtocols: readonly ProviderProtocol[] = [chatCompletions, responses, anthropic, google];

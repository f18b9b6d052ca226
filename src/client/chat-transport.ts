import { withDeadline } from "../base/abort.ts";
import { systemClock } from "../base/clock.ts";
import { createId } from "../base/id.ts";
import type { ApprovalBody } from "../protocol/approval.ts";
import type { CallerTool } from "../protocol/prompt.ts";
import type { UiChunk } from "../protocol/ui.ts";
import { createSseParser, type ServerSentEvent } from "./read-stream.ts";
import { backoff } from "./transport.ts";

export interface KitChatOptions {
  /** The address of the agent's chats: `/agents/<name>/<id>/ui`, with the server in front of it if it is another one than the page's. */
  readonly api: string;
  /** Headers of every request, such as `authorization`. A function is called for each request. */
  readonly headers?: ChatHeaders | (() => ChatHeaders | Promise<ChatHeaders>) | undefined;
  readonly credentials?: "include" | "same-origin" | "omit" | undefined;
  /** Default: the global `fetch`. */
  readonly fetch?: typeof globalThis.fetch | undefined;
  /** Tools that the page runs: `useChat` gets their calls, and `addToolOutput` answers them. The agent has them for each message of the page. */
  readonly tools?: readonly CallerTool[] | undefined;
  /** Failures in a row after which an answer is given up; default 12, which takes about 45 seconds. */
  readonly reconnects?: number | undefined;
}

type ChatHeaders = Readonly<Record<string, string>>;

interface RequestOptions {
  readonly chatId: string;
  readonly abortSignal?: AbortSignal | undefined;
  readonly headers?: ChatHeaders | Headers | undefined;
  readonly body?: object | undefined;
}

export interface ChatDecision extends ApprovalBody {
  readonly chatId: string;
  /** The id of the assistant's message with the call. */
  readonly messageId: string;
  /** `approval.id` of the part of the call. */
  readonly approvalId: string;
}

/** A connection that is silent for this time is dead: the server sends a comment every 15 s. */
const idleMs = 45_000;
const delays = { baseDelayMs: 250, maxDelayMs: 5_000 };

/**
 * The transport of a chat page for `useChat` of the AI SDK, against an agent of kit. If the connection of an answer breaks, it
 * reconnects and goes on after the last chunk. Closing the page, unmounting and `stop` of `useChat` only disconnect: the agent
 * goes on until `stop` of this transport.
 *
 * @example
 * ```ts
 * import { KitChatTransport } from "kit/client";
 *
 * const transport = new KitChatTransport({ api: "/agents/desk/42/ui" });
 * // useChat({ id: "chat-1", messages, resume: true, transport })
 * await transport.stop("chat-1");
 * ```
 */
export class KitChatTransport {
  readonly #options: KitChatOptions;
  /** The operation that each chat shows. */
  readonly #operations = new Map<string, string>();
  /** The chats whose answers go on because of `approve`. */
  readonly #approved = new Set<string>();

  constructor(options: KitChatOptions) {
    this.#options = options;
  }

  /** Sends the newest message; the server has the others. Throws an `Error` with the server's sentence if it refuses. */
  async sendMessages(
    options: RequestOptions & {
      readonly trigger: "submit-message" | "regenerate-message";
      readonly messageId?: string | undefined;
      readonly messages: readonly object[];
    },
  ): Promise<ReadableStream<UiChunk>> {
    const { chatId: id, messages, trigger, messageId, body } = options;
    this.#operations.delete(id);
    const { tools } = this.#options;
    // An edited message keeps its id, and an answer can be asked for again and again: their requests are repeatable by an id of their own.
    const request_id = createId("req");
    const last = messages.slice(-1);
    const sent = JSON.stringify({ tools, ...body, id, messages: last, trigger, messageId, request_id });
    const send = (): Promise<Response> => this.#fetch("", options, { method: "POST", body: sent });
    return this.#toStream(await this.#insist(send, options.abortSignal), { ...options, send });
  }

  /** Takes up the running answer of a chat from its beginning; null if none runs. */
  async reconnectToStream(options: RequestOptions): Promise<ReadableStream<UiChunk> | null> {
    const { chatId } = options;
    // An answer that goes on because of a decision can have ended by now.
    const operation = this.#approved.delete(chatId) ? this.#operations.get(chatId) : undefined;
    const send = (): Promise<Response> => this.#fetch(streamPath(chatId, operation), options);
    const response = await this.#insist(send, options.abortSignal);
    return response.status === 204 ? null : this.#toStream(response, { ...options, send });
  }

  /**
   * Stops the answer that the chat shows, or what runs in the chat if it shows none yet. Returns whether something was stopped. An
   * answer that follows is not touched, however late the request arrives.
   */
  async stop(chatId: string): Promise<boolean> {
    const body = JSON.stringify({ operation_id: this.#operations.get(chatId) });
    const path = `/${encodeURIComponent(chatId)}/stop`;
    const response = await this.#fetch(path, { chatId }, { method: "POST", body });
    const reply = (await response.json()) as { readonly stopped: boolean };
    return reply.stopped;
  }

  /**
   * Decides about a waiting call of an answer, also with other arguments (`args`), which `addToolApprovalResponse` of `useChat`
   * cannot send. Call `resumeStream` of `useChat` afterwards. Throws an `Error` if the call does not wait.
   */
  async approve({ chatId, messageId, approvalId, ...decision }: ChatDecision): Promise<void> {
    const url = this.#options.api.replace(/\/ui\/?$/, `/approvals/${encodeURIComponent(approvalId)}`);
    await this.#send(url, {}, { method: "POST", body: JSON.stringify(decision) });
    this.#operations.set(chatId, messageId);
    this.#approved.add(chatId);
  }

  #fetch(path: string, options: Partial<RequestOptions>, init?: RequestInit): Promise<Response> {
    return this.#send(`${this.#options.api.replace(/\/$/, "")}${path}`, options, init);
  }

  async #send(url: string, options: Partial<RequestOptions>, init: RequestInit = {}): Promise<Response> {
    const { fetch: send = globalThis.fetch, credentials, headers: own } = this.#options;
    const headers = new Headers(
      options.headers === undefined ? {} : Object.fromEntries(new Headers(options.headers)),
    );
    for (const [name, value] of Object.entries((typeof own === "function" ? await own() : own) ?? {}))
      headers.set(name, value);
    for (const [name, value] of Object.entries(init.headers ?? {})) headers.set(name, value);
    if (init.body !== undefined) headers.set("content-type", "application/json");
    const response = await send(url, {
      ...init,
      headers,
      ...(credentials && { credentials }),
      ...(options.abortSignal && { signal: options.abortSignal }),
    });
    if (!response.ok) throw new Refusal(response.status, await toSentence(response));
    return response;
  }

  /** Repeats a request that did not reach the server, or that the server could not answer now. */
  async #insist(send: () => Promise<Response>, signal: AbortSignal | undefined): Promise<Response> {
    for (let failures = 1; ; failures += 1) {
      try {
        return await send();
      } catch (error) {
        await this.#pause(error, failures, signal);
      }
    }
  }

  /** Waits before the next attempt. Throws the error if there is none. */
  async #pause(error: unknown, failures: number, signal: AbortSignal | undefined): Promise<void> {
    const isFinal = error instanceof Refusal && error.status < 500 && error.status !== 429;
    if (signal?.aborted || isFinal || failures > (this.#options.reconnects ?? 12)) throw error;
    await systemClock.sleep(backoff(Math.min(failures, 10), delays), signal);
  }

  #toStream(
    first: Response,
    options: RequestOptions & { readonly send: () => Promise<Response> },
  ): ReadableStream<UiChunk> {
    const chunks = this.#chunks(first, options);
    return new ReadableStream<UiChunk>({
      async pull(controller) {
        const { done, value } = await chunks.next();
        if (done) controller.close();
        else controller.enqueue(value);
      },
      async cancel() {
        await chunks.return(undefined);
      },
    });
  }

  async *#chunks(
    first: Response,
    { send, ...options }: RequestOptions & { readonly send: () => Promise<Response> },
  ): AsyncGenerator<UiChunk, undefined> {
    const { chatId, abortSignal } = options;
    let response: Response | undefined = first;
    let position: string | undefined;
    let operation = "";
    let failures = 0;
    const again = (last: string): Promise<Response> =>
      this.#fetch(streamPath(chatId, operation), options, { headers: { "last-event-id": last } });
    for (;;) {
      try {
        response ??= await (position === undefined ? send() : again(position));
        if (response.status === 204) return;
        // The chunks of one event come whole, or not at all: after a cut they come again.
        let chunksOfEvent: UiChunk[] = [];
        for await (const { id, data } of readFrames(response)) {
          if (data !== "[DONE]") chunksOfEvent.push(JSON.parse(data));
          if (id === undefined) continue;
          position = id;
          failures = 0;
          for (const chunk of chunksOfEvent) {
            if (chunk.type === "start") {
              operation = chunk.messageId;
              this.#operations.set(chatId, operation);
            }
            yield chunk;
          }
          chunksOfEvent = [];
          if (data === "[DONE]") return;
        }
        throw new TypeError("The connection broke off.");
      } catch (error) {
        response = undefined;
        failures += 1;
        await this.#pause(error, failures, abortSignal);
      }
    }
  }
}

function streamPath(chatId: string, operation: string | undefined): string {
  const query = operation === undefined ? "" : `?operation_id=${encodeURIComponent(operation)}`;
  return `/${encodeURIComponent(chatId)}/stream${query}`;
}

/** The server's refusal of a request; its message is a sentence for the page. */
class Refusal extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.name = "ChatRefusal";
    this.status = status;
  }
}

async function toSentence(response: Response): Promise<string> {
  const text = await response.text().catch(() => "");
  const isPlain = (response.headers.get("content-type") ?? "").startsWith("text/plain");
  if (isPlain && text !== "") return text;
  try {
    return String(JSON.parse(text).error.message);
  } catch {
    return `The server answered with status ${response.status}.`;
  }
}

async function* readFrames({ body }: Response): AsyncGenerator<ServerSentEvent> {
  if (body === null) return;
  const reader = body.getReader();
  const decoder = new TextDecoder();
  const parser = createSseParser();
  try {
    for (;;) {
      const { done, value } = await withDeadline(reader.read(), {
        ms: idleMs,
        onTimeout: () => new TypeError("The server says nothing."),
      });
      if (done) return;
      yield* parser.push(decoder.decode(value, { stream: true }));
    }
  } finally {
    reader.cancel().catch(() => undefined);
  }
}

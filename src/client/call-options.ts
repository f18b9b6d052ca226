import type { TraceContext } from "../protocol/tracing.ts";

/** How a client reaches its server. */
export interface KitClientOptions {
  /**
   * Where the server is, such as `http://127.0.0.1:2024`; a path in it stays in front of every route. In a
   * page it may be a path alone, such as `/`.
   */
  readonly baseUrl: string | URL;
  /** Sent as `Authorization: Bearer`, and to WebSockets as a subprotocol. */
  readonly apiKey?: string | undefined;
  /** Sent with every request; a WebSocket of a browser can send none. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Default: the global one. */
  readonly fetch?: typeof globalThis.fetch;
  /** Ends all that the client does. */
  readonly signal?: AbortSignal | undefined;
  /**
   * The time of one call with all its attempts; default 30,000, `Infinity` for no limit. Calls that wait for an agent or a
   * workflow have no limit but their own.
   */
  readonly timeoutMs?: number | undefined;
  /** A stream or WebSocket that is silent for this long is taken to be broken; default 45,000. */
  readonly idleTimeoutMs?: number | undefined;
  readonly retry?: Partial<RetryPolicy>;
  /** Asked before each request, and sent with it: where the caller stands in a trace. `activeTrace` of `kit/otel` is one. */
  readonly trace?: () => TraceContext | undefined;
}

/**
 * When a call is tried again: after a network error, 429 or 503, and only where doing it twice is doing
 * it once: reading, deleting, cancelling, and what carries an idempotency key.
 */
export interface RetryPolicy {
  /** Attempts at a call, or to begin a stream. Default 4; 1 for no retry. */
  readonly attempts: number;
  /**
   * Attempts in a row to take up a stream that had begun; 0 for none. Default three times `attempts`, which is about
   * a minute for 4: a server that starts again is waited for. None where `attempts` is 1.
   */
  readonly reconnects: number;
  /** Before the second attempt; doubled for each further one, with jitter. Default 250. */
  readonly baseDelayMs: number;
  /** Default 10,000. A server that asks for a longer wait is not asked again. */
  readonly maxDelayMs: number;
}

/** The options of one call. */
export interface CallOptions {
  /** Rejects with its reason, and closes the connection. */
  readonly signal?: AbortSignal | undefined;
  /** The time of the call with all its attempts; for a stream, until it begins. */
  readonly timeoutMs?: number | undefined;
}

export interface WorkOptions extends CallOptions {
  /** The same work, asked for again under the same key, is done once. 1 to 128 printable ASCII characters. */
  readonly idempotencyKey?: string | undefined;
}

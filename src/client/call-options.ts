import type { TraceContext } from "../protocol/tracing.ts";

/** How a client reaches its server. */
export interface KitClientOptions {
  /**
   * The address of the server, such as `http://127.0.0.1:2024`; a path in it is the prefix of every route. In a web page
   * it can be only a path, such as `/`.
   */
  readonly baseUrl: string | URL;
  /** Sent as `Authorization: Bearer`, and to WebSockets as a subprotocol. */
  readonly apiKey?: string | undefined;
  /** Sent with every request, except with a browser's WebSockets, which cannot send headers. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Default: the global `fetch`. */
  readonly fetch?: typeof globalThis.fetch;
  /** Aborts all calls of the client. */
  readonly signal?: AbortSignal | undefined;
  /**
   * The time limit of one call with all its attempts; default 30,000, `Infinity` for no limit. Calls that wait for an
   * agent or a workflow only have the limit in their own options.
   */
  readonly timeoutMs?: number | undefined;
  /** The time after which a silent stream or WebSocket counts as broken; default 45,000. */
  readonly idleTimeoutMs?: number | undefined;
  readonly retry?: Partial<RetryPolicy>;
  /** Returns the caller's trace position, which is sent with each request. `activeTrace` of `kit/otel` is such a function. */
  readonly trace?: () => TraceContext | undefined;
}

/**
 * When the client retries a call: after a network error, 429 or 503, and only if repeating the call is safe: reads,
 * deletes, cancels, and calls with an idempotency key. Unless `attempts` or `reconnects` is set, a 429 or 503 does not count
 * as an attempt: the client repeats the call until its time limit, and resumes a stream that had started until its signal
 * fires.
 */
export interface RetryPolicy {
  /** Attempts of a call, or to start a stream. Default 4; 1 for no retry. */
  readonly attempts: number;
  /**
   * Consecutive attempts to resume a stream that had started; 0 for none. Default: three times `attempts`, which takes
   * about a minute for 4, so that a server can restart; none if `attempts` is 1.
   */
  readonly reconnects: number;
  /** The delay before the second attempt; it doubles for each further one, with jitter. Default 250. */
  readonly baseDelayMs: number;
  /** The longest delay; default 10,000. If the server asks for a longer one, the client does not retry. */
  readonly maxDelayMs: number;
}

/** The options of one call. */
export interface CallOptions {
  /** Aborts the call, which rejects with the signal's reason, and closes the connection. */
  readonly signal?: AbortSignal | undefined;
  /** The time limit of the call with all its attempts; for a stream, until it starts. */
  readonly timeoutMs?: number | undefined;
}

export interface WorkOptions extends CallOptions {
  /** Work that is requested again under the same key is done once. 1 to 128 printable ASCII characters. */
  readonly idempotencyKey?: string | undefined;
}

import { systemClock } from "../base/clock.ts";
import { KitError } from "../base/kit-error.ts";
import type { ReplyOf } from "../protocol/routes/route.ts";
import type { Routes } from "../protocol/routes/routes.ts";
import type { KitClientOptions, RetryPolicy } from "./call-options.ts";
import { inTime } from "./in-time.ts";
import { type Call, type CallInput, route } from "./route-call.ts";
import { isRefusal, isTransient, notAnAnswer, toKitError, unreachable } from "./to-kit-error.ts";

/** The parts of a client that all calls share. */
export interface Transport {
  /** `isLimited`: whether the caller has set the number of attempts. */
  readonly retry: RetryPolicy & { readonly isLimited: boolean };
  readonly timeoutMs: number;
  readonly idleTimeoutMs: number;
  readonly signal: AbortSignal | undefined;
  readonly apiKey: string | undefined;
  readonly trace: NonNullable<KitClientOptions["trace"]>;
  /** Returns the address of a path. Throws `invalid_request` for a segment that no path can have. */
  url(call: Pick<Call, "path" | "query">): URL;
  /** Calls a route by its key in the table, and returns the JSON of the answer. */
  request<Key extends keyof Routes>(key: Key, input: CallInput<Key>): Promise<ReplyOf<Routes[Key]>>;
  /** Resolves with the response of one attempt when its head has arrived; `signal` closes it. */
  open(call: Call, signal: AbortSignal): Promise<Response>;
}

const defaults = { timeoutMs: 30_000, idleTimeoutMs: 45_000 };

export function createTransport(client: KitClientOptions): Transport {
  const base = readBase(client.baseUrl);
  const retry = toPolicy(client.retry ?? {});
  const limitMs = client.timeoutMs ?? defaults.timeoutMs;
  const send = client.fetch ?? ((...input: Parameters<typeof fetch>) => globalThis.fetch(...input));

  function url({ path, query = {} }: Pick<Call, "path" | "query">): URL {
    const target = new URL(path.length === 0 ? `${base}/` : [base, ...path.map(encodeSegment)].join("/"));
    for (const [name, value] of Object.entries(query)) {
      if (value !== undefined) target.searchParams.set(name, String(value));
    }
    return target;
  }

  function headersOf(call: Call): Headers {
    const headers = new Headers(client.headers);
    if (client.apiKey !== undefined) headers.set("authorization", `Bearer ${client.apiKey}`);
    headers.set("accept", "application/json");
    if (call.body !== undefined) headers.set("content-type", "application/json");
    const key = call.options?.idempotencyKey;
    if (key !== undefined) headers.set("idempotency-key", checkedKey(key));
    const { traceparent, tracestate } = client.trace?.() ?? {};
    if (traceparent !== undefined) headers.set("traceparent", traceparent);
    if (tracestate !== undefined) headers.set("tracestate", tracestate);
    for (const [name, value] of Object.entries(call.headers ?? {})) headers.set(name, value);
    return headers;
  }

  async function open(call: Call, signal: AbortSignal): Promise<Response> {
    const { method, body } = call;
    const target = url(call);
    // Create the request outside of `try`: an invalid call is not an unreachable server.
    const request = {
      method,
      headers: headersOf(call),
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    };
    let response: Response;
    try {
      response = await send(target, { ...request, signal });
    } catch (error) {
      signal.throwIfAborted();
      throw unreachable(error, target);
    }
    if (!response.ok) throw await toKitError(response);
    return response;
  }

  async function attempt<Reply>(call: Call, signal: AbortSignal): Promise<Reply> {
    const response = await open(call, signal);
    const text = await response.text().catch((error: unknown) => {
      signal.throwIfAborted();
      throw unreachable(error);
    });
    return parseReply(text, response.status) as Reply;
  }

  async function repeat<Reply>(call: Call, signal: AbortSignal, endsAt: number): Promise<Reply> {
    let failures = 0;
    for (let attempts = 1; ; attempts += 1) {
      try {
        return await attempt<Reply>(call, signal);
      } catch (error) {
        // An earlier attempt has deleted it, and its reply was lost.
        if (
          attempts > 1 &&
          call.method === "DELETE" &&
          error instanceof KitError &&
          error.code === "not_found"
        )
          return undefined as Reply;
        if (!isTransient(error) || !isRepeatable(call)) throw error;
        if (!isRefusal(error) || retry.isLimited) failures += 1;
        const delayMs = failures < retry.attempts ? delayBefore(error, attempts, retry) : undefined;
        if (delayMs === undefined || performance.now() + delayMs > endsAt) throw error;
        await systemClock.sleep(delayMs, signal);
      }
    }
  }

  const request: Transport["request"] = async (key, input) => {
    const call = route(key, input);
    const { timeoutMs = limitMs, signal } = call.options ?? {};
    const endsAt = performance.now() + timeoutMs;
    return await inTime(timeoutMs, [client.signal, signal], (limited) => repeat(call, limited, endsAt));
  };

  return {
    retry,
    timeoutMs: limitMs,
    idleTimeoutMs: client.idleTimeoutMs ?? defaults.idleTimeoutMs,
    signal: client.signal,
    apiKey: client.apiKey,
    trace: client.trace ?? (() => undefined),
    url,
    request,
    open,
  };
}

function readBase(baseUrl: string | URL): string {
  // In a web page, it can be a path on the page's own server.
  const { location } = globalThis as { readonly location?: { readonly href: string } };
  let url: URL;
  try {
    url = new URL(baseUrl, location?.href);
  } catch (cause) {
    throw notAnAddress(cause);
  }
  // `localhost:2024` parses as the scheme `localhost:`, and `fetch` refuses an address with a name and password.
  if (!/^https?:$/.test(url.protocol) || url.username !== "" || url.password !== "") throw notAnAddress();
  return url.href.replace(/[?#].*$/, "").replace(/\/+$/, "");
}

function notAnAddress(cause?: unknown): KitError {
  return new KitError({
    code: "invalid_request",
    message: "The client's `baseUrl` is not the address of a server.",
    hint: "Such as http://127.0.0.1:2024; a name and password go into `headers`.",
    cause,
  });
}

function toPolicy({
  baseDelayMs = 250,
  maxDelayMs = 10_000,
  ...limits
}: Partial<RetryPolicy>): Transport["retry"] {
  const { attempts = 4, reconnects = attempts > 1 ? 3 * attempts : 0 } = limits;
  const isLimited = limits.attempts !== undefined || limits.reconnects !== undefined;
  return { attempts, reconnects, baseDelayMs, maxDelayMs, isLimited };
}

function encodeSegment(segment: string): string {
  // A URL resolves these segments, so the request would reach another route.
  if (segment !== "" && segment !== "." && segment !== "..") return encodeURIComponent(segment);
  throw new KitError({
    code: "invalid_request",
    message: `${JSON.stringify(segment)} is not a name or an id.`,
  });
}

function checkedKey(key: string): string {
  if (/^[\x20-\x7e]{1,128}$/.test(key)) return key;
  throw new KitError({
    code: "invalid_request",
    message: "An idempotency key has 1 to 128 printable ASCII characters.",
  });
}

export function isRepeatable({ method, options, repeatable }: Call): boolean {
  return repeatable ?? (method !== "POST" || options?.idempotencyKey !== undefined);
}

/** Returns the delay before the next attempt; undefined if there is none. */
export function delayBefore(error: KitError, attempts: number, retry: RetryPolicy): number | undefined {
  const asked = Number(error.meta?.retry_after_s ?? 0) * 1_000;
  return asked > retry.maxDelayMs ? undefined : Math.max(asked, backoff(attempts, retry));
}

/** Half of the delay is random, so that clients that failed together do not retry together. */
export function backoff(
  attempts: number,
  { baseDelayMs, maxDelayMs }: Pick<RetryPolicy, "baseDelayMs" | "maxDelayMs">,
): number {
  const ceilingMs = Math.min(maxDelayMs, baseDelayMs * 2 ** (attempts - 1));
  return ceilingMs / 2 + (Math.random() * ceilingMs) / 2;
}

function parseReply(text: string, status: number): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw notAnAnswer(status, error);
  }
}

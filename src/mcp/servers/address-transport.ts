import { AsyncLocalStorage } from "node:async_hooks";
import type { JSONRPCMessage } from "@modelcontextprotocol/client";
import type { Clock } from "../../base/clock.ts";
import { limits, times } from "../limits.ts";
import { boundResponse, isEventStream } from "./bound-response.ts";
import { floodSafeFetch } from "./flood-safe-fetch.ts";
import type { McpSdk } from "./load-mcp-sdk.ts";
import { refusedResponse } from "./refused-response.ts";
import { closedTooOften, ServerFailure } from "./server-failure.ts";
import type { ServerSettings } from "./server-settings.ts";

/** The protocol over streamable HTTP. */
export type AddressTransport = InstanceType<McpSdk["StreamableHTTPClientTransport"]> & {
  /** Why kit closed the connection; `undefined` if it did not. */
  readonly failure: ServerFailure | undefined;
};

type SendOptions = NonNullable<Parameters<AddressTransport["send"]>[1]>;

/** A sent message with its event streams, which are opened one after the other. */
interface Exchange {
  /** Streams of a subscription and of the initial notification carry notifications until the connection ends. */
  readonly kind: "request" | "subscription" | "notification";
  readonly ending: AbortController;
  /** Reports that no answer will arrive. */
  onLost: () => void;
  /** Why its last response was refused. */
  failure: ServerFailure | undefined;
  /** Consecutive times that its stream was reopened. */
  reconnects: number;
  openedAt: number;
}

/**
 * Wraps the SDK's transport so that a server cannot harm kit. Responses are bounded, and refused ones are explained
 * by their status. A stream that the server closes is reopened after kit's own pauses, for a limited number of times;
 * streams of a call end with the call. `onUnheard` gets the reason why the stream of notifications is not reopened.
 */
export function createAddressTransport(
  sdk: Pick<McpSdk, "StreamableHTTPClientTransport">,
  endpoint: Extract<ServerSettings["endpoint"], { readonly kind: "address" }>,
  { clock, onUnheard }: { readonly clock: Clock; readonly onUnheard: (why: unknown) => void },
): AddressTransport {
  // The SDK does not tell `fetch` and the scheduler which message they serve.
  const current = new AsyncLocalStorage<Exchange>();
  const open = new Map<unknown, Exchange>();
  const closing = new AbortController();
  let failure: ServerFailure | undefined;

  const cutOff = (reason: string): void => {
    failure ??= new ServerFailure(reason, { outcome: "unknown", isFlood: true });
    void transport.close().catch(() => undefined);
  };
  const boundedFetch = async (input: string | URL, init: RequestInit = {}): Promise<Response> => {
    const exchange = current.getStore();
    const method = init.method ?? "GET";
    const isStreamOfNotifications = method === "GET" && exchange?.kind === "notification";
    // The SDK reopens a stream that was open before, but does not retry the first one.
    const isRetry = exchange !== undefined && exchange.reconnects > 0;
    const send = (sent: RequestInit): Promise<Response> => floodSafeFetch(input, sent, { onExcess: cutOff });
    const { login } = endpoint;
    const sending = login === undefined ? send(init) : login.send(init, send);
    const response = await sending.catch((error: unknown) => {
      if (isStreamOfNotifications && !isRetry && !closing.signal.aborted) onUnheard(error);
      throw error;
    });
    const expectsResult = method === "POST" && exchange?.kind === "request";
    const refused = refusedResponse({ method, headers: new Headers(init.headers), expectsResult }, response);
    if (refused !== undefined) {
      await response.body?.cancel();
      if (exchange !== undefined) exchange.failure = refused;
      if (isStreamOfNotifications && (!isRetry || refused.outcome === "refused")) onUnheard(refused);
      throw refused;
    }
    // By the protocol, 405 means that the server has no such stream.
    if (isStreamOfNotifications && !isRetry && !response.ok && response.status !== 405)
      onUnheard(new ServerFailure(`It answered with HTTP ${response.status}.`, { outcome: "refused" }));
    if (exchange !== undefined) {
      exchange.openedAt = clock.now();
      exchange.failure = undefined;
    }
    return boundResponse(response, isEventStream(response) ? cutOff : undefined);
  };
  const reconnectLater = (reconnect: () => void, askedMs: number): void => {
    const exchange = current.getStore();
    if (exchange === undefined || closing.signal.aborted) return;
    const pause = nextPause(exchange, { askedMs, now: clock.now() });
    if (pause === undefined) {
      exchange.onLost();
      if (exchange.kind === "notification" && exchange.failure?.outcome !== "refused")
        onUnheard(exchange.failure ?? closedTooOften());
      return;
    }
    clock
      .sleep(pause, AbortSignal.any([closing.signal, exchange.ending.signal]))
      .then(reconnect, () => undefined);
  };
  const transport = new sdk.StreamableHTTPClientTransport(endpoint.url, {
    requestInit: { headers: { ...endpoint.headers } },
    fetch: boundedFetch,
    // Without the server's `retry:`, the SDK asks the scheduler for no pause.
    reconnectionOptions: {
      initialReconnectionDelay: 0,
      maxReconnectionDelay: 0,
      reconnectionDelayGrowFactor: 1,
      maxRetries: Number.POSITIVE_INFINITY,
    },
    reconnectionScheduler: reconnectLater,
  });
  const send = transport.send.bind(transport);
  const close = transport.close.bind(transport);
  transport.onmessage = (message) => {
    const exchange = "method" in message ? undefined : open.get(message.id);
    if (exchange === undefined || "method" in message) return;
    open.delete(message.id);
    // Nothing follows an answer. Wait before aborting: if the server ends the stream itself, the connection stays usable.
    setTimeout(() => exchange.ending.abort(), times.grace).unref();
  };
  transport.close = async () => {
    closing.abort();
    await close();
  };
  const sendOne = async (message: JSONRPCMessage, options: SendOptions = {}): Promise<void> => {
    const exchange = createExchange(message);
    const { ending } = exchange;
    const signals = options.requestSignal === undefined ? [] : [options.requestSignal];
    const id = "method" in message && "id" in message ? message.id : undefined;
    exchange.onLost = () => {
      options.onRequestStreamEnd?.();
      if (id === undefined) return;
      open.delete(id);
      // The server has received the request, so the outcome is unknown. If the request was already answered, the SDK
      // drops this second answer.
      const why = exchange.failure?.message ?? "The connection to it was lost.";
      const data = new ServerFailure(why, { outcome: "unknown", isLost: true });
      transport.onmessage?.({ jsonrpc: "2.0", id, error: { code: -32_000, message: "", data } });
    };
    if (id !== undefined) open.set(id, exchange);
    open.get(cancelledBy(message))?.ending.abort();
    // Stop sending a notification that the server does not accept in time.
    const timeout = id === undefined ? setTimeout(() => ending.abort(), times.list).unref() : undefined;
    try {
      await current.run(exchange, () =>
        send(message, {
          ...options,
          requestSignal: AbortSignal.any([ending.signal, ...signals]),
          onRequestStreamEnd: exchange.onLost,
        }),
      );
    } catch (error) {
      open.delete(id);
      throw error;
    } finally {
      clearTimeout(timeout);
    }
  };
  transport.send = async (message, options) => {
    for (const single of Array.isArray(message) ? message : [message]) await sendOne(single, options);
  };
  return Object.defineProperty(transport, "failure", { get: () => failure }) as AddressTransport;
}

function createExchange(message: JSONRPCMessage): Exchange {
  const isRequest = "method" in message && "id" in message;
  const isSubscription = isRequest && message.method === "subscriptions/listen";
  return {
    kind: isSubscription ? "subscription" : isRequest ? "request" : "notification",
    ending: new AbortController(),
    onLost: () => undefined,
    failure: undefined,
    reconnects: 0,
    openedAt: 0,
  };
}

/** The id of the request that a message cancels. */
function cancelledBy(message: JSONRPCMessage): unknown {
  return "method" in message && message.method === "notifications/cancelled"
    ? message.params?.requestId
    : undefined;
}

/** Milliseconds until a stream is reopened; `undefined` if it must not be reopened. */
function nextPause(
  exchange: Exchange,
  { askedMs, now }: { readonly askedMs: number; readonly now: number },
): number | undefined {
  const { kind, failure, openedAt } = exchange;
  // `watchTools` renews its subscription itself.
  if (kind === "subscription" || failure?.outcome === "refused") return undefined;
  const wasSteady = openedAt > 0 && now - openedAt >= times.steadyStream;
  exchange.openedAt = 0;
  exchange.reconnects = wasSteady ? 1 : exchange.reconnects + 1;
  // Streams of a call have no limit, because they end with the call.
  if (kind === "notification" && exchange.reconnects > limits.reconnects) return undefined;
  const doubled = times.firstBackoff * 2 ** Math.min(exchange.reconnects - 1, 10);
  const backoff = Math.min(doubled, kind === "request" ? times.maxCallBackoff : times.maxBackoff);
  return Math.max(backoff, Math.min(askedMs, times.maxBackoff));
}

import { longestTimerMs } from "../../base/clock.ts";
import { EventBuffer, toDelta } from "../../protocol/event-buffer.ts";
import type { ClientFrame, ServerFrame } from "../../protocol/socket-frame.ts";
import { bearerProtocolPrefix, socketProtocol } from "../../protocol/socket-protocol.ts";
import type { CallOptions } from "../call-options.ts";
import { anyOf, timeoutSignal } from "../in-time.ts";
import { isKnownEvent, type StreamItem } from "../read-stream.ts";
import type { Call } from "../route-call.ts";
import { connectionClosed, connectionLost, fromEnvelope, unreachable } from "../to-kit-error.ts";
import type { Transport } from "../transport.ts";

type Asking = Extract<ClientFrame, { readonly request_id?: string | undefined }>;

/** A request on a socket, and its answers. */
export interface SocketRequest {
  readonly frame: Asking & { readonly request_id: string };
  readonly onStarted?: (runId: string | undefined) => void;
  /** Whether to cancel the request if its reader leaves early. */
  readonly abortOnLeave: boolean;
  /** Cancels the request with a reason. */
  readonly signal?: AbortSignal | undefined;
}

/** An open WebSocket on which the server is ready. */
export interface Socket {
  readonly isOpen: boolean;
  send(frame: ClientFrame): void;
  /** Sends a request and yields its frames, to its result or error. */
  ask(request: SocketRequest): AsyncGenerator<StreamItem, void>;
  /** Resolves when the server answers. */
  ping(): Promise<void>;
  /** Closes the connection; running requests fail with `aborted`. */
  close(): void;
}

export interface SocketTarget {
  readonly path: Call["path"];
  readonly options: CallOptions;
  /**
   * Throws the reason why the server refused the handshake. A browser does not report it, so this sends a request for the same target that
   * changes nothing.
   */
  readonly explainRefusal: () => Promise<unknown>;
}

/** The number of pings within the time after which a socket counts as broken. */
const beatsPerIdleTimeout = 3;

/**
 * Opens a WebSocket; resolves once the server is ready. Throws the server's error if it
 * refuses, and `unavailable` without an answer.
 */
export async function openSocket(
  transport: Transport,
  { path, options, explainRefusal }: SocketTarget,
): Promise<Socket> {
  const url = transport.url({ path });
  url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
  const timeout = timeoutSignal(options.timeoutMs ?? transport.timeoutMs);
  const signal = anyOf([transport.signal, options.signal, timeout]);
  signal.throwIfAborted();
  const socket = new WebSocket(url, protocolsOf(transport.apiKey));
  const requests = new Map<string, SocketRequest & { readonly queue: EventBuffer<StreamItem> }>();
  const ready = Promise.withResolvers<void>();
  const pings: (() => void)[] = [];
  let isReady = false;
  /** The time of the first unanswered ping. */
  let askedAt: number | undefined;
  let failure: unknown;

  function fail(error: unknown): void {
    failure ??= error;
    clearInterval(beat);
    transport.signal?.removeEventListener("abort", stop);
    ready.reject(failure);
    for (const { queue } of requests.values()) queue.fail(failure);
    requests.clear();
    for (const answer of pings.splice(0)) answer();
    socket.close();
  }

  const stop = (): void => fail(transport.signal?.reason);
  const beatMs = Math.min(transport.idleTimeoutMs, longestTimerMs) / beatsPerIdleTimeout;
  const beat = setInterval(onBeat, beatMs);

  // The timeout counts from a ping, not from the last data: a page in the background runs timers only once a minute.
  function onBeat(): void {
    if (!isReady) return;
    const now = Date.now();
    // The first unanswered ping was sent one interval after the last data, and this is the second interval since.
    if (askedAt !== undefined && now - askedAt > 1.5 * beatMs) {
      // If the program, the page or the machine was frozen, the answer can be waiting: read it first.
      setTimeout(() => {
        if (askedAt !== undefined) fail(connectionLost());
      }, 0);
    } else {
      askedAt ??= now;
      send({ type: "ping" });
    }
  }

  function send(frame: ClientFrame): void {
    if (failure !== undefined) throw failure;
    socket.send(JSON.stringify(frame));
  }

  function take(frame: ServerFrame): void {
    if (frame.type === "ready") {
      isReady = true;
      ready.resolve();
    } else if (frame.type === "pong") {
      for (const answer of pings.splice(0)) answer();
    } else if (frame.type === "error" && frame.request_id === undefined) {
      if (!isReady) fail(fromEnvelope(frame) ?? connectionLost());
    } else takeAnswer(frame);
  }

  function takeAnswer(frame: Extract<ServerFrame, { request_id?: string }>): void {
    const request = requests.get(frame.request_id ?? "");
    if (request === undefined) return;
    switch (frame.type) {
      case "started":
        request.onStarted?.(frame.run_id);
        return;
      case "event":
        if (isKnownEvent(frame.event)) request.queue.push({ kind: "event", event: frame.event });
        return;
      case "result":
        request.queue.push({ kind: "result", body: frame.result });
        return;
      case "error":
        request.queue.push({ kind: "failure", body: { error: frame.error } });
        return;
    }
  }

  socket.addEventListener("message", ({ data }) => {
    askedAt = undefined;
    const frame = parse(data);
    if (frame === undefined) fail(connectionLost());
    else take(frame);
  });
  // A browser reports no reason for a failed connection, and neither does the close event after it.
  socket.addEventListener("error", () => fail(isReady ? connectionLost() : unreachable(undefined)));
  socket.addEventListener("close", () => fail(connectionLost()));
  const giveUp = (): void => fail(timeout?.aborted === true ? unreachable(timeout.reason) : signal.reason);
  signal.addEventListener("abort", giveUp, { once: true });
  try {
    await ready.promise;
  } catch (error) {
    signal.throwIfAborted();
    await explainRefusal();
    throw error;
  } finally {
    signal.removeEventListener("abort", giveUp);
  }
  // From here on, each request has its own signal; the client's signal ends all of them.
  transport.signal?.addEventListener("abort", stop, { once: true });

  return {
    get isOpen() {
      return failure === undefined;
    },
    send,
    async *ask(request) {
      const { frame, signal: leaving } = request;
      leaving?.throwIfAborted();
      // A socket has no back-pressure: its frames wait here for the reader.
      const queue = new EventBuffer<StreamItem>({
        deltaOf: (item) => (item.kind === "event" ? toDelta(item.event) : undefined),
        ofDelta: (event) => ({ kind: "event", event }),
      });
      const leave = (): void => queue.fail(leaving?.reason);
      let ended = false;
      leaving?.addEventListener("abort", leave, { once: true });
      requests.set(frame.request_id, { ...request, queue });
      try {
        send(frame);
        for await (const item of queue) {
          ended = item.kind !== "event";
          yield item;
          if (ended) return;
        }
      } finally {
        leaving?.removeEventListener("abort", leave);
        requests.delete(frame.request_id);
        const { request_id } = frame;
        if (!ended && request.abortOnLeave && failure === undefined) send({ type: "abort", request_id });
      }
    },
    ping: () =>
      new Promise((resolve, reject) => {
        send({ type: "ping" });
        pings.push(() => (failure === undefined ? resolve() : reject(failure)));
      }),
    close: () => fail(connectionClosed()),
  };
}

/** A browser cannot send headers with a WebSocket, so the key goes into a second subprotocol. */
function protocolsOf(apiKey: string | undefined): string[] {
  if (apiKey === undefined) return [socketProtocol];
  const bytes = String.fromCharCode(...new TextEncoder().encode(apiKey));
  const key = btoa(bytes).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
  return [socketProtocol, bearerProtocolPrefix + key];
}

function parse(data: unknown): ServerFrame | undefined {
  try {
    const frame: unknown = JSON.parse(String(data));
    return typeof frame === "object" && frame !== null && "type" in frame
      ? (frame as ServerFrame)
      : undefined;
  } catch {
    return undefined;
  }
}

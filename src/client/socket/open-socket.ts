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

/** A request with an id of its own, and what becomes of it. */
export interface SocketRequest {
  readonly frame: Asking & { readonly request_id: string };
  readonly onStarted?: (runId: string | undefined) => void;
  /** Whether a reader that leaves early wants no more of it. */
  readonly abortOnLeave: boolean;
  /** Leaves it, with its reason. */
  readonly signal?: AbortSignal | undefined;
}

/** A WebSocket that the server is ready on. */
export interface Socket {
  readonly isOpen: boolean;
  send(frame: ClientFrame): void;
  /** Sends a request, and gives what comes for it, to its result or failure. */
  ask(request: SocketRequest): AsyncGenerator<StreamItem, void>;
  /** Resolves when the server answers. */
  ping(): Promise<void>;
  /** Ends the connection; what is under way fails with `aborted`. */
  close(): void;
}

export interface SocketTarget {
  readonly path: Call["path"];
  readonly options: CallOptions;
  /**
   * Throws why the server refuses the handshake: a browser is not told, so a request about the same target is made that
   * changes nothing.
   */
  readonly explainRefusal: () => Promise<unknown>;
}

/** How often a socket is asked whether it lives, in parts of the time after which it counts as broken. */
const beatsPerIdleTimeout = 3;

/**
 * Opens a WebSocket; resolves once the server says that it is ready. Throws what the server says of why
 * it is not, and `unavailable` where it says nothing.
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
  /** When the first ping was sent that has had no answer yet. */
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

  // Counts from a ping on, not from what was heard last: a page in the background beats once a minute only.
  function onBeat(): void {
    if (!isReady) return;
    const now = Date.now();
    // The first unanswered ping went out a beat after what was heard last, and this is the second beat since.
    if (askedAt !== undefined && now - askedAt > 1.5 * beatMs) {
      // The answer has come where the program, the page or the machine has stood still: it is read first.
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
  // A browser does not say why a connection failed; the close that follows neither.
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
  // From here on each request has a signal of its own; that of the client ends them all.
  transport.signal?.addEventListener("abort", stop, { once: true });

  return {
    get isOpen() {
      return failure === undefined;
    },
    send,
    async *ask(request) {
      const { frame, signal: leaving } = request;
      leaving?.throwIfAborted();
      // A socket cannot be slowed down: what it brings waits here for the reader.
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

/** A browser can send no headers with a WebSocket: the key goes beside the protocol's name. */
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

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
  const timeout = timeoutSignal(options.timeoutMs ?? transport.timeoutMs);
  const signal = anyOf([transport.signal, options.signal, timeout]);
  signal.throwIfAborted();
  const socket = new Socket(transport, path);
  const giveUp = (): void =>
    socket.fail(timeout?.aborted === true ? unreachable(timeout.reason) : signal.reason);
  signal.addEventListener("abort", giveUp, { once: true });
  try {
    await socket.ready;
  } catch (error) {
    signal.throwIfAborted();
    await explainRefusal();
    throw error;
  } finally {
    signal.removeEventListener("abort", giveUp);
  }
  // From here on, each request has its own signal; the client's signal ends all of them.
  socket.failWith(transport.signal);
  return socket;
}

/** A WebSocket with its requests. */
export class Socket {
  readonly #socket: WebSocket;
  readonly #requests = new Map<string, SocketRequest & { readonly queue: EventBuffer<StreamItem> }>();
  readonly #ready = Promise.withResolvers<void>();
  readonly #pings: (() => void)[] = [];
  readonly #beatMs: number;
  readonly #beat: ReturnType<typeof setInterval>;
  #isReady = false;
  /** The time of the first unanswered ping. */
  #askedAt: number | undefined;
  #failure: unknown;
  /** Stops listening to the signal of the client. */
  #unlink: () => void = () => undefined;

  constructor(transport: Transport, path: Call["path"]) {
    const url = transport.url({ path });
    url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
    this.#beatMs = Math.min(transport.idleTimeoutMs, longestTimerMs) / beatsPerIdleTimeout;
    this.#socket = new WebSocket(url, protocolsOf(transport.apiKey));
    this.#socket.addEventListener("message", ({ data }) => {
      this.#askedAt = undefined;
      const frame = parse(data);
      if (frame === undefined) this.fail(connectionLost());
      else this.#take(frame);
    });
    // A browser reports no reason for a failed connection, and neither does the close event after it.
    this.#socket.addEventListener("error", () =>
      this.fail(this.#isReady ? connectionLost() : unreachable(undefined)),
    );
    this.#socket.addEventListener("close", () => this.fail(connectionLost()));
    this.#beat = setInterval(() => this.#onBeat(), this.#beatMs);
  }

  /** Resolves once the server is ready; rejects with the failure. */
  get ready(): Promise<void> {
    return this.#ready.promise;
  }

  get isOpen(): boolean {
    return this.#failure === undefined;
  }

  send(frame: ClientFrame): void {
    if (this.#failure !== undefined) throw this.#failure;
    this.#socket.send(JSON.stringify(frame));
  }

  /** Sends a request and yields its frames, to its result or error. */
  async *ask(request: SocketRequest): AsyncGenerator<StreamItem, void> {
    const { frame, signal: leaving } = request;
    const { request_id } = frame;
    leaving?.throwIfAborted();
    // A socket has no back-pressure: its frames wait here for the reader.
    const queue = new EventBuffer<StreamItem>({
      deltaOf: (item) => (item.kind === "event" ? toDelta(item.event) : undefined),
      ofDelta: (event) => ({ kind: "event", event }),
    });
    const leave = (): void => queue.fail(leaving?.reason);
    let ended = false;
    leaving?.addEventListener("abort", leave, { once: true });
    this.#requests.set(request_id, { ...request, queue });
    try {
      this.send(frame);
      for await (const item of queue) {
        ended = item.kind !== "event";
        yield item;
        if (ended) return;
      }
    } finally {
      leaving?.removeEventListener("abort", leave);
      this.#requests.delete(request_id);
      if (!ended && request.abortOnLeave && this.isOpen) this.send({ type: "abort", request_id });
    }
  }

  /** Resolves when the server answers. */
  ping(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.send({ type: "ping" });
      this.#pings.push(() => (this.isOpen ? resolve() : reject(this.#failure)));
    });
  }

  /** Closes the connection; running requests fail with `aborted`. */
  close(): void {
    this.fail(connectionClosed());
  }

  /** Closes the connection; running requests fail with the error, or with an earlier one. */
  fail(error: unknown): void {
    this.#failure ??= error;
    clearInterval(this.#beat);
    this.#unlink();
    this.#ready.reject(this.#failure);
    for (const { queue } of this.#requests.values()) queue.fail(this.#failure);
    this.#requests.clear();
    for (const answer of this.#pings.splice(0)) answer();
    this.#socket.close();
  }

  /** Closes the connection when the signal fires. */
  failWith(signal: AbortSignal | undefined): void {
    const stop = (): void => this.fail(signal?.reason);
    this.#unlink = () => signal?.removeEventListener("abort", stop);
    signal?.addEventListener("abort", stop, { once: true });
  }

  // The timeout counts from a ping, not from the last data: a page in the background runs timers only once a minute.
  #onBeat(): void {
    if (!this.#isReady) return;
    const now = Date.now();
    // The first unanswered ping was sent one interval after the last data, and this is the second interval since.
    if (this.#askedAt !== undefined && now - this.#askedAt > 1.5 * this.#beatMs) {
      // If the program, the page or the machine was frozen, the answer can be waiting: read it first.
      setTimeout(() => {
        if (this.#askedAt !== undefined) this.fail(connectionLost());
      }, 0);
    } else {
      this.#askedAt ??= now;
      this.send({ type: "ping" });
    }
  }

  #take(frame: ServerFrame): void {
    if (frame.type === "ready") {
      this.#isReady = true;
      this.#ready.resolve();
    } else if (frame.type === "pong") {
      for (const answer of this.#pings.splice(0)) answer();
    } else if (frame.type === "error" && frame.request_id === undefined) {
      if (!this.#isReady) this.fail(fromEnvelope(frame) ?? connectionLost());
    } else this.#takeAnswer(frame);
  }

  #takeAnswer(frame: Extract<ServerFrame, { request_id?: string }>): void {
    const request = this.#requests.get(frame.request_id ?? "");
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

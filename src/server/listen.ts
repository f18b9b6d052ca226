import {
  createServer,
  type IncomingMessage,
  type Server,
  type ServerResponse,
  STATUS_CODES,
} from "node:http";
import { networkInterfaces } from "node:os";
import type { Duplex } from "node:stream";
import { getRequestListener, type Http2Bindings, type HttpBindings, RequestError } from "@hono/node-server";
import type { Hono } from "hono";
import { KitError } from "../base/kit-error.ts";
import type { ServerLimits } from "./limits.ts";
import type { NodeAnswers } from "./nodes/answer-nodes.ts";
import type { ReplyParts } from "./reply.ts";
import { arrivals, type ServerEnv } from "./route.ts";
import type { SocketServer } from "./sockets/socket-server.ts";

export interface ListenOptions {
  /** Default 127.0.0.1. */
  readonly host?: string;
  /** Default 2024; 0 chooses a free port. */
  readonly port?: number;
}

/** The address at which a server listens; `url` is for a person's browser. */
export interface ListenAddress {
  readonly host: string;
  readonly port: number;
  readonly url: string;
}

export interface Listener {
  /** Answers a request of another server. */
  handle(incoming: IncomingMessage, outgoing: ServerResponse): void;
  listen(options: Required<ListenOptions>): Promise<ListenAddress>;
  close(): Promise<void>;
}

interface ListenerOptions {
  readonly app: Hono<ServerEnv>;
  readonly limits: ServerLimits;
  /** The error reply for anything thrown. */
  readonly toReply: (error: unknown) => ReplyParts;
  /** Handles WebSocket handshakes; without it, they are answered as ordinary requests. */
  readonly sockets?: SocketServer;
  /** Answers the other nodes of a cluster. */
  readonly nodes?: NodeAnswers | undefined;
}

/** Runs an app on a Node HTTP server with limits for each connection. */
export function createListener({ app, limits, toReply, sockets, nodes }: ListenerOptions): Listener {
  const answer = (request: Request, env: HttpBindings | Http2Bindings): Response | Promise<Response> => {
    const { incoming } = env as HttpBindings;
    const reply = app.fetch(request, env as HttpBindings);
    const { headers } = incoming;
    const hasBody = headers["content-length"] !== undefined || headers["transfer-encoding"] !== undefined;
    return hasBody ? afterBody(reply, incoming) : reply;
  };
  const handle = getRequestListener(answer, {
    errorHandler: (error) => {
      const { body, ...rest } = toReply(
        error instanceof RequestError ? invalid("The URL is not valid.") : error,
      );
      return new Response(body, rest);
    },
  });
  const answerNode = (incoming: IncomingMessage, outgoing: ServerResponse): void => {
    const fault = faultOf(incoming, limits);
    if (fault === undefined && nodes?.takes(incoming)) void nodes.answer(incoming, outgoing);
    else if (fault === undefined) handle(incoming, outgoing).catch(() => outgoing.destroy());
    else send(toReply(invalid(fault)), outgoing);
  };
  // The started replies: no error reply can be written after one has started.
  const replies = new WeakMap<Duplex, ServerResponse>();
  const underWay = new WeakMap<Duplex, number>();
  const pauses = watchPauses();
  const server = createServer(
    {
      headersTimeout: limits.headersTimeoutMs,
      requestTimeout: limits.requestTimeoutMs,
      keepAliveTimeout: limits.keepAliveTimeoutMs,
      connectionsCheckingInterval: Math.min(1_000, limits.headersTimeoutMs, limits.requestTimeoutMs),
      maxHeaderSize: limits.headerBytes,
      // Node would answer a missing Host itself, without kit's error envelope.
      requireHostHeader: false,
      // Deltas are sent at once, and a client that disappeared without closing is noticed.
      noDelay: true,
      keepAlive: true,
      keepAliveInitialDelay: 30_000,
      // Clients offer HTTP/2 with the same header; kit answers them in HTTP/1.1.
      shouldUpgradeCallback: ({ headers }) =>
        sockets !== undefined && headers.upgrade?.toLowerCase() === "websocket",
    },
    (incoming, outgoing) => {
      arrivals.set(incoming, performance.now());
      const { socket } = incoming;
      const count = (underWay.get(socket) ?? 0) + 1;
      // Node holds their replies in memory until the first reply has ended, which can be an endless stream.
      if (count > limits.pipelinedRequests) return socket.destroy();
      underWay.set(socket, count);
      outgoing.once("close", () => underWay.set(socket, (underWay.get(socket) ?? 1) - 1));
      replies.set(socket, outgoing);
      if (performance.now() >= pauses.until) return answerNode(incoming, outgoing);
      // A caller who has left has sent the request again elsewhere, and may have cancelled its work since.
      void untilRead().then(() => incoming.destroyed || answerNode(incoming, outgoing));
    },
  );
  // One more than allowed: Node drops headers beyond its limit silently, and kit refuses a request with too many.
  server.maxHeadersCount = limits.headerCount + 1;
  server.timeout = limits.idleTimeoutMs;
  server.on("checkExpectation", (_, outgoing) =>
    send(toReply(invalid("Expect is not supported.")), outgoing),
  );
  // Without a listener, Node closes the connection without a reply.
  server.on("connect", (_, socket: Duplex) => {
    socket.on("error", () => socket.destroy());
    sendRaw(toReply(invalid("This server is not a proxy.")), socket);
  });
  server.on("clientError", (error: NodeJS.ErrnoException, socket) => {
    if (error.code === "ECONNRESET" || !socket.writable || replies.get(socket)?.headersSent) socket.destroy();
    else sendRaw(toReply(invalid(reasonOf(error.code))), socket);
  });
  // Connections during a WebSocket handshake: the HTTP server no longer tracks them.
  const handshakes = new Set<Duplex>();
  if (sockets !== undefined) {
    server.on("upgrade", async (incoming, socket, head) => {
      handshakes.add(socket);
      socket.on("error", () => socket.destroy()).on("close", () => handshakes.delete(socket));
      try {
        const fault = faultOf(incoming, limits);
        if (fault !== undefined) throw invalid(fault);
        await sockets.upgrade(incoming, socket, head);
      } catch (error) {
        sendRaw(toReply(error), socket);
      } finally {
        handshakes.delete(socket);
      }
    });
  }
  return {
    handle: answerNode,
    listen: (options) => listen(server, options),
    async close() {
      clearInterval(pauses.timer);
      sockets?.close();
      await close(server, limits.closeGraceMs, () => {
        for (const socket of handshakes) socket.destroy();
        sockets?.terminate();
      });
    },
  };
}

/** Returns the reply after the rest of the request's body has arrived, also if the handler did not read it. */
async function afterBody(reply: Response | Promise<Response>, incoming: IncomingMessage): Promise<Response> {
  const response = await reply;
  if (!incoming.complete) await discardBody(incoming);
  return response;
}

/** Checks parts of a request that the router does not see, because a `URL` object normalizes them. */
function faultOf({ rawHeaders, url = "" }: IncomingMessage, limits: ServerLimits): string | undefined {
  if (rawHeaders.length > 2 * limits.headerCount) return `There are more than ${limits.headerCount} headers.`;
  let hosts = 0;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] ?? "";
    if (name.length === 4 && name.toLowerCase() === "host") hosts += 1;
  }
  if (hosts !== 1) return "There must be one Host header.";
  // A target in a proxy's form (http://name/path) could name another host than the header.
  if (!url.startsWith("/")) return "The request target must be a path.";
  return /^[^?]*\/(?:\.|%2e){1,2}(?:[/?]|$)/i.test(url) ? "The path must not hold dot segments." : undefined;
}

const lookMs = 250;
/** A process that did nothing for this time was frozen, or its event loop was blocked. */
const pausedMs = 1_000;
/** The process reads within this time what its connections held meanwhile. */
const afterMs = 500;

/** Notices that this process did nothing for a while: requests that it then reads, `until` a time, can be of callers who have given up. */
function watchPauses(): { until: number; readonly timer: NodeJS.Timeout } {
  let lastLook = performance.now();
  const check = (): void => {
    const now = performance.now();
    if (now - lastLook > pausedMs) pauses.until = now + afterMs;
    lastLook = now;
  };
  const pauses = { until: 0, timer: setInterval(check, lookMs).unref() };
  return pauses;
}

/** Resolves once the process has read what its connections hold: a request, and then the end of its connection. */
async function untilRead(): Promise<void> {
  for (let turns = 0; turns < 3; turns += 1) await new Promise<void>((resolve) => setImmediate(resolve));
}

function send({ status, headers, body }: ReplyParts, outgoing: ServerResponse): void {
  outgoing.writeHead(status, { ...headers, connection: "close" }).end(body);
}

/**
 * Answers a request that the HTTP parser refused: a malformed or oversized head, or a body that never ends. It closes the
 * connection, because the start of the next request is unknown.
 */
function sendRaw({ status, headers, body }: ReplyParts, socket: Duplex): void {
  const all = { ...headers, connection: "close", "content-length": Buffer.byteLength(body) };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ""}\r\n${lines.join("")}\r\n${body}`, () =>
    socket.destroy(),
  );
}

function reasonOf(code: string | undefined): string {
  if (code === "HPE_HEADER_OVERFLOW") return "The headers are too large.";
  if (code === "ERR_HTTP_REQUEST_TIMEOUT") return "The request did not arrive in time.";
  return "The request is not well-formed HTTP.";
}

function invalid(message: string): KitError {
  return new KitError({ code: "invalid_request", message });
}

async function listen(server: Server, { host, port }: Required<ListenOptions>): Promise<ListenAddress> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  // Stays: without descriptors, the system reports each connection that it cannot hand over.
  server.on("error", reject);
  server.listen({ host, port }, resolve);
  try {
    await promise;
  } catch (cause) {
    server.off("error", reject);
    throw bindingError(cause, `${host}:${port}`);
  }
  const address = server.address();
  const bound = typeof address === "object" && address !== null ? address.port : port;
  return { host, port: bound, url: `http://${nameOf(host)}:${bound}` };
}

// A browser cannot open the wildcard addresses.
function nameOf(host: string): string {
  if (host === "0.0.0.0" || host === "::") return "localhost";
  return host.includes(":") ? `[${host}]` : host;
}

function bindingError(cause: unknown, address: string): KitError {
  const code = cause instanceof Error && "code" in cause ? cause.code : undefined;
  if (code === "EADDRINUSE") {
    const hint = "Stop the other program, or choose another port with --port.";
    return new KitError({
      code: "conflict",
      message: `Something is already listening on ${address}.`,
      hint,
      cause,
    });
  }
  return new KitError({
    code: "unavailable",
    message: `Cannot listen on ${address}: ${code ?? "unknown error"}.`,
    cause,
  });
}

async function close(server: Server, graceMs: number, cutOthers: () => void): Promise<void> {
  if (!server.listening) return;
  const { promise, resolve } = Promise.withResolvers<void>();
  server.close(() => resolve());
  // A kept-alive connection becomes idle only after its reply, so check again.
  const sweep = setInterval(() => server.closeIdleConnections(), 20);
  const cut = setTimeout(() => {
    server.closeAllConnections();
    cutOthers();
  }, graceMs);
  try {
    await promise;
  } finally {
    clearInterval(sweep);
    clearTimeout(cut);
  }
}

/** Beyond these limits, a client that continues to send gets its reply at once. */
const most = { bytes: 64 * 1024 * 1024, ms: 10_000 } as const;

/**
 * Receives and discards the rest of a body; resolves at once if nothing is left. Closing a connection with unread bytes
 * resets it, and the client can lose the reply.
 */
async function discardBody(incoming: IncomingMessage): Promise<void> {
  if (incoming.complete || incoming.destroyed) return;
  const { promise, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, most.ms);
  let bytes = 0;
  const onData = (chunk: Uint8Array): void => {
    bytes += chunk.length;
    if (bytes > most.bytes) resolve();
  };
  const stop = (): void => resolve();
  incoming.on("data", onData).on("end", stop).on("error", stop).on("close", stop).resume();
  await promise;
  clearTimeout(timer);
  incoming.off("data", onData).off("end", stop).off("error", stop).off("close", stop);
}

/**
 * Returns the address at which other machines reach a server: the address on which it listens or, if it listens on all
 * addresses, the first of this machine that is not a loopback address.
 */
export function reachableAt({ host, port }: ListenAddress): string {
  const isEvery = host === "0.0.0.0" || host === "::" || host === "";
  const name = isEvery ? (ownAddress(host === "0.0.0.0") ?? "127.0.0.1") : host;
  return `http://${name.includes(":") ? `[${name}]` : name}:${port}`;
}

function ownAddress(isOnlyIpv4: boolean): string | undefined {
  const all = Object.values(networkInterfaces()).flatMap((addresses = []) => addresses);
  const outer = all.filter(({ internal, scopeid }) => !internal && !scopeid);
  const ipv4 = outer.find(({ family }) => family === "IPv4");
  return (ipv4 ?? (isOnlyIpv4 ? undefined : outer[0]))?.address;
}

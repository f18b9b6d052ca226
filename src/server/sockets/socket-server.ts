import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import { type WebSocket, WebSocketServer } from "ws";
import { KitError } from "../../base/kit-error.ts";
import { startActionOf } from "../../protocol/built-in-workflows.ts";
import { bearerProtocolPrefix, socketProtocol } from "../../protocol/socket-protocol.ts";
import type { Gate, RequestHead } from "../access/access.ts";
import { type ConnectionSlot, createConnectionSlots } from "../access/connection-slots.ts";
import type { RequestEntry } from "../answer-request.ts";
import { toErrorReply } from "../reply.ts";
import { readSegment } from "../request/read-request.ts";
import { checkAgent, checkWorkflow, type ServiceContext } from "../service-context.ts";
import { type ConnectionPeer, serveAgent } from "./agent-connection.ts";
import { type Connection, createConnection, type FrameHandler, readFrames } from "./socket-connection.ts";
import { serveWorkflow } from "./workflow-connection.ts";

/** An accepted handshake. */
interface Admission {
  readonly target: SocketTarget;
  readonly peer: ConnectionPeer;
  readonly slot: ConnectionSlot;
}

interface OpenSocket {
  readonly socket: WebSocket;
  readonly handler: FrameHandler;
  /** Whether data has arrived since the last ping. */
  alive: boolean;
}

/** The WebSockets of a server. */
export class SocketServer {
  readonly #context: ServiceContext;
  readonly #gate: Gate;
  readonly #onRequest: ((entry: RequestEntry) => void) | undefined;
  readonly #open = new Set<OpenSocket>();
  readonly #slots: ReturnType<typeof createConnectionSlots>;
  readonly #server: WebSocketServer;
  /** Rejects the upgrade of a connection whose handshake is not valid. */
  readonly #refusals = new WeakMap<Duplex, (error: KitError) => void>();
  #timer: NodeJS.Timeout | undefined;
  #isClosing = false;

  constructor(
    context: ServiceContext,
    { gate, onRequest }: { readonly gate: Gate; readonly onRequest?: (entry: RequestEntry) => void },
  ) {
    const { limits } = context;
    this.#context = context;
    this.#gate = gate;
    this.#onRequest = onRequest;
    this.#slots = createConnectionSlots({
      what: "connections",
      slots: limits.webSockets,
      share: limits.webSocketsPerPrincipal,
    });
    this.#server = new WebSocketServer({
      noServer: true,
      clientTracking: false,
      maxPayload: limits.webSocketMessageBytes,
      handleProtocols: (offered) => (offered.has(socketProtocol) ? socketProtocol : false),
    });
    this.#server.on("wsClientError", (cause, socket) => {
      const message = "The WebSocket handshake is not valid.";
      this.#refusals.get(socket)?.(new KitError({ code: "invalid_request", message, cause }));
    });
  }

  /**
   * Accepts the connection of a handshake. Throws the error with which to answer it instead:
   * `unauthorized`, `forbidden`, `not_found`, `agent_not_found`, `unavailable`, ….
   */
  async upgrade(incoming: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    const started = performance.now();
    const handshake = readHandshake(incoming);
    const report = (status: number): void =>
      this.#onRequest?.({
        method: "GET",
        path: handshake.path,
        status,
        duration_ms: performance.now() - started,
      });
    let admission: Admission | undefined;
    try {
      const admitted = await this.#admit(handshake);
      admission = admitted;
      // `handleUpgrade` would drop the socket without a call, and the slot would stay taken.
      if (!socket.readable || !socket.writable)
        throw new KitError({ code: "aborted", message: "The client has disconnected." });
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      this.#refusals.set(socket, reject);
      this.#server.handleUpgrade(incoming, socket, head, (opened) => {
        this.#begin(opened, admitted);
        resolve();
      });
      await promise;
      report(101);
    } catch (error) {
      admission?.slot.release();
      report(toErrorReply(error, { dev: false }).status);
      throw error;
    }
  }

  /** Closes connections with 1001, each when its requests have ended. */
  close(): void {
    this.#isClosing = true;
    for (const { handler } of [...this.#open]) handler.finish();
  }

  /** Terminates the remaining connections. */
  terminate(): void {
    for (const { socket } of [...this.#open]) socket.terminate();
  }

  async #admit(handshake: Handshake): Promise<Admission> {
    const gate = this.#gate;
    const principal = await gate.check(handshake);
    const target = findTarget(handshake.path);
    await this.#context.authorization.check(
      target.target === "agent"
        ? { principal, action: "agent.prompt", agent: target.name, instance: target.instance_id }
        : { principal, action: startActionOf(target.name), workflow: target.name },
    );
    checkTarget(this.#context, target);
    if (this.#isClosing) {
      const meta = { retry_after_s: 5 };
      throw new KitError({ code: "unavailable", message: "The server is closing.", meta });
    }
    const count = (): void => gate.count(principal, handshake.remoteAddress);
    const peer = { principal, count, request: toRequest(handshake) };
    return { target, peer, slot: this.#slots.take(principal?.id) };
  }

  #begin(socket: WebSocket, { target, peer, slot }: Admission): void {
    const context = this.#context;
    const { limits } = context;
    const connection = createConnection(socket, context);
    const entry: OpenSocket = { socket, handler: serve(connection, target, { context, peer }), alive: true };
    const revive = (): void => {
      entry.alive = true;
    };
    this.#open.add(entry);
    // Check after the sockets were read: answers to a ping can wait there if the process itself was frozen.
    this.#timer ??= setInterval(() => setImmediate(() => this.#beat()), limits.heartbeatMs).unref();
    socket.on("pong", revive);
    socket.on("message", revive);
    socket.on("close", () => {
      this.#open.delete(entry);
      slot.release();
      if (this.#open.size > 0) return;
      clearInterval(this.#timer);
      this.#timer = undefined;
    });
    readFrames(socket, connection, { handler: entry.handler, limits });
    connection.send({ type: "ready", ...target });
  }

  // One timer serves all. A client that sends nothing between two pings has disconnected.
  #beat(): void {
    for (const entry of this.#open) {
      if (entry.alive) {
        entry.alive = false;
        entry.socket.ping();
      } else {
        entry.socket.terminate();
      }
    }
  }
}

function serve(
  connection: Connection,
  target: SocketTarget,
  { context, peer }: { readonly context: ServiceContext; readonly peer: ConnectionPeer },
): FrameHandler {
  if (target.target === "workflow") return serveWorkflow(connection, target.name, { context, peer });
  const { name: agent, instance_id } = target;
  return serveAgent(connection, { agent, instance_id }, { context, peer });
}

/** The head of a handshake, and its addresses. */
export interface Handshake extends RequestHead {
  readonly remoteAddress: string;
  /** With its query, as sent. */
  readonly target: string;
}

/**
 * Reads the head of a WebSocket handshake for the gate. A browser cannot send headers, so a
 * key can also come as a subprotocol: `kit.bearer.` and the key as base64url, in addition to `kit`.
 */
function readHandshake(incoming: IncomingMessage): Handshake {
  const headers = new Headers();
  // Read the raw headers: `incoming.headers` drops the second of two keys, which the routes refuse.
  const { rawHeaders } = incoming;
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    headers.append(rawHeaders[at] ?? "", rawHeaders[at + 1] ?? "");
  }
  const key = keyAmong(headers.get("sec-websocket-protocol") ?? "");
  if (key !== undefined && !headers.has("authorization")) headers.set("authorization", `Bearer ${key}`);
  return {
    method: "GET",
    path: (incoming.url ?? "/").split("?", 1)[0] ?? "/",
    headers,
    host: incoming.headers.host ?? "",
    localAddress: incoming.socket.localAddress ?? "127.0.0.1",
    target: incoming.url ?? "/",
    remoteAddress: incoming.socket.remoteAddress ?? "",
  };
}

/** Converts the handshake to a request for the code that it starts. */
function toRequest({ host, target, headers }: Handshake): Request {
  // The gate has checked the Host; the path begins with a slash, because it names a target.
  return new Request(new URL(target, `http://${host}`), { headers });
}

function keyAmong(protocols: string): string | undefined {
  const offered = protocols.split(",").map((name) => name.trim());
  const bearer = offered.find((name) => name.startsWith(bearerProtocolPrefix));
  if (bearer === undefined) return undefined;
  const key = Buffer.from(bearer.slice(bearerProtocolPrefix.length), "base64url").toString("utf8");
  // A header cannot hold other characters, so a key cannot either.
  return /^[\x21-\x7e]{1,4096}$/.test(key) ? key : undefined;
}

/** The target of a WebSocket, as the `ready` frame names it. */
export type SocketTarget =
  | { readonly target: "agent"; readonly name: string; readonly instance_id: string }
  | { readonly target: "workflow"; readonly name: string };

/** Parses the target in a path. Throws `invalid_request`, and `not_found` for any other path. */
function findTarget(path: string): SocketTarget {
  const [, kind, name = "", id, ...rest] = path.split("/");
  if (kind === "agents" && id !== undefined && rest.length === 0) {
    return {
      target: "agent",
      name: readSegment(name, { name: "name" }),
      instance_id: readSegment(id, { name: "id" }),
    };
  }
  if (kind === "workflows" && id === undefined) {
    return { target: "workflow", name: readSegment(name, { name: "name" }) };
  }
  throw new KitError({ code: "not_found", message: "There is no WebSocket here." });
}

/** Throws for a target that does not exist or is not reachable. */
function checkTarget(context: ServiceContext, { target, name }: SocketTarget): void {
  if (target === "agent") checkAgent(context, name);
  else checkWorkflow(context.service.app, name);
}

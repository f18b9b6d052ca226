import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import { type WebSocket, WebSocketServer } from "ws";
import { KitError } from "../../base/kit-error.ts";
import { socketProtocol } from "../../protocol/socket-protocol.ts";
import type { Gate } from "../access/access.ts";
import { type ConnectionSlot, createConnectionSlots } from "../access/connection-slots.ts";
import type { RequestEntry } from "../answer-request.ts";
import { toErrorReply } from "../reply.ts";
import type { ServiceContext } from "../service-context.ts";
import { type ConnectionPeer, serveAgent } from "./agent-connection.ts";
import { type Connection, createConnection, type FrameHandler, readFrames } from "./connection.ts";
import {
  checkTarget,
  findTarget,
  type Handshake,
  readHandshake,
  type SocketTarget,
  toRequest,
} from "./handshake.ts";
import { serveWorkflow } from "./workflow-connection.ts";

/** The WebSockets of a server. */
export interface SocketServer {
  /**
   * Takes over the connection of a handshake. Throws what is to be answered in its place:
   * `unauthorized`, `forbidden`, `not_found`, `agent_not_found`, `unavailable`, ….
   */
  upgrade(incoming: IncomingMessage, socket: Duplex, head: Buffer): Promise<void>;
  /** Closes connections with 1001, each when what it asked for has ended. */
  close(): void;
  /** Cuts what is left. */
  terminate(): void;
}

/** A handshake that was let in. */
interface Admission {
  readonly target: SocketTarget;
  readonly peer: ConnectionPeer;
  readonly place: ConnectionSlot;
}

interface OpenSocket {
  readonly socket: WebSocket;
  readonly handler: FrameHandler;
  /** Whether anything came since the last ping. */
  alive: boolean;
}

export function createSocketServer(
  context: ServiceContext,
  { gate, onRequest }: { readonly gate: Gate; readonly onRequest?: (entry: RequestEntry) => void },
): SocketServer {
  const { limits, authorization } = context;
  const open = new Set<OpenSocket>();
  const slots = createConnectionSlots({
    what: "connections",
    slots: limits.webSockets,
    share: limits.webSocketsPerPrincipal,
  });
  const server = new WebSocketServer({
    noServer: true,
    clientTracking: false,
    maxPayload: limits.webSocketMessageBytes,
    handleProtocols: (offered) => (offered.has(socketProtocol) ? socketProtocol : false),
  });
  // A handshake that is none is refused by its own promise.
  const refusals = new WeakMap<Duplex, (error: KitError) => void>();
  server.on("wsClientError", (cause, socket) => {
    const message = "The WebSocket handshake is not valid.";
    refusals.get(socket)?.(new KitError({ code: "invalid_request", message, cause }));
  });
  let timer: NodeJS.Timeout | undefined;
  let closing = false;

  // One timer for all. A client that has answered nothing between two pings is gone.
  const beat = (): void => {
    for (const entry of open) {
      if (entry.alive) {
        entry.alive = false;
        entry.socket.ping();
      } else {
        entry.socket.terminate();
      }
    }
  };
  const begin = (socket: WebSocket, { target, peer, place }: Admission): void => {
    const connection = createConnection(socket, context);
    const entry: OpenSocket = { socket, handler: serve(connection, target, { context, peer }), alive: true };
    const revive = (): void => {
      entry.alive = true;
    };
    open.add(entry);
    // After the sockets were read: the answers to a ping lie there when the process itself has stood still.
    timer ??= setInterval(() => setImmediate(beat), limits.heartbeatMs).unref();
    socket.on("pong", revive);
    socket.on("message", revive);
    socket.on("close", () => {
      open.delete(entry);
      place.release();
      if (open.size > 0) return;
      clearInterval(timer);
      timer = undefined;
    });
    readFrames(socket, connection, { handler: entry.handler, limits });
    connection.send({ type: "ready", ...target });
  };

  const admit = async (handshake: Handshake): Promise<Admission> => {
    const principal = await gate.check(handshake);
    const target = findTarget(handshake.path);
    await authorization.check(
      target.target === "agent"
        ? { principal, action: "agent.prompt", agent: target.name, instance: target.instance_id }
        : { principal, action: "workflow.run", workflow: target.name },
    );
    checkTarget(context, target);
    if (closing) {
      const meta = { retry_after_s: 5 };
      throw new KitError({ code: "unavailable", message: "The server is closing.", meta });
    }
    const count = (): void => gate.count(principal, handshake.remoteAddress);
    const peer = { principal, count, request: toRequest(handshake) };
    return { target, peer, place: slots.take(principal?.id) };
  };

  return {
    async upgrade(incoming, socket, head) {
      const started = performance.now();
      const handshake = readHandshake(incoming);
      const report = (status: number): void =>
        onRequest?.({
          method: "GET",
          path: handshake.path,
          status,
          duration_ms: performance.now() - started,
        });
      let admission: Admission | undefined;
      try {
        const admitted = await admit(handshake);
        admission = admitted;
        const { promise, resolve, reject } = Promise.withResolvers<void>();
        refusals.set(socket, reject);
        server.handleUpgrade(incoming, socket, head, (opened) => {
          begin(opened, admitted);
          resolve();
        });
        await promise;
        report(101);
      } catch (error) {
        admission?.place.release();
        report(toErrorReply(error, { dev: false }).status);
        throw error;
      }
    },
    close() {
      closing = true;
      for (const { handler } of [...open]) handler.finish();
    },
    terminate() {
      for (const { socket } of [...open]) socket.terminate();
    },
  };
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

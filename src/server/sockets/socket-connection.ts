import { type RawData, WebSocket } from "ws";
import { origins } from "../../app/runtime/observers.ts";
import { KitError } from "../../base/kit-error.ts";
import { parseJson } from "../../base/parse-json.ts";
import type { ErrorEnvelope } from "../../protocol/errors.ts";
import {
  type ClientFrame,
  clientFrameSchema,
  type FrameTrace,
  type ServerFrame,
} from "../../protocol/socket-frame.ts";
import { readTraceContext } from "../../protocol/tracing.ts";
import type { ServerLimits } from "../limits.ts";
import { checkInput } from "../request/read-request.ts";

/** Close codes of RFC 6455, section 7.4.1, and 1013 of the IANA registry. */
export const closeCodes = { done: 1000, goingAway: 1001, notText: 1003, tooSlow: 1013 } as const;

/** If more than this is on its way to a client, the next event waits. */
const highWaterBytes = 65_536;

export interface ConnectionOptions {
  readonly limits: ServerLimits;
  readonly masked: <Value>(value: Value) => Value;
  readonly toEnvelope: (error: unknown) => ErrorEnvelope;
}

/** A WebSocket, for the handlers of its frames. */
export interface Connection {
  send(frame: ServerFrame): void;
  /** Sends a frame that is already text; resolves when the client can receive more, or has disconnected. */
  deliver(text: string): Promise<void>;
  sendError(error: unknown, requestId?: string): void;
  close(code: number, reason: string): void;
  readonly isOpen: boolean;
}

/** The handler of a connection's frames. */
export interface FrameHandler {
  onFrame(frame: ClientFrame): void;
  /** Called when the connection has closed. */
  onClose(): void;
  /** Called when the server closes: waits for work that the client cannot resume, then closes the connection. */
  finish(): void;
}

export function createConnection(
  socket: WebSocket,
  { limits, masked, toEnvelope }: ConnectionOptions,
): Connection {
  const write = (text: string, onWritten?: () => void): void => {
    if (socket.readyState === WebSocket.OPEN && socket.bufferedAmount <= limits.unreadBytes) {
      socket.send(text, () => onWritten?.());
      return;
    }
    // Otherwise the answers of a client that never reads would stay in memory forever.
    socket.terminate();
    onWritten?.();
  };
  // The request id is not masked: the client matches the answer by it.
  const send = (frame: ServerFrame): void =>
    write(
      JSON.stringify(
        "request_id" in frame ? { ...masked(frame), request_id: frame.request_id } : masked(frame),
      ),
    );
  return {
    send,
    async deliver(text) {
      if (socket.bufferedAmount < highWaterBytes) return write(text);
      await new Promise<void>((resolve) => write(text, resolve));
    },
    sendError(error, requestId) {
      const request = requestId === undefined ? {} : { request_id: requestId };
      send({ type: "error", ...request, ...toEnvelope(error) });
    },
    close: (code, reason) => socket.close(code, reason),
    get isOpen() {
      return socket.readyState === WebSocket.OPEN;
    },
  };
}

/** Reads the frames of a socket; answers an invalid frame with an error. */
export function readFrames(
  socket: WebSocket,
  connection: Connection,
  { handler, limits }: { readonly handler: FrameHandler; readonly limits: ServerLimits },
): void {
  socket.on("message", (data: RawData, isBinary: boolean) => {
    if (isBinary) return socket.close(closeCodes.notText, "Frames are JSON text.");
    let requestId: string | undefined;
    try {
      const value = parseJson(data.toString(), { maxDepth: limits.jsonDepth });
      requestId = requestIdOf(value);
      handler.onFrame(checkInput("frame", value, clientFrameSchema));
    } catch (error) {
      connection.sendError(error, requestId);
    }
  });
  // The library closes the socket after an error of the protocol.
  socket.on("error", () => undefined);
  socket.on("close", () => handler.onClose());
}

/** Runs the request of a frame in the trace of the frame, else of the handshake. */
export function inTraceOf<Value>(
  frame: FrameTrace,
  { headers }: Pick<Request, "headers">,
  work: () => Value,
): Value {
  const trace =
    readTraceContext(frame.traceparent, frame.tracestate) ??
    readTraceContext(headers.get("traceparent"), headers.get("tracestate"));
  return trace === undefined ? work() : origins.run(trace, work);
}

/** Returns the request id of a frame that can be invalid otherwise. */
function requestIdOf(value: unknown): string | undefined {
  if (typeof value !== "object" || value === null || !("request_id" in value)) return undefined;
  const { request_id: id } = value;
  return typeof id === "string" && id.length <= 128 ? id : undefined;
}

/** Creates the error for a type of frame that this connection does not accept. */
export function misplacedFrame(type: ClientFrame["type"]): KitError {
  return new KitError({
    code: "invalid_request",
    message: `This connection does not accept frames of type "${type}".`,
  });
}

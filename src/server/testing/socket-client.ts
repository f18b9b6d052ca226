import { once } from "node:events";
import { WebSocket } from "ws";

// biome-ignore lint/suspicious/noExplicitAny: a test looks into whatever was sent.
type Frame = any;

/** A WebSocket of a test, whose frames wait until they are read. */
export interface SocketClient {
  readonly socket: WebSocket;
  send(frame: unknown): void;
  /** The next frame. Rejects when the connection ends before one comes. */
  next(): Promise<Frame>;
  /** Frames up to one of this type, that one included. */
  until(type: string): Promise<readonly Frame[]>;
  /** The code that the connection was closed with. */
  readonly closed: Promise<number>;
}

export interface SocketOptions {
  readonly headers?: Readonly<Record<string, string>>;
  readonly protocols?: readonly string[];
}

/** Opens a WebSocket. Rejects with the status and the body of a refusal. */
export async function openSocket(url: string, options: SocketOptions = {}): Promise<SocketClient> {
  const socket = new WebSocket(url.replace(/^http/, "ws"), [...(options.protocols ?? [])], {
    headers: { ...options.headers },
  });
  const closed = Promise.withResolvers<number>();
  const frames: Frame[] = [];
  let wake: (() => void) | undefined;
  let over = false;
  socket.on("message", (data) => {
    frames.push(JSON.parse(data.toString()));
    wake?.();
  });
  socket.on("close", (code) => {
    over = true;
    closed.resolve(code);
    wake?.();
  });
  const refused = Promise.withResolvers<never>();
  socket.on("unexpected-response", (_, reply) => {
    let body = "";
    reply.on("data", (chunk: Buffer) => {
      body += chunk.toString();
    });
    reply.on("end", () => refused.reject(new RefusedError(reply.statusCode ?? 0, body)));
  });
  socket.on("error", (error) => refused.reject(error));
  await Promise.race([once(socket, "open"), refused.promise]);
  refused.promise.catch(() => undefined);
  const next = async (): Promise<Frame> => {
    while (frames.length === 0) {
      if (over) throw new Error("The connection has ended.");
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
    }
    return frames.shift();
  };
  return {
    socket,
    send: (frame) => socket.send(typeof frame === "string" ? frame : JSON.stringify(frame)),
    next,
    async until(type) {
      const seen: Frame[] = [];
      do seen.push(await next());
      while (seen.at(-1).type !== type);
      return seen;
    },
    closed: closed.promise,
  };
}

/** A handshake that was answered with HTTP. */
export class RefusedError extends Error {
  readonly status: number;
  readonly body: string;

  constructor(status: number, body: string) {
    super(`${status}: ${body}`);
    this.status = status;
    this.body = body;
  }
}

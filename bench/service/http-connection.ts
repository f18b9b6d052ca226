import { once } from "node:events";
import { connect, type Socket } from "node:net";

export interface Reply {
  readonly status: number;
  readonly body: string;
}

/** A kept-alive connection that carries one request at a time. */
export interface Connection {
  send(request: Buffer): Promise<Reply>;
  close(): void;
}

export interface RequestParts {
  readonly method?: "GET" | "POST" | "DELETE";
  readonly path: string;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Encodes a request as bytes in advance, so that it costs nothing during the measurement. */
export function toRequest({ method, path, body, headers = {} }: RequestParts): Buffer {
  const text = body === undefined ? "" : JSON.stringify(body);
  const lines = [
    `${method ?? (body === undefined ? "GET" : "POST")} ${path} HTTP/1.1`,
    "host: 127.0.0.1",
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
    ...(body === undefined
      ? []
      : ["content-type: application/json", `content-length: ${Buffer.byteLength(text)}`]),
  ];
  return Buffer.from(`${lines.join("\r\n")}\r\n\r\n${text}`);
}

/**
 * HTTP without a library: a tenth of the work of `fetch`, so that the client does not limit the
 * measurement. Reads replies with a Content-Length, and chunked ones whose last chunk ends a packet.
 */
export async function openConnection(port: number): Promise<Connection> {
  const socket = await openSocket(port);
  let waiting: PromiseWithResolvers<Reply> | undefined;
  let received = "";
  socket.on("data", (chunk: Buffer) => {
    received += chunk.toString("latin1");
    const reply = parseReply(received);
    if (reply === undefined) return;
    received = "";
    waiting?.resolve(reply);
  });
  const fail = (error: Error): void => waiting?.reject(error);
  socket.on("error", fail);
  socket.on("close", () => fail(new Error("The server has closed the connection.")));
  return {
    send(request) {
      waiting = Promise.withResolvers<Reply>();
      socket.write(request);
      return waiting.promise;
    },
    close: () => socket.destroy(),
  };
}

export async function openSocket(port: number): Promise<Socket> {
  const socket = connect({ host: "127.0.0.1", port, noDelay: true });
  await once(socket, "connect");
  return socket;
}

function parseReply(received: string): Reply | undefined {
  const end = received.indexOf("\r\n\r\n");
  if (end < 0) return undefined;
  const head = received.slice(0, end);
  const status = Number(head.slice(9, 12));
  const length = /content-length: *(\d+)/i.exec(head)?.[1];
  if (length !== undefined) {
    const body = received.slice(end + 4);
    return body.length < Number(length) ? undefined : { status, body };
  }
  if (!received.endsWith("\r\n0\r\n\r\n")) return undefined;
  return { status, body: dechunk(received.slice(end + 4)) };
}

function dechunk(text: string): string {
  let body = "";
  for (let at = 0; at < text.length; ) {
    const line = text.indexOf("\r\n", at);
    const size = Number.parseInt(text.slice(at, line), 16);
    body += text.slice(line + 2, line + 2 + size);
    at = line + 2 + size + 2;
  }
  return body;
}

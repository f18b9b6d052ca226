import { request } from "node:http";
import { connect } from "node:net";

export interface SentRequest {
  readonly method?: string;
  /** As it is put on the wire. */
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array;
  /** Sends the body without a Content-Length. */
  readonly chunked?: boolean;
}

export interface ReceivedReply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: string;
}

/** Sends a request as given: no URL is tidied, and any header may be set, `Host` and `Origin` too. */
export async function sendRequest(port: number, sent: SentRequest): Promise<ReceivedReply> {
  const { promise, resolve, reject } = Promise.withResolvers<ReceivedReply>();
  const { method = "GET", path, headers = {}, body, chunked = false } = sent;
  const length = body === undefined || chunked ? {} : { "content-length": String(Buffer.byteLength(body)) };
  const outgoing = request(
    { host: "127.0.0.1", port, method, path, headers: { ...headers, ...length }, agent: false },
    (reply) => {
      const chunks: Buffer[] = [];
      reply.on("data", (chunk: Buffer) => chunks.push(chunk));
      reply.on("error", reject);
      reply.on("end", () =>
        resolve({
          status: reply.statusCode ?? 0,
          headers: reply.headers,
          body: Buffer.concat(chunks).toString("utf8"),
        }),
      );
    },
  );
  outgoing.on("error", reject);
  outgoing.end(body);
  return await promise;
}

/** Writes bytes to a fresh connection and gives what comes back until it is closed, or falls silent after that. */
export async function sendRaw(port: number, raw: string): Promise<string> {
  const { promise, resolve } = Promise.withResolvers<string>();
  const socket = connect({ host: "127.0.0.1", port });
  const chunks: Buffer[] = [];
  socket.on("data", (chunk: Buffer) => {
    chunks.push(chunk);
    // A kept-alive connection stays open after its reply.
    socket.setTimeout(200, () => socket.destroy());
  });
  // A reset is a way to be refused.
  socket.on("error", () => undefined);
  socket.on("close", () => resolve(Buffer.concat(chunks).toString("utf8")));
  socket.write(raw);
  return await promise;
}

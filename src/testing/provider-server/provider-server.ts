import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import type { ProviderConfigs } from "../../models/provider-config.ts";
import { type ProviderAnswer, type ProviderProtocol, providerProtocols } from "./protocols.ts";

/** How the server answers one request. */
export type ProviderReply =
  | ProviderAnswer
  | {
      readonly status: number;
      readonly headers?: Readonly<Record<string, string>>;
      readonly message?: string;
      /** The whole body, in place of an error with the message. */
      readonly body?: string;
    }
  /** After this many chunks of the answer, the connection is cut (`inside`: within the next chunk), or ended as if the answer were complete. */
  | { readonly answer: ProviderAnswer; readonly cutAfter: number; readonly how?: "inside" | "ended" }
  /** Sends this many chunks, then this error. */
  | { readonly answer: ProviderAnswer; readonly garbageAfter: number; readonly garbage: string }
  /** Sends the answer up to the chunk that contains "more", which the server repeats as long as a client reads. */
  | { readonly endless: ProviderAnswer }
  /** Sends this many chunks, then nothing more. */
  | { readonly answer: ProviderAnswer; readonly silentAfter: number }
  | { readonly garbage: string };

export interface ProviderServer {
  /** `providers` of a configuration with which every provider's models call this server. */
  readonly providers: ProviderConfigs;
  /** The bodies of the requests so far. */
  readonly requests: readonly unknown[];
  /** Replies for the next requests, in order; after the last one, requests fail with 500. */
  script(replies: readonly ProviderReply[]): void;
  close(): Promise<void>;
}

/** Starts a server with the streaming protocols of the providers, and their faults. */
export async function startProviderServer(): Promise<ProviderServer> {
  const requests: unknown[] = [];
  let replies: readonly ProviderReply[] = [];
  let next = 0;
  // A client of a busy machine must not send on a connection that this server closes at the same moment.
  const server = createServer({ keepAliveTimeout: 600_000 }, (request, response) => {
    const protocol = providerProtocols.find((item) => item.matches((request.url ?? "").split("?")[0] ?? ""));
    void text(request).then((body) => {
      requests.push(body === "" ? undefined : JSON.parse(body));
      const reply = replies[next] ?? { status: 500, message: "The script of the provider server has ended." };
      next += 1;
      if (protocol === undefined) response.writeHead(404).end();
      else send(response, protocol, reply);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const providers = Object.fromEntries(
    providerProtocols.map(({ provider, basePath }) => [
      provider,
      { base_url: address + basePath, api_key: "test-key" },
    ]),
  );
  return {
    providers,
    requests,
    script(list) {
      replies = list;
      next = 0;
      requests.length = 0;
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function send(response: ServerResponse, protocol: ProviderProtocol, reply: ProviderReply): void {
  if ("status" in reply) {
    response.writeHead(reply.status, { "content-type": "application/json", ...reply.headers });
    response.end(reply.body ?? protocol.errorBody(reply.message ?? "no"));
    return;
  }
  response.writeHead(200, { "content-type": "text/event-stream" });
  if ("garbage" in reply && !("garbageAfter" in reply)) {
    response.end(reply.garbage);
    return;
  }
  if ("endless" in reply) {
    sendEndless(response, protocol.chunks(reply.endless));
    return;
  }
  const chunks = protocol.chunks("answer" in reply ? reply.answer : reply);
  response.flushHeaders();
  for (const chunk of chunks.slice(0, countOf(reply) ?? chunks.length)) response.write(chunk);
  if ("garbageAfter" in reply) response.end(reply.garbage);
  else if ("cutAfter" in reply) {
    const next = chunks[reply.cutAfter] ?? "";
    if (reply.how === "inside") response.write(next.slice(0, next.length / 2));
    // Only after the chunks were sent: a reset would discard them.
    if (reply.how === "ended") response.end();
    else setTimeout(() => response.destroy(), 20);
  } else if (!("silentAfter" in reply)) response.end();
}

/** The number of chunks of the answer to send; `undefined` for all. */
function countOf(reply: ProviderReply): number | undefined {
  if ("cutAfter" in reply) return reply.cutAfter;
  if ("garbageAfter" in reply) return reply.garbageAfter;
  return "silentAfter" in reply ? reply.silentAfter : undefined;
}

function sendEndless(response: ServerResponse, chunks: readonly string[]): void {
  const place = chunks.findIndex((chunk) => chunk.includes("more"));
  for (const chunk of chunks.slice(0, place)) response.write(chunk);
  const again = (): void => {
    while (!response.destroyed) {
      if (response.write(chunks[place] ?? "")) continue;
      response.once("drain", again);
      return;
    }
  };
  again();
}

import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import type { ProviderConfigs } from "../../models/provider-config.ts";
import { type ProviderAnswer, type ProviderProtocol, providerProtocols } from "./protocols.ts";

/** How the server treats one request. */
export type ProviderReply =
  | ProviderAnswer
  | {
      readonly status: number;
      readonly headers?: Readonly<Record<string, string>>;
      readonly message?: string;
    }
  /** The connection is cut after so many chunks of the answer. */
  | { readonly answer: ProviderAnswer; readonly cutAfter: number }
  /** So many chunks, then nothing more. */
  | { readonly answer: ProviderAnswer; readonly silentAfter: number }
  | { readonly garbage: string };

export interface ProviderServer {
  /** `providers` of a configuration, so that every provider's models are served from here. */
  readonly providers: ProviderConfigs;
  /** The bodies of the requests so far. */
  readonly requests: readonly unknown[];
  /** Replies for the next requests, in order; past them requests fail with 500. */
  script(replies: readonly ProviderReply[]): void;
  close(): Promise<void>;
}

/** Starts a server that speaks the streaming protocols of the providers, and their faults. */
export async function startProviderServer(): Promise<ProviderServer> {
  const requests: unknown[] = [];
  let replies: readonly ProviderReply[] = [];
  let next = 0;
  const server = createServer((request, response) => {
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
    response.end(protocol.errorBody(reply.message ?? "no"));
    return;
  }
  response.writeHead(200, { "content-type": "text/event-stream" });
  if ("garbage" in reply) {
    response.end(reply.garbage);
    return;
  }
  const chunks = protocol.chunks("answer" in reply ? reply.answer : reply);
  const count =
    "cutAfter" in reply ? reply.cutAfter : "silentAfter" in reply ? reply.silentAfter : chunks.length;
  response.flushHeaders();
  for (const chunk of chunks.slice(0, count)) response.write(chunk);
  if ("cutAfter" in reply) {
    // Only once the chunks are on their way: a reset would take them along.
    setTimeout(() => response.destroy(), 20);
  } else if (!("silentAfter" in reply)) response.end();
}

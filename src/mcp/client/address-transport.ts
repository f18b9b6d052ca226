import { createBoundedFetch } from "./bounded-fetch.ts";
import type { McpSdk } from "./load-sdk.ts";
import { ServerFailure } from "./server-failure.ts";

/** The protocol over streamable HTTP. */
export type AddressTransport = InstanceType<McpSdk["StreamableHTTPClientTransport"]>;

/**
 * Creates a transport whose answers are bounded, and which notices when the stream of an answer ends
 * without one: the SDK would wait for the time limit.
 */
export function createAddressTransport(
  sdk: Pick<McpSdk, "StreamableHTTPClientTransport">,
  endpoint: { readonly url: URL; readonly headers: Readonly<Record<string, string>> },
): AddressTransport {
  const transport = new sdk.StreamableHTTPClientTransport(endpoint.url, {
    requestInit: { headers: { ...endpoint.headers } },
    fetch: createBoundedFetch(),
  });
  const send = transport.send.bind(transport);
  transport.send = (message, options) =>
    send(message, {
      ...options,
      onRequestStreamEnd() {
        options?.onRequestStreamEnd?.();
        // For a request that was answered this is one answer too many, which the SDK drops.
        if (!("id" in message) || !("method" in message)) return;
        const data = new ServerFailure("The connection to it was lost.", {
          outcome: "unknown",
          isLost: true,
        });
        transport.onmessage?.({
          jsonrpc: "2.0",
          id: message.id,
          error: { code: -32_000, message: "", data },
        });
      },
    });
  return transport;
}

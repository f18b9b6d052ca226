import { Client, type ClientOptions, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";

/** A client of the official SDK, connected to a server's `/mcp`. */
export async function connectMcp(
  url: string,
  {
    era = "auto",
    headers = {},
    answer,
    capabilities = {},
  }: {
    readonly era?: "auto" | "legacy";
    readonly headers?: Readonly<Record<string, string>>;
    /** Answers forms; without it, the client declares that it shows none. */
    readonly answer?: (message: string) => object;
    readonly capabilities?: NonNullable<ClientOptions["capabilities"]>;
  } = {},
): Promise<Client> {
  const client = new Client(
    { name: "test", version: "1.0.0" },
    {
      capabilities: { ...capabilities, ...(answer === undefined ? {} : { elicitation: { form: {} } }) },
      versionNegotiation: { mode: era },
    },
  );
  if (answer !== undefined)
    client.setRequestHandler("elicitation/create", ({ params }) => answer(params.message) as never);
  await client.connect(
    new StreamableHTTPClientTransport(new URL(`${url}/mcp`), { requestInit: { headers: { ...headers } } }),
  );
  return client;
}

/** The headers and the body of a request of revision 2026-07-28. */
export function modernRequest(
  method: string,
  params: Readonly<Record<string, unknown>> = {},
  capabilities: object = {},
): { readonly body: unknown; readonly headers: Readonly<Record<string, string>> } {
  const name = params.taskId ?? params.name ?? params.uri;
  return {
    headers: {
      accept: "application/json, text/event-stream",
      "mcp-protocol-version": "2026-07-28",
      "mcp-method": method,
      ...(typeof name === "string" ? { "mcp-name": name } : {}),
    },
    body: {
      ...{ jsonrpc: "2.0", id: 1, method },
      params: {
        ...params,
        _meta: {
          "io.modelcontextprotocol/protocolVersion": "2026-07-28",
          "io.modelcontextprotocol/clientInfo": { name: "test", version: "1.0.0" },
          "io.modelcontextprotocol/clientCapabilities": capabilities,
        },
      },
    },
  };
}

/** The texts of a tool's result. */
export function textOf(result: unknown): string {
  const { content = [] }: { readonly content?: readonly { readonly text?: string }[] } = Object(result);
  return content.map(({ text = "" }) => text).join("");
}

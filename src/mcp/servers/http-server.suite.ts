import { once } from "node:events";
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { getRequestListener } from "@hono/node-server";
import { createMcpHandler, WebStandardStreamableHTTPServerTransport } from "@modelcontextprotocol/server";
import { expect, onTestFinished } from "vitest";
import { openServer, toolsAndProblems } from "../client.suite.ts";
import { createToolServer } from "../testing/create-tool-server.ts";

export interface HttpServer {
  readonly url: string;
  /** Stops listening and drops every connection. */
  stop(): Promise<void>;
}

/** Starts a real HTTP server on a free or given port; stopped at the end of the test. */
export async function serveHttp(listener: RequestListener, port = 0): Promise<HttpServer> {
  const server = createServer(listener).listen(port, "127.0.0.1");
  await once(server, "listening");
  const stop = async (): Promise<void> => {
    server.closeAllConnections();
    if (server.listening) await new Promise((resolve) => server.close(resolve));
  };
  onTestFinished(stop);
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`, stop };
}

/** The received requests: method and headers. */
export type SeenRequests = { readonly method: string; readonly headers: Headers }[];

/** An MCP server of the newest protocol, which also supports the older ones, without sessions. */
export function modernListener(
  seen: SeenRequests = [],
  create = createToolServer,
): RequestListener & {
  readonly toolsChanged: () => void;
} {
  let extra = false;
  const handler = createMcpHandler(() => {
    const server = create();
    if (extra) server.registerTool("later", { description: "Came later." }, () => ({ content: [] }));
    return server;
  });
  const listener = getRequestListener((request) => {
    seen.push({ method: request.method, headers: request.headers });
    return handler.fetch(request);
  });
  return Object.assign(listener as RequestListener, {
    toolsChanged() {
      extra = true;
      handler.notify.toolsChanged();
    },
  });
}

/** An MCP server of the older protocol that keeps a session for each client until it restarts. */
export function sessionListener(seen: SeenRequests = [], create = createToolServer): RequestListener {
  const sessions = new Map<string, WebStandardStreamableHTTPServerTransport>();
  return getRequestListener(async (request) => {
    seen.push({ method: request.method, headers: request.headers });
    const id = request.headers.get("mcp-session-id");
    const known = id === null ? undefined : sessions.get(id);
    if (id !== null && known === undefined)
      return Response.json({ error: "no such session" }, { status: 404 });
    if (known !== undefined) return known.handleRequest(request);
    const transport = new WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: () => crypto.randomUUID(),
      onsessioninitialized: (session) => {
        sessions.set(session, transport);
      },
    });
    await create().connect(transport);
    return transport.handleRequest(request);
  }) as RequestListener;
}

/** One message of a client, with its request. */
export interface HttpMessage {
  readonly request: IncomingMessage;
  readonly reply: ServerResponse;
  /** `undefined` for a GET. */
  readonly message?: {
    readonly id?: number;
    readonly method: string;
    readonly params?: { requestId?: number };
  };
}

/**
 * An MCP server of the older protocol, written without a library, because no library would behave like it. `misbehave`
 * can answer a message instead of the server, and then returns true.
 */
export function oldListener(misbehave: (given: HttpMessage) => boolean | undefined): RequestListener {
  const results: Readonly<Record<string, unknown>> = {
    initialize: {
      protocolVersion: "2025-06-18",
      capabilities: { tools: { listChanged: true } },
      serverInfo: { name: "old", version: "1" },
    },
    "tools/list": { tools: [{ name: "plain", inputSchema: { type: "object" } }] },
    "tools/call": { content: [{ type: "text", text: "done" }] },
  };
  return async (request, reply) => {
    let body = "";
    for await (const chunk of request) body += chunk;
    const message = body === "" ? undefined : JSON.parse(body);
    if (misbehave({ request, reply, message }) === true) return;
    const result = results[message?.method];
    if (message === undefined) reply.writeHead(405).end();
    else if (message.id === undefined) reply.writeHead(202).end();
    else if (result === undefined) reply.writeHead(400).end();
    else {
      reply.writeHead(200, { "content-type": "application/json" });
      reply.end(JSON.stringify({ jsonrpc: "2.0", id: message.id, result }));
    }
  };
}

/** The problems that the client reports of a server that answers everything the same way. */
export async function complaintAbout(listener: RequestListener, settings: object = {}): Promise<string> {
  const { url } = await serveHttp(listener);
  const client = openServer({ url, ...settings });
  const { tools, problems } = await toolsAndProblems(client);
  expect(tools).toEqual([]);
  return problems.map((problem) => problem.message).join("\n");
}

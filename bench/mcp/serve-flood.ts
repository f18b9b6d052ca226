/**
 * An MCP server over HTTP, of the old protocol, that floods its client in the way that the argument names. Prints
 * its port, and then, with each requested event stream, how many were requested.
 */
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { createGzip, gzipSync } from "node:zlib";

const scenario = process.argv[2] ?? "";
const eventStream = { "content-type": "text/event-stream" };
const change = 'data: {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}\n\n';

/** The text that an event stream repeats. */
const streams: Readonly<Record<string, string>> = {
  "stream of events": change.repeat(256),
  "stream of blank lines": "\n".repeat(16_384),
  "stream of carriage returns": "\r".repeat(16_384),
  "stream of comments": ":\n".repeat(16_384),
  "stream of empty events": "data:\n\n".repeat(4_096),
  "stream of fields": "id: 1\nretry: 0\n".repeat(4_096),
  "one line without end": "x".repeat(4_096),
  "one event without end": "data: x\n".repeat(4_096),
};

const results: Readonly<Record<string, unknown>> = {
  initialize: {
    protocolVersion: "2025-06-18",
    capabilities: { tools: { listChanged: true } },
    serverInfo: { name: "flood", version: "1" },
  },
  "tools/list": { tools: [{ name: "plain", inputSchema: { type: "object" } }] },
};

/** Writes for ever, as fast as the client reads. */
function flood(
  output: Pick<ServerResponse | Socket, "write" | "once"> & { readonly destroyed: boolean },
  chunk: string | Buffer,
): void {
  const write = (): void => {
    for (let count = 0; count < 100 && !output.destroyed; count += 1) {
      if (output.write(chunk)) continue;
      output.once("drain", write);
      return;
    }
    if (!output.destroyed) setImmediate(write);
  };
  write();
}

/** Answers a GET, which opens the stream of notifications. */
function misbehave(reply: ServerResponse, socket: Socket): void {
  const stream = streams[scenario];
  if (stream !== undefined) {
    flood(reply.writeHead(200, eventStream), stream);
  } else if (scenario === "closed at once, retry: 0") {
    reply.writeHead(200, eventStream).end("retry: 0\n\n");
  } else if (scenario === "stream byte by byte") {
    socket.setNoDelay(true);
    flood(reply.writeHead(200, eventStream), ":");
  } else if (scenario === "stream of a gzip bomb") {
    const gzip = createGzip();
    gzip.pipe(reply.writeHead(200, { ...eventStream, "content-encoding": "gzip" }));
    const blank = Buffer.alloc(1_048_576, "\n");
    const write = (): void => {
      if (!reply.destroyed) gzip.write(blank, write);
    };
    write();
  } else if (scenario === "headers without end") {
    socket.write("HTTP/1.1 200 OK\r\n");
    flood(socket, "x-more: y\r\n".repeat(1_024));
  } else if (scenario === "1xx without end") {
    flood(socket, "HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n".repeat(256));
  } else if (scenario === "100 Continue without end") {
    flood(socket, "HTTP/1.1 100 Continue\r\n\r\n".repeat(256));
  } else reply.writeHead(405).end();
}

// 4 GB of blanks in 4 MB, in one JSON body.
const bomb = scenario === "JSON as a gzip bomb" ? gzipSync(Buffer.alloc(1_048_576, " ")) : Buffer.alloc(0);
let streamsOpened = 0;
const server = createServer(async (request, reply) => {
  if (request.method === "GET") {
    streamsOpened += 1;
    process.stdout.write(`${streamsOpened}\n`);
  }
  let body = "";
  for await (const piece of request) body += piece;
  if (body === "") {
    misbehave(reply, request.socket);
    return;
  }
  const { id, method } = JSON.parse(body);
  const result = results[method];
  if (method === "tools/call") {
    if (scenario === "calls that time out, retry: 0")
      reply.writeHead(200, eventStream).end("retry: 0\nid: 1\ndata:\n\n");
    return;
  }
  if (id === undefined) reply.writeHead(202).end();
  else if (result === undefined) reply.writeHead(400).end();
  else if (method === "tools/list" && scenario === "JSON as a gzip bomb") {
    reply.writeHead(200, { "content-type": "application/json", "content-encoding": "gzip" });
    flood(reply, bomb);
  } else {
    reply.writeHead(200, { "content-type": "application/json" });
    reply.end(JSON.stringify({ jsonrpc: "2.0", id, result }));
  }
});
// Clients disconnect during a flood.
server.on("connection", (socket) => socket.on("error", () => undefined));
server.listen(0, "127.0.0.1", () => {
  process.stdout.write(`port ${(server.address() as AddressInfo).port}\n`);
});

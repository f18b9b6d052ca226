import { once } from "node:events";
import { connect } from "node:net";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import type { AccessOptions } from "./access/access.ts";
import { createServer, type KitServer, type ServerOptions } from "./create-server.ts";
import { sendRaw, sendRequest } from "./testing/send-request.ts";
import { shopFiles } from "./testing/shop-files.ts";
import { type TemporaryProject, temporaryProject } from "./testing/temporary-project.ts";

let shop: TemporaryProject;

beforeAll(async () => {
  shop = await temporaryProject(shopFiles);
});
afterAll(async () => {
  await shop.remove();
});

/** A server that listens until the end of the test. */
async function listening(options: Partial<ServerOptions>): Promise<{ port: number; server: KitServer }> {
  const server = createServer({ project: shop.project, ...options });
  onTestFinished(() => server.close());
  return { port: (await server.listen({ port: 0 })).port, server };
}

const asAccess = (access: AccessOptions): Partial<ServerOptions> => ({ access });

test("a public address is refused if the server has no access control", async () => {
  const open = createServer({ project: shop.project });
  for (const host of ["0.0.0.0", "::", "10.1.2.3"]) {
    await expect(open.listen({ host, port: 0 })).rejects.toMatchObject({
      code: "forbidden",
      hint: expect.stringContaining("KIT_API_KEYS"),
    });
  }
  for (const access of [{ apiKeys: ["a-key"] }, { auth: () => true }, { insecure: true }]) {
    const server = createServer({ project: shop.project, access });
    const { url } = await server.listen({ host: "0.0.0.0", port: 0 });
    expect(url).toMatch(/^http:\/\/localhost:\d+$/);
    await server.close();
  }
});

test("a port that is in use is a conflict", async () => {
  const { port } = await listening({});
  const second = createServer({ project: shop.project });
  await expect(second.listen({ port })).rejects.toMatchObject({
    code: "conflict",
    hint: expect.any(String),
  });
});

test("with keys, every route except /health requires one", async () => {
  const { port } = await listening(asAccess({ apiKeys: ["key-one", "key-two"] }));
  expect((await sendRequest(port, { path: "/health" })).status).toBe(200);
  for (const path of ["/", "/openapi.json", "/api/specs", "/nope", "/api/specs?token=key-one"]) {
    const reply = await sendRequest(port, { path });
    expect([path, reply.status, reply.headers["www-authenticate"]]).toEqual([path, 401, "Bearer"]);
    expect(JSON.parse(reply.body).error.type).toBe("unauthorized");
  }
  const headers = { authorization: "Bearer key-two" };
  expect((await sendRequest(port, { path: "/api/specs", headers })).status).toBe(200);
});

test("the configuration's auth is called after the keys are checked, and if it fails the request is refused", async () => {
  const auth: AccessOptions["auth"] = async ({ path, headers }) => {
    if (path === "/api/specs/graph") throw new Error("the directory is down");
    return headers.get("x-team") === "books";
  };
  const headers = { authorization: "Bearer key-one", "x-team": "books" };
  const withKeys = await listening(asAccess({ apiKeys: ["key-one"], auth }));
  const status = async (path: string, sent: Record<string, string>) =>
    (await sendRequest(withKeys.port, { path, headers: sent })).status;
  expect(await status("/api/specs", headers)).toBe(200);
  expect(await status("/api/specs", { ...headers, "x-team": "toys" })).toBe(403);
  expect(await status("/api/specs", { "x-team": "books" })).toBe(401);
  expect(await status("/api/specs/graph", headers)).toBe(500);
  const { port } = await listening(asAccess({ auth }));
  expect((await sendRequest(port, { path: "/api/specs" })).status).toBe(401);
});

test("a configured page may send requests and read replies, including refusals; other pages may not", async () => {
  const access = { allowedOrigins: ["https://app.example"], apiKeys: ["a-key"] };
  const { port } = await listening(asAccess(access));
  const headers = { origin: "https://app.example" };
  const reply = await sendRequest(port, {
    path: "/api/specs",
    headers: { ...headers, authorization: "Bearer a-key" },
  });
  expect([reply.status, reply.headers["access-control-allow-origin"]]).toEqual([200, "https://app.example"]);
  const refused = await sendRequest(port, { path: "/api/specs", headers });
  expect([refused.status, refused.headers["access-control-allow-origin"]]).toEqual([
    401,
    "https://app.example",
  ]);
  const preflight = await sendRequest(port, {
    path: "/api/specs/impact",
    method: "OPTIONS",
    headers: {
      ...headers,
      "access-control-request-method": "POST",
      "access-control-request-headers": "authorization,content-type,x-tenant",
    },
  });
  expect([preflight.status, preflight.headers["access-control-allow-headers"]]).toEqual([
    204,
    // A star stands for headers of the application's own.
    "authorization, content-type, idempotency-key, last-event-id, kit-stream, traceparent, tracestate, *",
  ]);
  const foreign = await sendRequest(port, {
    path: "/api/specs",
    headers: { origin: "https://evil.example" },
  });
  expect([foreign.status, foreign.headers["access-control-allow-origin"]]).toEqual([403, undefined]);
});

test("requests that two parsers could read differently are refused", async () => {
  const { port } = await listening({});
  const send = async (head: string) => await sendRaw(port, `${head}\r\nConnection: close\r\n\r\n`);
  for (const head of [
    "GET /health HTTP/1.1",
    "GET /health HTTP/1.1\r\nHost: localhost\r\nHost: evil.example",
    "GET http://evil.example/health HTTP/1.1\r\nHost: localhost",
    "GET /api/specs/../guidelines HTTP/1.1\r\nHost: localhost",
    "GET /api/specs/%2e%2E HTTP/1.1\r\nHost: localhost",
    "OPTIONS * HTTP/1.1\r\nHost: localhost",
    "CONNECT example.com:443 HTTP/1.1\r\nHost: localhost",
    "GET /health HTTP/1.1\r\nHost: localhost\r\nExpect: magic",
    `GET /health HTTP/1.1\r\nHost: localhost\r\n${"X-A: b\r\n".repeat(120)}X-B: c`,
    `GET /health HTTP/1.1\r\nHost: localhost\r\nX-Big: ${"a".repeat(17_000)}`,
    "NONSENSE",
  ]) {
    const reply = await send(head);
    expect([head.slice(0, 80), reply.split("\r\n", 1)[0]]).toEqual([
      head.slice(0, 80),
      "HTTP/1.1 400 Bad Request",
    ]);
    const body = reply.slice(reply.indexOf("\r\n\r\n"));
    expect(body).toContain('"type":"invalid_request"');
  }
  const fine = await send("GET /health HTTP/1.1\r\nHost: localhost");
  expect(fine).toContain('"ok":true');
});

test("a body that is larger than declared, or of undeclared size, is cut off", async () => {
  const { port } = await listening({ limits: { bodyBytes: 1_000 } });
  const headers = { "content-type": "application/json" };
  const body = JSON.stringify({ format: "a".repeat(5_000) });
  for (const chunked of [false, true]) {
    const reply = await sendRequest(port, {
      method: "POST",
      path: "/api/guidelines/export",
      headers,
      body,
      chunked,
    });
    expect([reply.status, JSON.parse(reply.body).error.type]).toEqual([413, "payload_too_large"]);
  }
});

test("a client that is still sending gets the refusal, then the connection is closed", async () => {
  const { port } = await listening({ limits: { bodyBytes: 1_000 } });
  const piece = "a".repeat(10_000);
  const pieces = 40;
  for (const [path, status] of [
    ["/api/guidelines/export", 413],
    ["/none", 404],
  ]) {
    const socket = connect({ host: "127.0.0.1", port });
    let reply = "";
    socket.on("data", (chunk: Buffer) => {
      reply += chunk.toString();
    });
    const closed = once(socket, "close");
    const length = pieces * piece.length;
    socket.write(
      `POST ${path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n` +
        `Content-Type: application/json\r\nContent-Length: ${length}\r\n\r\n`,
    );
    for (let sent = 0; sent < pieces; sent += 1) {
      await new Promise<void>((resolve, reject) =>
        socket.write(piece, (error) => (error ? reject(error) : setImmediate(resolve))),
      );
    }
    await closed;
    expect(reply).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
  }
});

test("a client that pipelines too many requests is cut off", async () => {
  const held = Promise.withResolvers<boolean>();
  let requestCount = 0;
  const auth: AccessOptions["auth"] = () => {
    requestCount += 1;
    return held.promise;
  };
  const { port } = await listening({ access: { auth }, limits: { pipelinedRequests: 3 } });
  const ask = (count: number): string => "GET /api/specs HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(count);
  const greedy = connect({ host: "127.0.0.1", port });
  greedy.on("error", () => undefined);
  const cut = once(greedy, "close");
  greedy.write(ask(100));
  await cut;
  expect(requestCount).toBe(3);
  held.resolve(true);
  const modest = connect({ host: "127.0.0.1", port });
  const answers = modest[Symbol.asyncIterator]();
  for (let answered = 0; answered < 10; answered += 1) {
    modest.write("GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n");
    for (let text = ""; !text.includes('"ok":true'); ) text += (await answers.next()).value;
  }
  modest.destroy();
});

test("a client that sends too slowly is cut off in time, with a reason", async () => {
  const { port } = await listening({ limits: { headersTimeoutMs: 300, requestTimeoutMs: 600 } });
  const head = "POST /api/guidelines/export HTTP/1.1\r\nHost: localhost\r\n";
  const [headers, body] = await Promise.all([
    sendRaw(port, head),
    sendRaw(port, `${head}Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{"for`),
  ]);
  for (const reply of [headers, body]) {
    expect(reply).toContain("HTTP/1.1 400");
    expect(reply).toContain("did not arrive in time");
  }
});

test("closing waits for a running reply", async () => {
  const reached = Promise.withResolvers<void>();
  const held = Promise.withResolvers<boolean>();
  const auth = async (): Promise<boolean> => {
    reached.resolve();
    return await held.promise;
  };
  const limits = { closeGraceMs: 600_000 };
  const server = createServer({ project: shop.project, access: { auth }, limits });
  const { port } = await server.listen({ port: 0 });
  const reply = sendRequest(port, { path: "/api/specs" });
  await reached.promise;
  const closed = server.close();
  held.resolve(true);
  expect((await reply).status).toBe(200);
  await closed;
  await expect(sendRequest(port, { path: "/health" })).rejects.toThrow();
  await server.close();
});

test("closing aborts requests that never end", async () => {
  const server = createServer({ project: shop.project, limits: { closeGraceMs: 50 } });
  const { port } = await server.listen({ port: 0 });
  const idle = connect({ host: "127.0.0.1", port });
  const hung = connect({ host: "127.0.0.1", port });
  for (const socket of [idle, hung]) socket.on("error", () => undefined);
  hung.write("POST /api/specs/impact HTTP/1.1\r\nHost: localhost\r\n");
  expect((await sendRequest(port, { path: "/health" })).status).toBe(200);
  await server.close();
  idle.destroy();
  hung.destroy();
});

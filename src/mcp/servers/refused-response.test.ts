import type { RequestListener } from "node:http";
import { expect, test } from "vitest";
import { createManualClock } from "../../testing/manual-clock.ts";
import { callTool, openServer, textOf } from "../client.suite.ts";
import { complaintAbout, oldListener, serveHttp } from "./http-server.suite.ts";

test.each<readonly [string, number, Record<string, string>, string]>([
  ["no token", 401, {}, "It requires authorization (HTTP 401): set it in `headers`."],
  ["denial", 403, {}, "It denies access (HTTP 403)."],
  [
    "a token of too little scope",
    403,
    {
      "www-authenticate":
        'Bearer error="insufficient_scope", scope="repo \u00e9 admin:org", resource_metadata="http://x/"',
    },
    'needs the scope "repo \u00e9 admin:org".',
  ],
  [
    "another spelling of that",
    403,
    { "www-authenticate": "Basic realm=x, bearer scope=files:write , error=insufficient_scope" },
    'needs the scope "files:write".',
  ],
  [
    "no scope named",
    403,
    { "www-authenticate": 'Bearer error="insufficient_scope"' },
    "needs another scope.",
  ],
  [
    "another error",
    403,
    { "www-authenticate": 'Bearer error="invalid_token"' },
    "It denies access (HTTP 403).",
  ],
  ["nothing there", 404, {}, "There is nothing at its address (HTTP 404)."],
  ["a method that it does not know", 405, {}, "It answered with HTTP 405."],
  ["too many requests", 429, {}, "It gets too many requests (HTTP 429)."],
  ["a pause", 429, { "retry-after": "120" }, "(HTTP 429). Wait 120 seconds before the next request."],
  ["a pause that is none", 429, { "retry-after": "soon" }, "It gets too many requests (HTTP 429)."],
  ["a failure", 500, {}, "It has an internal error (HTTP 500)."],
  [
    "maintenance",
    503,
    { "retry-after": "7" },
    "It has an internal error (HTTP 503). Wait 7 seconds before the next request.",
  ],
  [
    "a redirect",
    302,
    { location: "https://other.example/mcp?token=x" },
    "It redirects to https://other.example/mcp (HTTP 302), which is not followed",
  ],
  [
    "another one",
    308,
    { location: "//user:pw@other.example/" },
    "It redirects to http://other.example/ (HTTP 308)",
  ],
  ["one to nowhere", 307, { location: "http://[" }, "It redirects elsewhere (HTTP 307)"],
  ["one without a place", 301, {}, "It redirects elsewhere (HTTP 301)"],
  ["one to itself", 307, { location: "/mcp" }, "(HTTP 307), which is not followed"],
  ["nothing at all", 204, {}, "does not speak MCP: it returns no result (HTTP 204)."],
  ["acceptance", 202, {}, "does not speak MCP: it returns no result (HTTP 202)."],
  ["a page", 200, { "content-type": "text/html" }, "does not speak MCP."],
  ["no content type", 200, {}, "does not speak MCP."],
  ["empty JSON", 200, { "content-type": "application/json" }, "does not speak MCP."],
])("%s (%i) is called what it is", async (...[, status, headers, complaint]) => {
  const said = await complaintAbout((_, reply) => {
    reply.writeHead(status, headers).end();
  });
  expect(said).toContain(complaint);
});

test.each<readonly [string, RequestListener, string]>([
  [
    "headers without end",
    ({ socket }) => {
      socket.write("HTTP/1.1 200 OK\r\n");
      const write = (): void => {
        while (!socket.destroyed && socket.write(`x-more: ${"x".repeat(1_000)}\r\n`));
        socket.once("drain", write);
      };
      write();
    },
    "The headers of its response are too long.",
  ],
  ["no HTTP", ({ socket }) => socket.end("220 mail.example ESMTP\r\n"), "does not speak HTTP."],
  [
    "a stream that ends at once",
    (_, reply) => reply.writeHead(200, { "content-type": "text/event-stream" }).end(),
    "The connection to it was lost.",
  ],
  [
    "an answer that is not JSON-RPC",
    (_, reply) => reply.writeHead(200, { "content-type": "application/json" }).end("[7]"),
    "does not speak MCP.",
  ],
])("%s is called what it is", async (_, listener, complaint) => {
  expect(await complaintAbout(listener)).toContain(complaint);
});

test("the error of a refused call says why, and that the call was not done", async () => {
  const { url } = await serveHttp(
    oldListener(({ message, reply }) => {
      if (message?.method !== "tools/call") return false;
      reply.writeHead(403, { "www-authenticate": 'Bearer error="insufficient_scope", scope="write"' }).end();
      return true;
    }),
  );
  const output = await callTool(openServer({ url }), "plain");
  expect(textOf(output)).toContain('needs the scope "write". The call was not done.');
  expect(output.outcome).toBeUndefined();
});

test("kit sends no request while a server asks to wait", async () => {
  const clock = createManualClock();
  let requests = 0;
  const { url } = await serveHttp((_, reply) => {
    requests += 1;
    reply.writeHead(429, { "retry-after": "50" }).end();
  });
  const client = openServer({ url }, { clock });
  await client.tools();
  const before = requests;
  for (const [seconds, added] of [
    [49, 0],
    [2, 1],
  ] as const) {
    await clock.advance(1_000 * seconds);
    await client.tools();
    expect(requests - before).toBe(added);
  }
});

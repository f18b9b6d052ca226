import type { RequestListener } from "node:http";
import { expect, test } from "vitest";
import { freePort } from "../../testing/free-port.ts";
import { callTool, namesOf, openServer, textOf } from "../client.suite.ts";
import {
  complaintAbout,
  modernListener,
  type SeenRequests,
  serveHttp,
  sessionListener,
} from "./http-server.suite.ts";

test.each([
  ["newest", modernListener],
  ["older", sessionListener],
])(
  "a server of the %s protocol lists its tools over HTTP, and gets the configured headers",
  async (_, listener) => {
    const seen: SeenRequests = [];
    const { url } = await serveHttp(listener(seen));
    const variable = `\${${"MCP_TEST_TOKEN"}}`;
    const client = openServer(
      { url, headers: { authorization: `Bearer ${variable}` } },
      { env: { MCP_TEST_TOKEN: "token-0123456789" } },
    );
    expect(await namesOf(client)).toContain("mcp__s__echo");
    expect(textOf(await callTool(client, "echo", { args: { text: "hello" } }))).toBe("hello");
    expect(textOf(await callTool(client, "add", { args: { a: 1, b: 2 } }))).toBe('{"sum":3}');
    expect(await callTool(client, "fail")).toMatchObject({ isError: true });
    await client.close();
    expect(seen.length).toBeGreaterThan(3);
    for (const { headers } of seen) expect(headers.get("authorization")).toBe("Bearer token-0123456789");
  },
);

test("closing the client ends the session", async () => {
  const seen: SeenRequests = [];
  const { url } = await serveHttp(sessionListener(seen));
  const client = openServer({ url });
  await client.tools();
  await client.close();
  expect(seen.at(-1)?.method).toBe("DELETE");
});

test("kit lists the tools again after the server reports a change", async () => {
  const listener = modernListener();
  const { url } = await serveHttp(listener);
  const client = openServer({ url });
  expect(await namesOf(client)).not.toContain("mcp__s__later");
  await expect
    .poll(() => {
      listener.toolsChanged();
      return namesOf(client);
    })
    .toContain("mcp__s__later");
});

test("after a server restarted and lost the session, kit opens a new session and makes the call", async () => {
  const port = await freePort();
  const first = await serveHttp(sessionListener(), port);
  const client = openServer({ url: first.url });
  expect(textOf(await callTool(client, "echo", { args: { text: "one" } }))).toBe("one");
  await first.stop();
  await serveHttp(sessionListener(), port);
  expect(textOf(await callTool(client, "echo", { args: { text: "two" } }))).toBe("two");
});

test("a call to a server that is down fails with the reason, and works once the server is back", async () => {
  const port = await freePort();
  const first = await serveHttp(modernListener(), port);
  const client = openServer({ url: first.url });
  expect(textOf(await callTool(client, "echo", { args: { text: "one" } }))).toBe("one");
  await first.stop();
  // Wait until the client notices the closed connection: sockets are read after timers.
  await new Promise((resolve) => setTimeout(() => setImmediate(resolve), 100));
  const output = await callTool(client, "add", { args: { a: 1, b: 1 } });
  expect(output).toMatchObject({ isError: true });
  expect(output.outcome).toBeUndefined();
  expect(textOf(output)).toContain("It refused the connection. The call was not done.");
  await serveHttp(modernListener(), port);
  await expect
    .poll(async () => textOf(await callTool(client, "echo", { args: { text: "back" } })))
    .toBe("back");
});

test("an abort ends the request", async () => {
  const { url } = await serveHttp(modernListener());
  const client = openServer({ url });
  await client.tools();
  const controller = new AbortController();
  const waiting = callTool(client, "wait", { args: { ms: 60_000 }, signal: controller.signal });
  setTimeout(() => controller.abort(new Error("Enough.")), 100);
  await expect(waiting).rejects.toThrow("Enough.");
  expect(textOf(await callTool(client, "echo", { args: { text: "on" } }))).toBe("on");
});

test("a call whose answer is lost has an unknown outcome and is not repeated", async () => {
  const modern = modernListener();
  let calls = 0;
  const { url } = await serveHttp((request, reply) => {
    if (request.headers["mcp-method"] !== "tools/call") return modern(request, reply);
    calls += 1;
    request.socket.destroy();
  });
  const client = openServer({ url });
  expect(await callTool(client, "add", { args: { a: 1, b: 1 } })).toMatchObject({
    isError: true,
    outcome: "unknown",
  });
  expect(calls).toBe(1);
  expect(await callTool(client, "echo", { args: { text: "a" } })).toMatchObject({
    isError: true,
    outcome: "unknown",
  });
  expect(calls).toBe(3);
});

test("a stream that ends before the answer fails the call at once", async () => {
  const modern = modernListener();
  const { url } = await serveHttp((request, reply) => {
    if (request.headers["mcp-method"] !== "tools/call") return modern(request, reply);
    reply.writeHead(200, { "content-type": "text/event-stream" });
    reply.write(": soon\n\n");
    setTimeout(() => (request.headers["mcp-name"] === "add" ? reply.end() : reply.destroy()), 50);
  });
  const client = openServer({ url });
  await client.tools();
  for (const name of ["add", "wait"]) {
    const output = await callTool(client, name, { args: {} });
    expect(output).toMatchObject({ isError: true, outcome: "unknown" });
    expect(textOf(output)).not.toContain("did not answer within");
  }
});

test("the error of a response that is not MCP does not contain its text", async () => {
  const answer =
    (status: number, body: string, type = "text/plain"): RequestListener =>
    (_, reply) => {
      reply.writeHead(status, { "content-type": type }).end(body);
    };
  expect(await complaintAbout(answer(401, "wrong token tok-123"))).toContain(
    "It requires authorization (HTTP 401)",
  );
  expect(await complaintAbout(answer(403, "no"))).toContain("It denies access (HTTP 403)");
  expect(await complaintAbout(answer(404, "<h1>Not found</h1>"))).toContain("HTTP 404");
  expect(await complaintAbout(answer(500, "stack trace"))).toContain("HTTP 500");
  expect(await complaintAbout(answer(200, "<h1>Welcome</h1>", "text/html"))).toContain("does not speak MCP");
  expect(await complaintAbout(answer(200, "{", "application/json"))).not.toBe("");
  expect(await complaintAbout(answer(200, '{"jsonrpc":"2.0"}', "application/json"))).not.toBe("");
  expect(await complaintAbout((request) => request.socket.destroy())).toContain(
    "The connection to it was lost.",
  );
});

test("no error contains a header's value, whatever the server does with it", async () => {
  const echo: RequestListener = (request, reply) => {
    reply.writeHead(400, { "content-type": "application/json" });
    reply.end(
      JSON.stringify({
        jsonrpc: "2.0",
        id: 0,
        error: { code: -32000, message: `No: ${request.headers.authorization}` },
      }),
    );
  };
  const message = await complaintAbout(echo, { headers: { authorization: "Bearer sekret-0123456789" } });
  expect(message).not.toContain("sekret");
});

test("kit stops waiting for a server after the time limit", async () => {
  const hasty = { timeout_seconds: 2 };
  expect(await complaintAbout(() => undefined, hasty)).toContain("It did not answer within 2 seconds.");
  const halting: RequestListener = (_, reply) => {
    reply.writeHead(200, { "content-type": "text/event-stream" });
    reply.write(": wait\n\n");
  };
  expect(await complaintAbout(halting, hasty)).toContain("It did not answer within 2 seconds.");
});

test("a server that sends an endless answer is disconnected", async () => {
  const endless =
    (type: string): RequestListener =>
    (_, reply) => {
      reply.writeHead(200, { "content-type": type });
      const write = (): void => {
        while (!reply.destroyed && reply.write("x".repeat(65_536)));
        reply.once("drain", write);
      };
      write();
    };
  for (const type of ["application/json", "text/event-stream"])
    expect(await complaintAbout(endless(type))).not.toBe("");
});

test("a redirect to another host is not followed, as it would get the headers", async () => {
  const seen: SeenRequests = [];
  const other = await serveHttp(modernListener(seen));
  const elsewhere: RequestListener = (_, reply) => reply.writeHead(307, { location: other.url }).end();
  expect(await complaintAbout(elsewhere, { headers: { authorization: "Bearer x-0123456789" } })).toContain(
    "HTTP 307",
  );
  expect(seen).toEqual([]);
});

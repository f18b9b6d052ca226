import { afterAll, expect, test } from "vitest";
import { modernRequest } from "../testing/mcp-client.ts";
import { serveForTest, serveForTests } from "../testing/serve-for-tests.ts";
import type { SentJson } from "../testing/serve-service.ts";
import { openSocket } from "../testing/socket-client.ts";

const served = serveForTests({ limits: { bodyBytes: 20_000 } });
afterAll(() => expect(served.errors).toEqual([]));

const discover = modernRequest("server/discover");
const legacy = { accept: "application/json, text/event-stream", "mcp-protocol-version": "2025-11-25" };

async function post(text: string, headers: Readonly<Record<string, string>> = discover.headers) {
  const reply = await fetch(`${served.url}/mcp`, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: text,
  });
  return { status: reply.status, body: JSON.parse(await reply.text()) };
}

test.each([
  ["no JSON", "{", [400, -32_700]],
  ["deep JSON", `{"a":${"[".repeat(500)}${"]".repeat(500)}}`, [400, -32_700]],
  ["half a character", `{"jsonrpc":"2.0","id":1,"method":"\xff`, [400, -32_700]],
  ["nothing", "", [400, -32_600]],
  ["a batch", `[${JSON.stringify(discover.body)}]`, [400, -32_600]],
  ["a text", '"server/discover"', [400, -32_600]],
  ["another version of JSON-RPC", '{"jsonrpc":"1.0","id":1,"method":"ping"}', [400, -32_600]],
  ["a body over the limit", JSON.stringify({ jsonrpc: "2.0", x: "x".repeat(30_000) }), [413, -32_000]],
])("%s is answered with an error of JSON-RPC", async (_, text, expected) => {
  const reply = await post(text);
  expect([reply.status, reply.body.jsonrpc, reply.body.error.code]).toEqual([
    expected[0],
    "2.0",
    expected[1],
  ]);
});

test.each([
  ["an unknown revision", { "mcp-protocol-version": "2031-01-01" }, 400],
  ["a revision that differs from the body's", { "mcp-protocol-version": "2025-11-25" }, 400],
  ["a method that differs from the body's", { "mcp-method": "tools/list" }, 400],
  ["another media type", { "content-type": "text/plain" }, 415],
  ["a page of another site", { origin: "https://evil.example" }, 403],
  ["a page without an origin", { origin: "null" }, 403],
])("%s is refused", async (_, headers, status) => {
  const reply = await post(JSON.stringify(discover.body), { ...discover.headers, ...headers });
  expect([reply.status, reply.body.jsonrpc]).toEqual([status, "2.0"]);
});

test("a wrong Accept of the older revision is refused, and an unknown revision", async () => {
  const list = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list", params: {} });
  expect((await post(list, { ...legacy, accept: "text/html" })).status).toBe(406);
  expect((await post(list, { ...legacy, "mcp-protocol-version": "1999-01-01" })).status).toBe(400);
});

test("a name of another machine is refused: DNS rebinding", async () => {
  const request = new Request("http://evil.example/mcp", {
    method: "POST",
    headers: { ...discover.headers, "content-type": "application/json" },
    body: JSON.stringify(discover.body),
  });
  expect((await served.server.fetch(request)).status).toBe(403);
});

test.each(["GET", "DELETE", "PUT"])("%s is no method of /mcp", async (method) => {
  const reply = await served.send("/mcp", { method, headers: legacy } as SentJson);
  expect([reply.status, reply.headers.get("allow"), reply.body.error.code]).toEqual([
    405,
    "POST, OPTIONS",
    -32_000,
  ]);
});

test("hostile arguments are refused, and break nothing", async () => {
  for (const args of [
    { message: "x", instance: "../../etc" },
    { message: "x", session: "a\u202eb" },
    { message: "" },
    { message: { $prompt: { message: "x" } } },
    { message: "x", key: "§" },
    { message: "x", __proto__: { key: "k" }, constructor: 1 },
  ]) {
    const { headers, body } = modernRequest("tools/call", { name: "agent_echo", arguments: args });
    const { result } = (await served.send("/mcp", { headers, body })).body;
    expect([args, result.isError]).toEqual([args, true]);
  }
  const { headers, body } = modernRequest("resources/read", { uri: "kit://specs/..%2f..%2fetc%2fpasswd" });
  expect((await served.send("/mcp", { headers, body })).body.error.code).toBe(-32_602);
});

test("without server.oauth, nothing is said about tokens", async () => {
  const reply = await served.send("/.well-known/oauth-protected-resource/mcp");
  expect([reply.status, reply.body.error.type]).toEqual([404, "not_found"]);
});

test("a server of MCP alone serves no WebSockets", async () => {
  const alone = await serveForTest({ only: "mcp" });
  const { status } = await openSocket(`${alone.url}/agents/echo/1`).catch((error: unknown) => Object(error));
  expect(status).toBe(404);
});

test("a server of MCP alone has no other route than the health checks", async () => {
  const alone = await serveForTest({ only: "mcp" });
  expect((await alone.send("/mcp", discover)).body.result.supportedVersions).toContain("2026-07-28");
  expect((await alone.send("/health")).status).toBe(200);
  for (const path of ["/api/specs", "/agents", "/approvals", "/workflows"])
    expect([path, (await alone.send(path)).status]).toEqual([path, 404]);
});

import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { exportJWK, generateKeyPair, SignJWT } from "jose";
import { afterAll, beforeAll, expect, test } from "vitest";
import { connectMcp, modernRequest, textOf } from "../testing/mcp-client.ts";
import { serveForTest } from "../testing/serve-for-tests.ts";
import { type ServedService, serveService } from "../testing/serve-service.ts";

const keys = ["key-of-a-00000000", "key-of-b-00000000"];
const resource = "https://kit.example/mcp";
const metadata = "https://kit.example/.well-known/oauth-protected-resource/mcp";
const as = (token: string) => ({ authorization: `Bearer ${token}` });
const tasks = { extensions: { "io.modelcontextprotocol/tasks": {} } };

let issuerServer: Server;
let issuer: string;
let served: ServedService;
let sign: (
  claims?: object,
  options?: { readonly alg?: string; readonly key?: Parameters<SignJWT["sign"]>[0] },
) => Promise<string>;

beforeAll(async () => {
  const pair = await generateKeyPair("ES256", { extractable: true });
  const jwk = { ...(await exportJWK(pair.publicKey)), kid: "k1", alg: "ES256", use: "sig" };
  issuerServer = createServer((_, reply) =>
    reply.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify({ keys: [jwk] })),
  );
  await new Promise<void>((done) => issuerServer.listen(0, "127.0.0.1", done));
  issuer = `http://127.0.0.1:${(issuerServer.address() as AddressInfo).port}`;
  const now = Math.floor(Date.now() / 1_000);
  sign = async (claims = {}, { key = pair.privateKey } = {}) =>
    await new SignJWT({ iss: issuer, aud: resource, sub: "ada", scope: "kit", exp: now + 600, ...claims })
      .setProtectedHeader({ alg: "ES256", kid: "k1" })
      .sign(key);
  served = await serveService({
    access: { apiKeys: keys, oauth: { issuer, jwks: `${issuer}/jwks`, resource, scopes: ["kit"] } },
  });
});
afterAll(async () => {
  await served.close();
  issuerServer.close();
});

const call = (method: string, params: Readonly<Record<string, unknown>>, token: string) => {
  const { headers, body } = modernRequest(method, params, tasks);
  return served.send("/mcp", { body, headers: { ...headers, ...as(token) } });
};

test("a request without a token learns where to get one, before its body is read", async () => {
  const reply = await served.send("/mcp", { body: { no: "JSON-RPC" } });
  expect(reply.status).toBe(401);
  expect(reply.headers.get("www-authenticate")).toBe(`Bearer resource_metadata="${metadata}", scope="kit"`);
  expect(reply.body).toMatchObject({ jsonrpc: "2.0", id: null, error: { code: -32_000 } });
  const found = { resource, authorization_servers: [issuer], scopes_supported: ["kit"] };
  for (const path of ["/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp"]) {
    expect((await served.send(path)).body).toMatchObject(found);
  }
});

test("a token of the issuer opens /mcp and nothing else", async () => {
  const token = await sign();
  const client = await connectMcp(served.url, { headers: as(token) });
  const reply = await client.callTool({ name: "agent_echo", arguments: { message: "hello" } });
  expect(textOf(reply)).toBe("hello");
  const { dispatch_id } = reply.structuredContent as { readonly dispatch_id: string };
  expect((await served.service.engine.getDispatch(dispatch_id))?.cause).toEqual({
    type: "sender",
    principal: "ada",
  });
  await client.close();
  expect((await served.send("/api/specs", { headers: as(token) })).status).toBe(401);
});

test.each([
  ["is expired", { exp: 1_000 }, "The token has expired."],
  ["is for another server", { aud: "https://other.example/mcp" }, "its aud does not match"],
  ["is of another issuer", { iss: "https://evil.example" }, "its iss does not match"],
  ["never expires", { exp: undefined }, "its exp does not match"],
  ["is valid later", { nbf: 9_999_999_999 }, "its nbf does not match"],
  ["has the id of a key", { sub: "key_0123456789ab" }, "cannot be the id of a sender"],
  ["has a number as its sub", { sub: 7 }, "cannot be the id of a sender"],
  ["has an object as its sub", { sub: { id: "ada" } }, "cannot be the id of a sender"],
  ["has a long sub", { sub: "a".repeat(257) }, "cannot be the id of a sender"],
  ["has a line break in its sub", { sub: "ada\nbob" }, "cannot be the id of a sender"],
])("a token that %s is refused with the reason", async (_, claims, reason) => {
  const { status, body, headers } = await call("server/discover", {}, await sign(claims));
  expect([status, body.error.message]).toEqual([401, expect.stringContaining(reason)]);
  expect(headers.get("www-authenticate")).toContain('error="invalid_token"');
});

test("a token with another signature, without one or without sense is refused", async () => {
  const other = await generateKeyPair("ES256");
  const [head = "", body = "", signature = ""] = (await sign()).split(".");
  const none = Buffer.from('{"alg":"none"}').toString("base64url");
  const hmac = Buffer.from('{"alg":"HS256","kid":"k1"}').toString("base64url");
  for (const token of [
    await sign({}, { key: other.privateKey }),
    `${none}.${body}.`,
    `${hmac}.${body}.${signature}`,
    `${head}.${body}`,
    "x".repeat(5_000),
  ])
    expect([token.slice(0, 9), (await call("server/discover", {}, token)).status]).toEqual([
      token.slice(0, 9),
      401,
    ]);
});

test("a token without the scope is told which scope it needs", async () => {
  const { status, headers } = await call("server/discover", {}, await sign({ scope: "mail" }));
  expect([status, headers.get("www-authenticate")]).toEqual([
    403,
    `Bearer error="insufficient_scope", resource_metadata="${metadata}", scope="kit"`,
  ]);
});

test("an issuer that cannot be reached is no fault of the client", async () => {
  const away = await serveForTest({ access: { oauth: { issuer, jwks: "http://127.0.0.1:1/", resource } } });
  const { body, headers } = modernRequest("server/discover");
  const reply = await away.send("/mcp", { body, headers: { ...headers, ...as(await sign()) } });
  expect([reply.status, reply.body.error.data.type]).toEqual([503, "unavailable"]);
  expect((await away.send("/api/specs")).status).toBe(401);
});

test("keys of the issuer that cannot be used are reported once, and not requested again at once", async () => {
  let requests = 0;
  for (const answer of ["no JSON", "{}", JSON.stringify({ keys: [], more: "x".repeat(1_100_000) })]) {
    requests = 0;
    const keyServer = createServer((_, reply) => {
      requests += 1;
      reply.end(answer);
    });
    await new Promise<void>((done) => keyServer.listen(0, "127.0.0.1", done));
    const jwks = `http://127.0.0.1:${(keyServer.address() as AddressInfo).port}/`;
    const away = await serveService({ access: { oauth: { issuer, jwks, resource } } });
    const { body, headers } = modernRequest("server/discover");
    for (let time = 0; time < 3; time += 1)
      expect((await away.send("/mcp", { body, headers: { ...headers, ...as(await sign()) } })).status).toBe(
        503,
      );
    expect([requests, away.errors.length]).toEqual([1, 1]);
    await away.close();
    keyServer.close();
  }
});

test("beside tokens, server.auth decides about what is none", async () => {
  const both = await serveForTest({
    access: {
      oauth: { issuer, jwks: `${issuer}/jwks`, resource },
      auth: ({ headers }) => headers.get("authorization") === "Bearer of-auth" && { id: "eve" },
    },
  });
  const { body, headers } = modernRequest("server/discover");
  const status = async (token: string) =>
    (await both.send("/mcp", { body, headers: { ...headers, ...as(token) } })).status;
  expect([await status("of-auth"), await status("of-none")]).toEqual([200, 401]);
  const refused = await both.send("/mcp", { body, headers: { ...headers, ...as("of-none") } });
  expect(refused.headers.get("www-authenticate")).toContain('error="invalid_token"');
});

test("a page that may call the server can read where to get a token", async () => {
  const origin = "https://app.example";
  const shared = await serveForTest({
    access: { allowedOrigins: [origin], oauth: { issuer, jwks: `${issuer}/jwks`, resource } },
  });
  const reply = await shared.send("/mcp", { body: {}, headers: { origin } });
  expect(reply.headers.get("access-control-expose-headers")).toContain("www-authenticate");
});

test("work of another principal is unknown", async () => {
  const [a = "", b = ""] = keys;
  const started = await call("tools/call", { name: "agent_careful", arguments: { message: "pay 5" } }, a);
  const { taskId, inputRequests } = started.body.result;
  const [key = ""] = Object.keys(inputRequests);
  const inputResponses = { [key]: { action: "accept", content: { decision: "approve" } } };
  const again = {
    name: "agent_careful",
    arguments: { message: "pay 5" },
    requestState: taskId,
    inputResponses,
  };
  for (const token of [b, await sign()]) {
    for (const method of ["tasks/get", "tasks/update", "tasks/cancel"]) {
      expect((await call(method, { taskId, inputResponses }, token)).body.error.code).toBe(-32_602);
    }
    expect((await call("tools/call", again, token)).body.error.code).toBe(-32_602);
    const waited = await call("tools/call", { name: "work_result", arguments: { id: taskId } }, token);
    expect(textOf(waited.body.result)).toContain("You have started no work with this id.");
  }
  expect(await served.service.approvals.list({ agent: "careful" })).toHaveLength(1);
  expect((await call("tasks/get", { taskId }, a)).body.result.status).toBe("input_required");
});

test("the same key of another principal is other work", async () => {
  const [a = "", b = ""] = keys;
  const ask = async (token: string) => {
    const client = await connectMcp(served.url, { headers: as(token) });
    const reply = await client.callTool({ name: "agent_echo", arguments: { message: "hi", key: "same" } });
    await client.close();
    return reply.structuredContent;
  };
  expect(await ask(a)).toEqual(await ask(a));
  expect(await ask(a)).not.toEqual(await ask(b));
});

test("server.authorize decides which tools are listed and called", async () => {
  let mayDispatch = false;
  const restricted = await serveForTest({
    authorize: ({ action, agent, workflow }) =>
      action === "project.read" ||
      (agent === "echo" && (action === "agent.list" || (action === "agent.dispatch" && mayDispatch))) ||
      workflow === "strict",
  });
  const client = await connectMcp(restricted.url);
  const names = (await client.listTools()).tools
    .map(({ name }) => name)
    .filter((name) => /^(agent|workflow)_/.test(name));
  expect(names).toEqual(["agent_echo", "workflow_strict"]);
  for (const action of ["agent.dispatch", "dispatch.read"]) {
    const refused = await client.callTool({ name: "agent_echo", arguments: { message: "x" } });
    expect([refused.isError, textOf(refused)]).toEqual([true, expect.stringContaining(action)]);
    mayDispatch = true;
  }
  expect((await restricted.service.engine.listDispatches({})).items).toEqual([]);
  await client.close();
});

test("arguments that a tool maps to headers must be in them, and a tool that the sender may not see stays unknown", async () => {
  let maySee = true;
  const regional = await serveForTest({
    authorize: ({ action }) => action !== "workflow.list" || maySee,
    files: {
      "src/workflows/regional.ts": `export const payload = {
  type: "object",
  properties: { region: { type: "string", "x-mcp-header": "Region" } },
};
export const run = ({ payload }) => payload;
`,
    },
  });
  const ask = async (args: object, headers: Readonly<Record<string, string>> = {}) => {
    const request = modernRequest("tools/call", { name: "workflow_regional", arguments: args });
    const { status, body } = await regional.send("/mcp", {
      ...request,
      headers: { ...request.headers, ...headers },
    });
    return [status, body.error?.code ?? body.result.structuredContent.result];
  };
  const eu = { region: "eu" };
  expect(await ask(eu, { "mcp-param-region": "eu" })).toEqual([200, eu]);
  expect(await ask({})).toEqual([200, {}]);
  expect(await ask(eu)).toEqual([400, -32_020]);
  expect(await ask(eu, { "mcp-param-region": "us" })).toEqual([400, -32_020]);
  maySee = false;
  expect((await ask(eu))[1]).toBe(-32_602);
});

import type { ServerResponse } from "node:http";
import { expect, test } from "vitest";
import { callTool, openServer, textOf, toolsAndProblems } from "../client.suite.ts";
import { serveHttp } from "../servers/http-server.suite.ts";
import { assertAllowed, createGuardedFetch } from "./guarded-fetch.ts";
import { logIn } from "./log-in.ts";
import { logInNow, serveWithLogin } from "./login.suite.ts";

type Meddle = (path: string, value: Record<string, unknown>, reply: ServerResponse) => boolean | undefined;

/** The error of a login at a server that meddles with its authorization. */
async function complaint(meddle: Meddle): Promise<string> {
  const { login } = await serveWithLogin({ meddle });
  const error: unknown = await logInNow(login, { timeoutMs: 1_500 }).then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(login.file.read().tokens).toBeUndefined();
  return error instanceof Error ? error.message : "no error";
}

const metadata = "/.well-known/oauth-authorization-server";
const resource = "/.well-known/oauth-protected-resource/mcp";

/** Replaces fields of the answer at a path. */
function setting(path: string, fields: Readonly<Record<string, unknown>>): Meddle {
  return (at, value) => {
    if (at === path) Object.assign(value, fields);
    return false;
  };
}

test.each([
  [
    "metadata of another server",
    setting(resource, { resource: "https://bank.example/mcp" }),
    "of another server (resource)",
  ],
  [
    "an authorization server without https",
    setting(resource, { authorization_servers: ["http://bank.example"] }),
    "is not at an address with https",
  ],
  [
    "an issuer that is another than its address",
    setting(metadata, { issuer: "https://bank.example" }),
    "(issuer)",
  ],
  [
    "a token endpoint without https",
    setting(metadata, { token_endpoint: "http://bank.example/token" }),
    "without https",
  ],
  ["no registration", setting(metadata, { registration_endpoint: undefined }), "set `oauth.client_id`"],
  ["no method of PKCE", setting(metadata, { code_challenge_methods_supported: ["plain"] }), "as OAuth asks"],
  [
    "a login page that is no web page",
    setting(metadata, { authorization_endpoint: "javascript:alert(1)" }),
    "as OAuth asks",
  ],
  [
    "a login page without https on another machine",
    setting(metadata, { authorization_endpoint: "http://192.168.1.1/reboot?now=1" }),
    "at an address without https (http://192.168.1.1), where kit sends no browser",
  ],
  [
    "an answer of another authorization server",
    setting("/authorize", { iss: "https://bank.example" }),
    "(issuer)",
  ],
  [
    "an answer with another state",
    setting("/authorize", { state: "forged" }),
    "no answer from the browser within 1.5 s",
  ],
])("a login stops at %s", async (_, meddle, expected) => {
  expect(await complaint(meddle)).toContain(expected);
});

test.each([
  [
    "endless metadata",
    metadata,
    (reply: ServerResponse) => void reply.writeHead(200).end(`{"issuer":"${"x".repeat(3_000_000)}"}`),
  ],
  ["metadata that is no JSON", metadata, (reply: ServerResponse) => void reply.writeHead(200).end("<html>")],
  [
    "a redirect to another host",
    "/token",
    (reply: ServerResponse) => void reply.writeHead(307, { location: "http://127.0.0.2:9/token" }).end(),
  ],
  [
    "tokens that are none",
    "/token",
    (reply: ServerResponse) => void reply.writeHead(200).end('{"access_token":7}'),
  ],
])("a login ends with an error after %s", async (_, path, answer) => {
  const text = await complaint((at, _value, reply) => {
    if (at !== path) return false;
    answer(reply);
    return true;
  });
  expect(text).toMatch(/^Its authorization server /);
  expect(text.length).toBeLessThan(300);
});

test("a secret that an authorization server repeats reaches no error", async () => {
  const { login, config, logins, oauth } = await serveWithLogin({ hidesLifetime: true });
  await logInNow(login);
  const client = openServer(config, { logins });
  await callTool(client, "echo", { args: { text: "1" } });
  const { tokens } = login.file.read();
  oauth.endAccess();
  // Another process has used the refresh token: the authorization server ends the login, and quotes the request.
  const body = new URLSearchParams({
    grant_type: "refresh_token",
    refresh_token: tokens?.refresh_token ?? "",
  });
  await fetch(new URL("/token", config.url), { method: "POST", body });
  const text = textOf(await callTool(client, "echo", { args: { text: "2" } }));
  expect(text).toContain("run 'kit mcp login s'");
  expect(text + JSON.stringify(client.problems())).not.toContain(tokens?.refresh_token);
});

test("a token that the server repeats is masked", async () => {
  const { login, config, logins } = await serveWithLogin();
  await logInNow(login);
  const client = openServer(config, { logins });
  const token = login.file.read().tokens?.access_token ?? "";
  await client.tools();
  const text = textOf(await callTool(client, "echo", { args: { text: `It is ${token}` } }));
  expect(text).toContain("It is [secret]");
});

test("a server elsewhere cannot lead kit into this machine or its network", async () => {
  const lookup = async (name: string): Promise<readonly string[]> =>
    ({ "inner.example": ["10.0.0.7"], "local.example": ["127.0.0.1"], "public.example": ["93.184.216.34"] })[
      name
    ] ?? ["93.184.216.35"];
  const from = (server: string, issuer?: string) => ({ server: new URL(server), issuer, lookup });
  const server = from("https://mcp.example/mcp");
  for (const address of [
    "https://10.0.0.7/",
    "https://[::1]/",
    "https://inner.example/",
    "https://local.example/",
    "https://169.254.169.254/",
  ])
    await expect(assertAllowed(new URL(address), server), address).rejects.toThrow(
      "this machine or its network",
    );
  for (const address of ["http://public.example/", "http://127.0.0.1/", "file:///etc/passwd"])
    await expect(assertAllowed(new URL(address), server), address).rejects.toThrow("address with https");
  await assertAllowed(new URL("https://public.example/token"), server);
  await assertAllowed(
    new URL("https://inner.example/token"),
    from("https://mcp.example/mcp", "https://inner.example"),
  );
  await assertAllowed(new URL("https://10.0.0.8/token"), from("https://inner.example/mcp"));
  await expect(
    assertAllowed(new URL("https://local.example/"), from("https://inner.example/mcp")),
  ).rejects.toThrow("this machine");
});

test("a server inside a network cannot lead kit to the metadata of a cloud, nor with one near address among others", async () => {
  const own: Readonly<Record<string, readonly string[]>> = {
    "inner.example": ["10.0.0.7"],
    "mixed.example": ["93.184.216.34", "10.0.0.7"],
    "bare.example": [],
  };
  const from = (host: string) => ({
    server: new URL(`https://${host}/mcp`),
    issuer: undefined,
    lookup: async (name: string) => own[name] ?? [],
  });
  for (const address of [
    "169.254.169.254",
    "168.63.129.16",
    "100.100.100.200",
    "[fe80::1]",
    "[fd00:ec2::254]",
  ])
    await expect(assertAllowed(new URL(`https://${address}/`), from("inner.example"))).rejects.toThrow(
      "this machine or its network",
    );
  await expect(assertAllowed(new URL("https://10.0.0.8/"), from("mixed.example"))).rejects.toThrow(
    "this machine or its network",
  );
  await expect(assertAllowed(new URL("https://10.0.0.8/"), from("bare.example"))).rejects.toThrow(
    "has no address",
  );
});

test("a name that has another address by the time of the connection gets nothing", async () => {
  let requests = 0;
  const { url } = await serveHttp((_, reply) => {
    requests += 1;
    reply.end("{}");
  });
  const at = new URL("/token", url);
  at.hostname = "localhost";
  const lookup = (address: string) => async (): Promise<readonly string[]> => [address];
  const place = { server: new URL("http://localhost:1/mcp"), issuer: undefined };
  const rebound = createGuardedFetch({ ...place, lookup: lookup("93.184.216.34") });
  const error: unknown = await rebound(at, { method: "POST", body: "secret" }).catch((reason) => reason);
  expect(error).toMatchObject({ cause: { message: expect.stringContaining("this machine or its network") } });
  expect(requests).toBe(0);
  const steady = createGuardedFetch({ ...place, lookup: lookup("127.0.0.1") });
  expect((await steady(at, { method: "POST", body: "secret" })).status).toBe(200);
});

test("a server without https gets no token, and no login", async () => {
  const { login, config, logins } = await serveWithLogin();
  await logInNow(login);
  const { problems } = await toolsAndProblems(
    openServer({ ...config, url: "http://mcp.example/mcp" }, { logins }),
  );
  expect(problems).toHaveLength(1);
  const { endpoint } = (await import("../servers/server-settings.ts")).toServerSettings(
    "s",
    { url: "http://mcp.example/mcp" },
    { root: process.cwd(), env: {}, logins },
  );
  if (endpoint.kind !== "address" || endpoint.login === undefined) throw new Error("There is no login.");
  const show = (): void => undefined;
  await expect(logIn(endpoint.login, { show, signal: AbortSignal.timeout(5_000) })).rejects.toThrow(
    "no https",
  );
});

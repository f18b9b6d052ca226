import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { openProject } from "../../project/open-project.ts";
import type { AuthorizeRequest } from "../../protocol/access.ts";
import { begunLoginSchema, finishedLoginSchema } from "../../protocol/login.ts";
import { createServer, type KitServer } from "../create-server.ts";
import { createConfiguredServer } from "../serve-application.ts";
import { Browser, serveLogins } from "../testing/serve-logins.suite.ts";
import type { ServedService } from "../testing/serve-service.ts";

const waitingLogins = async ({ send }: ServedService, headers = {}) =>
  (await send("/waiting?kind=login", { headers })).body;

/** The answer of a tool of the server to an agent. */
async function callTool({ send }: ServedService): Promise<string> {
  const message = 'call mcp__tracker__echo {"text":"It works."}';
  await send("/agents/echo/1", { body: { message } });
  const { messages } = (await send("/agents/echo/1/history")).body;
  return JSON.stringify(messages.at(-2));
}

test("a server that asks for a login waits in the inbox, a browser logs in, and the next call works", async () => {
  const served = await serveLogins();
  const { send, oauth } = served;
  expect(await waitingLogins(served)).toEqual({ items: [], total: 0 });
  expect(await callTool(served)).toContain("There is no tool named");
  const { items, total } = (await send("/waiting")).body;
  const { host } = new URL(served.origin);
  expect(items).toEqual([
    { kind: "login", requested_at: expect.any(String), server: "tracker", host, scope: "read" },
  ]);
  expect(total).toBe(1);

  const browser = new Browser(served);
  const { status, body, setCookie } = await browser.begin();
  expect(status).toBe(200);
  expect(body).toEqual(begunLoginSchema.parse(body));
  expect(setCookie).toMatch(
    /^kit_login_[\w-]{16}=[\w-]{43}; Path=\/logins\/tracker\/callback; Max-Age=[56]\d\d; HttpOnly; SameSite=Lax$/,
  );
  const address = new URL(body.url);
  expect(address.origin).toBe(served.origin);
  expect(Object.fromEntries(address.searchParams)).toMatchObject({
    redirect_uri: `${served.url}/logins/tracker/callback`,
    code_challenge_method: "S256",
    scope: "read",
  });
  expect(body.url).not.toContain([...browser.cookies.values()][0]);

  const back = await browser.visit(body.url);
  const page = await browser.open(back);
  expect(page.status).toBe(200);
  expect(page.text).toContain("Logged in at tracker");
  expect(page.headers["set-cookie"]).toEqual([
    setCookie.replace(/=[\w-]{43};/, "=;").replace(/Max-Age=\d+/, "Max-Age=0"),
  ]);
  expect(page.headers["content-security-policy"]).toContain("default-src 'none'");
  expect(page.headers["referrer-policy"]).toBe("no-referrer");
  expect(oauth.last.token?.get("code_verifier")).toBeTruthy();
  expect(await waitingLogins(served)).toEqual({ items: [], total: 0 });
  expect(await callTool(served)).toMatch(/"text":"[^"]*It works\./);
});

test("the codes, states and tokens of a login are in no event, log, error or reply", async () => {
  const served = await serveLogins({ dev: true });
  await served.send("/agents/echo/1", { body: { message: "Hello" } });
  const browser = new Browser(served);
  const first = await browser.begin();
  const wrong = await browser.visit(first.body.url);
  wrong.searchParams.set("iss", "https://bank.example");
  const refused = await browser.open(wrong, "application/json");
  const { body } = await browser.begin();
  const cookies = [...browser.cookies.values()];
  const back = await browser.visit(body.url);
  const page = await browser.open(back, "application/json");
  expect(cookies).toHaveLength(2);
  expect(browser.cookies.size).toBe(1);
  const done = JSON.parse(page.text);
  expect(done).toEqual({ server: "tracker", issuer: served.origin, scope: "read" });
  expect(done).toEqual(finishedLoginSchema.parse(done));
  await served.send("/agents/echo/1", { body: { message: "Hello" } });
  const events = await served.send("/agents/echo/1/operations");
  const [file = ""] = (await readdir(served.logins)).filter((name) => name.endsWith(".json"));
  const { tokens, pending } = JSON.parse(await readFile(join(served.logins, file), "utf8"));
  expect(pending).toBeUndefined();
  const texts = JSON.stringify([
    served.requests,
    served.errors,
    served.service.app.problems(),
    events.body,
    refused.text,
    page.text,
    (await served.send("/server")).body,
  ]);
  expect(served.requests.map(({ path }) => path)).toContain("/logins/tracker/callback");
  for (const secret of [
    tokens.access_token,
    tokens.refresh_token,
    ...[back, wrong].flatMap(({ searchParams }) => [searchParams.get("code"), searchParams.get("state")]),
    ...cookies,
  ]) {
    expect(secret).toMatch(/.{20}/);
    expect(texts).not.toContain(secret);
  }
});

test("a login ends only in the browser that began it, and only once", async () => {
  const served = await serveLogins();
  const browser = new Browser(served);
  const { body } = await browser.begin();
  const back = await browser.visit(body.url);
  const other = new Browser(served);
  expect(await other.open(back)).toMatchObject({ status: 404 });
  for (const name of browser.cookies.keys()) other.cookies.set(name, "forged");
  const stolen = await other.open(back);
  expect(stolen.text).toContain("This browser has no open login");
  // The answer of an attacker's login, in the browser of the person.
  const foreign = new URL(back);
  foreign.searchParams.set("state", "forged");
  expect(await browser.open(foreign)).toMatchObject({ status: 404 });
  expect(served.oauth.counts["/token"]).toBeUndefined();
  expect(await browser.open(back)).toMatchObject({ status: 200 });
  expect(await browser.open(back)).toMatchObject({ status: 404 });
  expect(served.oauth.counts["/token"]).toBe(1);
});

test("a login ends while another one that began meanwhile stays open", async () => {
  const [arrived, answered] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  let tokens = 0;
  const served = await serveLogins(
    {},
    {
      meddle: (path, value, reply) => {
        if (path !== "/token") return false;
        tokens += 1;
        if (tokens > 1) return false;
        arrived.resolve();
        void answered.promise.then(() =>
          reply.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(value)),
        );
        return true;
      },
    },
  );
  const [first, second] = [new Browser(served), new Browser(served)];
  const early = await first.visit((await first.begin()).body.url);
  const slow = first.open(early);
  await arrived.promise;
  const late = await second.visit((await second.begin()).body.url);
  answered.resolve();
  expect(await slow).toMatchObject({ status: 200 });
  expect(await second.open(late)).toMatchObject({ status: 200 });
  expect(tokens).toBe(2);
});

test("two servers of one host keep the cookies of each other's logins, although their MCP servers have one name", async () => {
  const [one, two] = [await serveLogins(), await serveLogins()];
  const first = new Browser(one);
  const second = new Browser(two, {}, first.cookies);
  const [early, late] = [
    await first.visit((await first.begin()).body.url),
    await second.visit((await second.begin()).body.url),
  ];
  expect(first.cookies.size).toBe(2);
  // One that another port of the host has set.
  first.cookies.set("kit_login_tracker", "forged");
  expect(await first.open(early)).toMatchObject({ status: 200 });
  expect(await second.open(late)).toMatchObject({ status: 200 });
  expect([...first.cookies.keys()]).toEqual(["kit_login_tracker"]);
});

test("a page about no login has no text of the sender of its link", async () => {
  const served = await serveLogins({ access: { apiKeys: ["the-key"] } });
  const browser = new Browser(served);
  const path = "/logins/your%20bank.%20Call%20+1%20555/callback?state=1&code=1&error=Call_me&iss=Call";
  browser.cookies.set("kit_login_1", "planted");
  const page = await browser.open(new URL(path, served.url));
  expect(page.status).toBe(404);
  expect(page.text).toContain("<h1>Not logged in</h1>");
  expect(page.text).not.toMatch(/bank|call/i);
});

test("a login that begins again ends the one before", async () => {
  const served = await serveLogins();
  const [first, second] = [new Browser(served), new Browser(served)];
  const early = await first.visit((await first.begin()).body.url);
  const late = await second.visit((await second.begin()).body.url);
  expect(await first.open(early)).toMatchObject({ status: 404 });
  expect(await second.open(late)).toMatchObject({ status: 200 });
});

test("a login that was refused or whose answer is of another issuer is over, and still waits", async () => {
  const served = await serveLogins();
  await served.send("/agents/echo/1", { body: { message: "Hello" } });
  const browser = new Browser(served);
  const denied = new URL(`${served.url}/logins/tracker/callback`);
  const begun = await browser.begin();
  denied.search = new URLSearchParams({
    error: "access_denied",
    error_description: "<b>No</b>",
    state: new URL(begun.body.url).searchParams.get("state") ?? "",
    iss: served.origin,
  }).toString();
  const page = await browser.open(denied);
  expect(page.status).toBe(403);
  expect(page.text).toContain("<h1>Not logged in at tracker</h1>");
  expect(page.text).toContain("Its authorization server refuses the login (access_denied).");
  expect(browser.cookies.size).toBe(0);
  expect(page.text).not.toContain("<b>No");
  expect(await browser.open(denied)).toMatchObject({ status: 404 });
  const back = await browser.visit((await browser.begin()).body.url);
  back.searchParams.set("iss", "https://bank.example");
  const wrong = await browser.open(back);
  expect(wrong.status).toBe(403);
  expect(wrong.text).toContain("(issuer)");
  expect(served.oauth.counts["/token"]).toBeUndefined();
  expect((await waitingLogins(served)).total).toBe(1);
});

test("a login that takes too long is over", async () => {
  const served = await serveLogins();
  const browser = new Browser(served);
  const { body, setCookie } = await browser.begin();
  expect(Date.parse(body.expires_at) - Date.now()).toBeLessThanOrEqual(600_000);
  expect(setCookie).toContain("Max-Age=5");
  const back = await browser.visit(body.url);
  const [file = ""] = (await readdir(served.logins)).filter((name) => name.endsWith(".json"));
  const path = join(served.logins, file);
  const record = JSON.parse(await readFile(path, "utf8"));
  record.pending.until = Date.now() - 1;
  await writeFile(path, JSON.stringify(record));
  expect(await browser.open(back)).toMatchObject({ status: 404 });
  expect(served.oauth.counts["/token"]).toBeUndefined();
});

test("without the right to log in, a sender begins no login and sees none, whether or not the server exists", async () => {
  const asked: AuthorizeRequest[] = [];
  const served = await serveLogins({
    access: { apiKeys: ["other-key"] },
    authorize: (request) => {
      asked.push(request);
      return request.action !== "mcp.login";
    },
  });
  const headers = { authorization: "Bearer other-key" };
  await served.send("/agents/echo/1", { body: { message: "Hello" }, headers });
  expect(await waitingLogins(served, headers)).toEqual({ items: [], total: 0 });
  expect(asked).toContainEqual(expect.objectContaining({ action: "mcp.login", mcp_server: "tracker" }));
  for (const server of ["tracker", "unknown"])
    expect(await new Browser(served, headers).begin(server)).toMatchObject({ status: 403 });
  expect(await new Browser(served).begin()).toMatchObject({ status: 401 });
  expect(served.oauth.counts["/authorize"]).toBeUndefined();
});

test("the browser comes back without a key", async () => {
  const served = await serveLogins({ access: { apiKeys: ["the-key"] } });
  const browser = new Browser(served, { authorization: "Bearer the-key" });
  const back = await browser.visit((await browser.begin()).body.url);
  expect(await browser.open(back)).toMatchObject({ status: 200 });
  // Without a login, this path says the same about each name.
  const paths = ["tracker", "unknown"].map((name) => new URL(`/logins/${name}/callback?state=1`, served.url));
  const [known, unknown] = await Promise.all(paths.map((path) => browser.open(path, "application/json")));
  expect(known?.status).toBe(404);
  expect(unknown).toMatchObject({ status: 404, text: known?.text });
});

test("a page that only reads begins no login", async () => {
  const served = await serveLogins({ console: "read" });
  expect(await new Browser(served).begin()).toMatchObject({ status: 403 });
});

test("a server that only reads has no logins", async () => {
  const { root } = await serveLogins();
  const project = await openProject({ root });
  onTestFinished(() => project.close());
  const { app } = createServer({ project });
  const begun = await app.request("http://localhost/logins/tracker", { method: "POST" });
  const back = await app.request("http://localhost/logins/tracker/callback?state=1&code=1");
  expect([begun.status, back.status]).toEqual([404, 404]);
});

test.each(["unknown", "program"])("no person logs in at %s", async (name) => {
  const served = await serveLogins();
  const { status, body } = await new Browser(served).begin(name);
  expect(status).toBe(404);
  expect(body.error.message).toContain(`no MCP server "${name}"`);
});

/** Begins a login under a host name, as a proxy passes it on. */
async function beginAt(server: KitServer, host: string, origin?: string) {
  const headers = { host, ...(origin === undefined ? {} : { origin }) };
  const reply = await server.fetch(new Request(`http://${host}/logins/tracker`, { method: "POST", headers }));
  return {
    status: reply.status,
    cookie: reply.headers.get("set-cookie"),
    body: JSON.parse(await reply.text()),
  };
}

test("the browser comes back to the configured address, with a cookie that needs https", async () => {
  const served = await serveLogins();
  const project = await openProject({ root: served.root });
  onTestFinished(() => project.close());
  const publicUrl = "https://kit.example/base";
  const config = { server: { public_url: publicUrl, allowed_hosts: ["kit.example"] } };
  const server = createConfiguredServer({ project, service: served.service, loaded: { config } });
  const { cookie, body } = await beginAt(server, "kit.example", "https://kit.example");
  expect(cookie).toMatch(
    /^__Secure-kit_login_[\w-]{16}=[\w-]{43}; Path=\/base\/logins\/tracker\/callback; .*; Secure$/,
  );
  const { searchParams } = new URL(body.url);
  expect(searchParams.get("redirect_uri")).toBe(`${publicUrl}/logins/tracker/callback`);
  const back = await server.fetch(
    new Request(`https://kit.example/logins/tracker/callback?error=no&state=${searchParams.get("state")}`, {
      headers: { host: "kit.example", accept: "text/html", cookie: cookie?.split(";")[0] ?? "" },
    }),
  );
  expect(back.status).toBe(403);
  expect(back.headers.get("set-cookie")).toMatch(
    /^__Secure-kit_login_[\w-]{16}=; Path=\/base\/logins\/tracker\/callback; Max-Age=0; .*; Secure$/,
  );
  const elsewhere = await beginAt(server, "localhost:2024", "http://localhost:2024");
  expect(elsewhere).toMatchObject({ status: 400, cookie: null });
  expect(elsewhere.body.error.message).toContain("begin the login there");
  const card = await server.app.request("http://localhost/a2a/echo/.well-known/agent-card.json");
  expect(await card.text()).toContain(`"url":"${publicUrl}/a2a/echo"`);
});

test("the name that a request gives the server decides nothing about where the browser comes back to", async () => {
  const served = await serveLogins({ access: { allowedHosts: ["kit.example", "bank.example"] } });
  const foreign = await beginAt(served.server, "bank.example");
  expect(foreign.status).toBe(400);
  expect(foreign.body.error.message).toContain("Set server.public_url");
  const { searchParams } = new URL((await beginAt(served.server, "localhost:9")).body.url);
  expect(searchParams.get("redirect_uri")).toBe(`http://localhost:${served.port}/logins/tracker/callback`);
});

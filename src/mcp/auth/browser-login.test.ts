import { expect, test } from "vitest";
import { callTool, openServer } from "../client.suite.ts";
import { logOut } from "./log-out.ts";
import { logInNow, serveWithLogin } from "./login.suite.ts";
import { browse } from "./oauth-server.suite.ts";

const redirect = "https://kit.example/logins/s/callback";

/** The answer that the authorization server gives to a browser. */
async function visit(address: URL): Promise<URLSearchParams> {
  const { headers } = await fetch(address, { redirect: "manual" });
  return new URL(headers.get("location") ?? "").searchParams;
}

test("a server that asks for a login waits for it in every process, over restarts, and each process finishes a login that another began", async () => {
  const { config, logins, login } = await serveWithLogin();
  const [first, second] = [openServer(config, { logins }), openServer(config, { logins })];
  expect(second.logins.needed()).toEqual([]);
  await first.tools();
  const needed = second.logins.needed();
  expect(needed).toEqual([
    { server: "s", host: new URL(config.url ?? "").host, since: expect.any(String), scope: "read" },
  ]);
  await first.inspect();
  expect(openServer(config, { logins }).logins.needed()).toEqual(needed);
  const begun = await first.logins.begin("s", redirect);
  if (begun === undefined) throw new Error("There is no login.");
  const { secret, address } = begun;
  const done = await second.logins.finish("s", { secret, answer: await visit(address) });
  expect(done).toMatchObject({ scope: "read" });
  expect(first.logins.needed()).toEqual([]);
  expect(login.file.read()).toMatchObject({ tokens: { scope: "read" } });
  expect(await second.tools()).not.toEqual([]);
});

test("a login that a browser began costs no earlier one, and a login of the command line leaves it open", async () => {
  const { config, logins, login, oauth } = await serveWithLogin();
  await logInNow(login);
  const { tokens } = login.file.read();
  const client = openServer(config, { logins });
  const begun = await client.logins.begin("s", redirect);
  expect(oauth.last.authorize).toBeDefined();
  expect(login.file.read().tokens).toEqual(tokens);
  // kit is registered with another address for the browser.
  expect(begun?.address.searchParams.get("redirect_uri")).toBe(redirect);
  expect(oauth.counts["/register"]).toBe(2);
  await logInNow(login);
  expect(login.file.read().tokens?.access_token).not.toBe(tokens?.access_token);
  const answer = await visit(begun?.address ?? new URL("none:"));
  expect(login.file.read().pending).toBeDefined();
  expect(await client.logins.finish("s", { secret: begun?.secret ?? "", answer })).toBeDefined();
  expect(login.file.read().pending).toBeUndefined();
  expect(await client.tools()).not.toEqual([]);
});

test("a login keeps how kit is known at other authorization servers", async () => {
  const { login } = await serveWithLogin();
  const other = { "https://other.example": { client_id: "other" } };
  const show = (address: URL): void =>
    void login.file
      .change(async (current, write) => write({ ...current, clients: other }))
      .then(() => browse(address));
  await logInNow(login, { show });
  expect(login.file.read().clients).toEqual({
    ...other,
    [login.file.read().tokens?.issuer ?? ""]: expect.objectContaining({ client_id: "client-0" }),
  });
});

test("a login that has ended waits for a person, with the time when it ended", async () => {
  const { config, logins, login, oauth } = await serveWithLogin({ hidesLifetime: true });
  await logInNow(login);
  const client = openServer(config, { logins });
  expect(await client.tools()).not.toEqual([]);
  expect(client.logins.needed()).toEqual([]);
  oauth.endAccess();
  const body = new URLSearchParams({
    grant_type: "refresh_token",
    refresh_token: login.file.read().tokens?.refresh_token ?? "",
  });
  await fetch(new URL("/token", config.url), { method: "POST", body });
  await client.close();
  const next = openServer(config, { logins });
  expect(await next.tools()).toEqual([]);
  expect(next.logins.needed()).toMatchObject([{ server: "s" }]);
  await logOut(login);
  expect(next.logins.needed()).toEqual([]);
});

test("a call that needs another scope waits for a login that asks for both", async () => {
  const { config, logins, login } = await serveWithLogin({ needs: "write" });
  await logInNow(login);
  const client = openServer(config, { logins });
  await callTool(client, "echo", { args: { text: "1" } });
  expect(client.logins.needed()).toMatchObject([{ server: "s", scope: "read write" }]);
  const begun = await client.logins.begin("s", redirect);
  expect(begun?.address.searchParams.get("scope")).toBe("read write");
});

test("a program that logs in by itself has no login for persons", async () => {
  const clients = { kit: "its-secret-value" };
  const table = { grant: "client_credentials", client_id: "kit", client_secret: clients.kit } as const;
  const { config, logins } = await serveWithLogin({ clients }, table);
  const client = openServer(config, { logins });
  expect(await client.tools()).not.toEqual([]);
  expect(await client.logins.begin("s", redirect)).toBeUndefined();
});

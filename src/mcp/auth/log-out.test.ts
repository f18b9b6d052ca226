import { expect, test } from "vitest";
import { logOut } from "./log-out.ts";
import { logInNow, serveWithLogin } from "./login.suite.ts";

test("a logout removes the login and revokes both tokens as the client that got them", async () => {
  const { oauth, login } = await serveWithLogin({ revokes: true });
  await logInNow(login);
  const { tokens } = login.file.read();
  expect(await logOut(login)).toEqual({ removed: true, revoked: true });
  expect(login.file.read().tokens).toBeUndefined();
  expect(oauth.revoked.map((body) => Object.fromEntries(body))).toEqual([
    { token: tokens?.refresh_token, token_type_hint: "refresh_token", client_id: "client-0" },
    { token: tokens?.access_token, token_type_hint: "access_token", client_id: "client-0" },
  ]);
  expect(await logOut(login)).toEqual({ removed: false });
  expect(oauth.revoked).toHaveLength(2);
});

test("a configured client revokes with its secret", async () => {
  const { oauth, login } = await serveWithLogin(
    { revokes: true, clients: { kit: "s e:cret" } },
    { client_id: "kit", client_secret: "s e:cret" },
  );
  await logInNow(login);
  expect(await logOut(login)).toMatchObject({ revoked: true });
  const basic = Buffer.from(oauth.last.basic?.slice(6) ?? "", "base64").toString();
  expect(basic).toBe("kit:s%20e%3Acret");
  expect(oauth.revoked[0]?.has("client_secret")).toBe(false);
});

test.each([
  { revokes: false, fault: undefined, problem: "Its authorization server takes no revocations." },
  { revokes: true, fault: 503, problem: "Its authorization server has an error." },
  {
    revokes: true,
    fault: 400,
    problem: "Its authorization server refuses the request (unsupported_token_type).",
  },
])("a login that cannot be revoked ($problem) is removed anyway, and the reason is given", async (at) => {
  const { login } = await serveWithLogin({
    revokes: at.revokes,
    meddle: (path, _, reply) => {
      if (path !== "/revoke" || at.fault === undefined) return undefined;
      const error = at.fault === 400 ? "unsupported_token_type" : "server_error";
      reply.writeHead(at.fault, { "content-type": "application/json" });
      reply.end(JSON.stringify({ error, error_description: "The token was …" }));
      return true;
    },
  });
  await logInNow(login);
  expect(await logOut(login)).toEqual({ removed: true, revoked: false, problem: at.problem });
  expect(login.file.read().tokens).toBeUndefined();
});

test.each([
  { refused: "access_token", how: "unsupported_token_type", problem: undefined },
  { refused: "access_token", how: "hangs up", problem: undefined },
  { refused: "refresh_token", how: "hangs up", problem: "Its authorization server cannot be reached." },
])(
  "a login counts as revoked once its refresh token is: the $refused $how",
  async ({ refused, how, problem }) => {
    const { oauth, login } = await serveWithLogin({
      revokes: true,
      meddle: (path, _, reply) => {
        if (path !== "/revoke" || oauth.revoked.at(-1)?.get("token_type_hint") !== refused) return undefined;
        if (how === "hangs up") reply.destroy();
        else reply.writeHead(400, { "content-type": "application/json" }).end(JSON.stringify({ error: how }));
        return true;
      },
    });
    await logInNow(login);
    const revoked = problem === undefined;
    expect(await logOut(login)).toEqual({ removed: true, revoked, ...(!revoked && { problem }) });
    expect(oauth.revoked.map((body) => body.get("token_type_hint"))).toEqual([
      "refresh_token",
      "access_token",
    ]);
  },
);

test("a login of another authorization server than the one of today is removed, and its tokens are sent nowhere", async () => {
  const { oauth, login } = await serveWithLogin({ revokes: true });
  await logInNow(login);
  await login.file.change(async ({ tokens, ...rest }, write) =>
    write({ ...rest, tokens: tokens && { ...tokens, issuer: "https://before.example" } }),
  );
  expect(await logOut(login)).toMatchObject({
    revoked: false,
    problem: "The login is of another authorization server than the one that the server names now.",
  });
  expect(oauth.revoked).toEqual([]);
});

test("tokens go to no address for revocations that their authorization server may not have", async () => {
  const { login } = await serveWithLogin({
    revokes: true,
    meddle: (_, value) => {
      if ("revocation_endpoint" in value) value.revocation_endpoint = "http://169.254.169.254/revoke";
      return undefined;
    },
  });
  await logInNow(login);
  expect(await logOut(login)).toMatchObject({
    revoked: false,
    problem: expect.stringContaining("where kit sends nothing"),
  });
});

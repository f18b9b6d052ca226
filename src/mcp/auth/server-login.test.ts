import { readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { callTool, openServer, textOf, toolsAndProblems } from "../client.suite.ts";
import { toServerSettings } from "../servers/server-settings.ts";
import { logInNow, serveWithLogin } from "./login.suite.ts";

test("a server that asks for a login names the command, and offers its tools after it", async () => {
  const { config, logins, login, oauth } = await serveWithLogin();
  const before = await toolsAndProblems(openServer(config, { logins }));
  expect(before.tools).toEqual([]);
  expect(before.problems.map(({ message }) => message)).toEqual([
    "It is not available. It requires a login: run 'kit mcp login s', or open kit's console.",
  ]);
  expect(await logInNow(login)).toEqual({ issuer: new URL(config.url ?? "").origin, scope: "read" });
  expect(oauth.last.authorize?.get("resource")).toBe(config.url);
  expect(oauth.last.token?.get("resource")).toBe(config.url);
  const client = openServer(config, { logins });
  expect(textOf(await callTool(client, "echo", { args: { text: "hi" } }))).toContain("hi");
});

test("the person's file is readable by its owner alone, and holds no draft", async () => {
  const { logins, login } = await serveWithLogin();
  await logInNow(login);
  const [name = ""] = (await readdir(logins)).filter((each) => each.endsWith(".json"));
  expect((await stat(logins)).mode & 0o777).toBe(0o700);
  expect((await stat(join(logins, name))).mode & 0o777).toBe(0o600);
  expect((await readdir(logins)).filter((each) => each.endsWith(".new"))).toEqual([]);
});

test("a login belongs to one project and one name", async () => {
  const { config, logins, login } = await serveWithLogin();
  await logInNow(login);
  const { endpoint } = toServerSettings("s", config, { root: tmpdir(), env: {}, logins });
  expect(endpoint.kind === "address" && endpoint.login?.file.read()).toEqual({ server: config.url });
  const other = await toolsAndProblems(openServer(config, { logins, root: tmpdir() }));
  expect(other.problems[0]?.message).toContain("run 'kit mcp login s'");
});

test("a file that others can read, or that is broken, counts as no login", async () => {
  const { logins, login } = await serveWithLogin();
  await logInNow(login);
  const [name = ""] = (await readdir(logins)).filter((each) => each.endsWith(".json"));
  const text = await readFile(join(logins, name), "utf8");
  await writeFile(join(logins, name), text.slice(0, 40));
  expect(login.file.read().tokens).toBeUndefined();
  await rm(join(logins, name));
  await writeFile(join(logins, name), text, { mode: 0o644 });
  expect(login.file.read().tokens).toBeUndefined();
});

test("tokens are renewed before they end, and after the server refuses them", async () => {
  const { config, logins, login, oauth } = await serveWithLogin({ lifetime: 20 });
  await logInNow(login);
  const client = openServer(config, { logins });
  await callTool(client, "echo", { args: { text: "1" } });
  const early = oauth.counts.refreshes ?? 0;
  expect(early).toBeGreaterThan(0);
  const late = await serveWithLogin({ hidesLifetime: true });
  await logInNow(late.login);
  const other = openServer(late.config, { logins: late.logins });
  await callTool(other, "echo", { args: { text: "1" } });
  late.oauth.endAccess();
  const answers = await Promise.all(
    ["2", "3", "4"].map((text) => callTool(other, "echo", { args: { text } }).then(textOf)),
  );
  expect(answers).toEqual(["2", "3", "4"]);
  expect(late.oauth.counts.refreshes).toBe(1);
  expect([oauth.isDead, late.oauth.isDead]).toEqual([false, false]);
});

test("an authorization server that is down for a moment costs no login", async () => {
  let isDown = false;
  const { config, logins, login, oauth } = await serveWithLogin({
    hidesLifetime: true,
    meddle: (path, _, reply) => {
      if (path !== "/token" || !isDown) return false;
      reply.writeHead(503).end("down");
      return true;
    },
  });
  await logInNow(login);
  const client = openServer(config, { logins });
  await callTool(client, "echo", { args: { text: "1" } });
  oauth.endAccess();
  isDown = true;
  // The server has rotated the tokens, but its answer is lost: only its next answer tells that they are gone.
  expect(textOf(await callTool(client, "echo", { args: { text: "2" } }))).toContain(
    "Its authorization server has an error.",
  );
  expect(login.file.read().tokens?.refresh_token).toBeDefined();
});

test("a login that has ended names the command, and its tokens are gone", async () => {
  const { config, logins, login, oauth } = await serveWithLogin({ hidesLifetime: true });
  await logInNow(login);
  const client = openServer(config, { logins });
  await callTool(client, "echo", { args: { text: "1" } });
  oauth.endAccess();
  await login.file.change(async (current, write) =>
    write({
      ...current,
      tokens: {
        access_token: "old",
        refresh_token: "old",
        token_type: "Bearer",
        issuer: current.tokens?.issuer ?? "",
      },
    }),
  );
  expect(textOf(await callTool(client, "echo", { args: { text: "2" } }))).toContain(
    "The login at it has ended (invalid_grant): run 'kit mcp login s', or open kit's console.",
  );
  expect(login.file.read().tokens).toBeUndefined();
});

test.each(["invalid_client", "invalid_target", "slow_down"])(
  "a refusal that is not about the login costs no login (%s)",
  async (error) => {
    let isRefusing = false;
    const { config, logins, login, oauth } = await serveWithLogin({
      hidesLifetime: true,
      meddle: (path, _, reply) => {
        if (path !== "/token" || !isRefusing) return false;
        reply.writeHead(400, { "content-type": "application/json" }).end(JSON.stringify({ error }));
        return true;
      },
    });
    await logInNow(login);
    const client = openServer(config, { logins });
    await callTool(client, "echo", { args: { text: "1" } });
    oauth.endAccess();
    isRefusing = true;
    expect(textOf(await callTool(client, "echo", { args: { text: "2" } }))).toContain(
      `refuses the request (${error})`,
    );
    expect(login.file.read().tokens?.refresh_token).toBeDefined();
  },
);

test("a secret of the configuration does not go to the authorization server of an earlier login", async () => {
  const { config, logins, login, oauth } = await serveWithLogin({ hidesLifetime: true });
  await logInNow(login);
  oauth.endAccess();
  const client_secret = ["$", "{KIT_TEST_SECRET}"].join("");
  const table = { issuer: "https://good.example", client_id: "kit", client_secret };
  const env = { KIT_TEST_SECRET: "hunter2hunter2" };
  const { problems } = await toolsAndProblems(openServer({ ...config, oauth: table }, { logins, env }));
  expect(problems[0]?.message).toContain(
    "The login at it is of another authorization server than `oauth.issuer`: run 'kit mcp login s', or open kit's console.",
  );
  expect(oauth.counts["/token"]).toBe(1);
  expect(login.file.read().tokens).toBeDefined();
});

test("other processes can change the login while kit waits to learn where tokens are renewed", async () => {
  let isRenewing = false;
  const { config, logins, login, oauth } = await serveWithLogin({
    hidesLifetime: true,
    meddle: (path, value, reply) => {
      if (!isRenewing || !path.startsWith("/.well-known/")) return false;
      void login.file
        .change(async () => undefined)
        .then(() => reply.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(value)));
      return true;
    },
  });
  await logInNow(login);
  const client = openServer(config, { logins });
  await callTool(client, "echo", { args: { text: "1" } });
  oauth.endAccess();
  isRenewing = true;
  expect(textOf(await callTool(client, "echo", { args: { text: "2" } }))).toBe("2");
});

test("a call that needs another scope says so, and the next login asks for both", async () => {
  const { config, logins, login, oauth } = await serveWithLogin({ needs: "write" });
  await logInNow(login);
  const client = openServer(config, { logins });
  expect(textOf(await callTool(client, "echo", { args: { text: "1" } }))).toContain(
    "(HTTP 403, insufficient_scope): run 'kit mcp login s', or open kit's console, to allow it more.",
  );
  expect((await logInNow(login)).scope).toBe("read write");
  expect(oauth.last.authorize?.get("scope")).toBe("read write");
  expect(textOf(await callTool(client, "echo", { args: { text: "1" } }))).toBe("1");
  expect(login.file.read().requested).toBeUndefined();
  expect(oauth.counts["/register"]).toBe(1);
});

test("kit logs in by itself with a secret of the environment, which only its issuer gets", async () => {
  const table = {
    grant: "client_credentials",
    client_id: "kit",
    client_secret: ["$", "{KIT_TEST_SECRET}"].join(""),
  } as const;
  const { config, oauth } = await serveWithLogin({ clients: { kit: "hunter2hunter2" } }, table);
  const env = { KIT_TEST_SECRET: "hunter2hunter2" };
  const client = openServer(config, { env });
  expect(textOf(await callTool(client, "echo", { args: { text: "hi" } }))).toBe("hi");
  oauth.endAccess();
  expect(textOf(await callTool(client, "echo", { args: { text: "ho" } }))).toBe("ho");
  expect(oauth.counts["/token"]).toBe(2);
  const elsewhere = { ...config, oauth: { ...table, issuer: "https://issuer.example" } };
  const { problems } = await toolsAndProblems(openServer(elsewhere, { env }));
  expect(problems[0]?.message).toContain("is not the one that it should be (issuer)");
  expect(oauth.counts["/token"]).toBe(2);
  const wrong = await toolsAndProblems(openServer(config, { env: { KIT_TEST_SECRET: "wrong-secret" } }));
  expect(wrong.problems[0]?.message).toContain("refuses the request (invalid_client)");
  expect(JSON.stringify(wrong.problems)).not.toContain("wrong-secret");
});

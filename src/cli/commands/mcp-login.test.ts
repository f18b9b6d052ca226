import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { expect, onTestFinished, test } from "vitest";
import { browse, createOAuthServer } from "../../mcp/auth/oauth-server.suite.ts";
import { modernListener, serveHttp } from "../../mcp/servers/http-server.suite.ts";
import { serveLogins } from "../../server/testing/serve-logins.suite.ts";
import { testFolder } from "../../testing/test-folder.ts";
import { beginKit, type RunOptions, runKit } from "../testing/run-kit.ts";

/** A project with one MCP server that asks for a login, named `tracker`, and one that is a program. */
async function openProject(state = "state"): Promise<RunOptions & { readonly url: string }> {
  const { url } = await serveHttp(createOAuthServer(modernListener(), { revokes: true }).listener);
  const folder = testFolder(onTestFinished);
  const cwd = join(folder, "project");
  mkdirSync(cwd);
  writeFileSync(
    join(cwd, "kit.toml"),
    `[mcp.servers.tracker]\nurl = "${url}"\n[mcp.servers.program]\ncommand = "none"\n`,
  );
  return { url, cwd, env: { XDG_STATE_HOME: join(folder, state), KIT_TRUST: "1", CI: "" } };
}

/** The address of the login that a command prints. */
async function addressIn(stream: Readable): Promise<URL> {
  let text = "";
  for await (const part of stream.iterator({ destroyOnReturn: false })) {
    text += String(part);
    const [address] = /http:\S+\/authorize\S+(?=\n)/.exec(text) ?? [];
    if (address !== undefined) return new URL(address);
  }
  throw new Error(text);
}

const trackerIn = (stdout: string): object | undefined =>
  (JSON.parse(stdout) as { checks: { name: string }[] }).checks.find(
    ({ name }) => name === "MCP server tracker",
  );

test("kit mcp login prints the address, waits for the browser, and agents have the tools until kit mcp logout", async () => {
  const project = await openProject();
  const before = await runKit(["doctor", "--json"], project);
  expect(trackerIn(before.stdout)).toMatchObject({
    status: "error",
    message: "It is not available. It requires a login: run 'kit mcp login tracker', or open kit's console.",
  });
  const line = beginKit(["mcp", "login", "tracker", "--json"], project);
  const answer = await browse(await addressIn(line.stderr));
  expect(await answer.text()).toContain("go back to the terminal");
  const stdout = (await line.stdout.toArray()).join("");
  expect(await line.ended).toBe(0);
  expect(JSON.parse(stdout)).toMatchObject({ server: "tracker", scope: "read", problem: null });
  expect(stdout).not.toMatch(/access-|refresh-/);
  const after = await runKit(["doctor", "--json"], project);
  expect(trackerIn(after.stdout)).toMatchObject({ status: "ok" });
  const out = await runKit(["mcp", "logout", "tracker"], project);
  expect(out.stderr).toBe("You are logged out of tracker.\n");
  expect(trackerIn((await runKit(["doctor", "--json"], project)).stdout)).toMatchObject({ status: "error" });
});

test("a person can enter the address that a browser on another machine ends at", async () => {
  const project = await openProject();
  const wrong = await runKit(["mcp", "login", "tracker"], {
    ...project,
    typed: "http://127.0.0.1:1/callback?state=forged&code=1\n",
    columns: 200,
  });
  expect(wrong.stderr).toContain("enter the address that it ends at");
  expect(wrong.stderr).toContain("The entered address does not belong to this login.");
  expect(wrong.exitCode).toBe(1);
});

test.each([
  { args: ["login"], text: "needs the name of a server" },
  { args: ["login", "traker"], text: "Did you mean tracker?" },
  { args: ["login", "program"], text: "program is a program" },
  { args: ["sign-in", "tracker"], text: "It has login and logout." },
  { args: ["login", "tracker", "--verify"], text: "--verify is no option of kit mcp login." },
  { args: ["--timeout", "5"], text: "--timeout is an option of kit mcp login." },
])("kit mcp $args says what is wrong", async ({ args, text }) => {
  const { exitCode, stderr } = await runKit(["mcp", ...args], await openProject());
  expect(stderr).toContain(text);
  expect(exitCode).toBe(2);
});

test("no login is kept in the project, and none is waited for longer than asked", async () => {
  const inside = await runKit(["mcp", "login", "tracker"], await openProject("project/state"));
  expect(inside.stderr).toContain("Your state folder lies in this project");
  const late = await runKit(["mcp", "login", "tracker", "--timeout", "1"], await openProject());
  expect(late.stderr).toContain("There was no answer from the browser within 1 s.");
  expect(late.exitCode).toBe(1);
});

test("kit approvals list shows the servers that need a login", async () => {
  const served = await serveLogins();
  await served.send("/agents/echo/1", { body: { message: "Hello" } });
  const project = await openProject();
  const { stdout, stderr } = await runKit(["approvals", "list", "--url", served.url], project);
  expect(stderr).toContain("MCP servers that need a login ('kit mcp login tracker'");
  expect(stdout).toMatch(new RegExp(`^tracker\t${new URL(served.origin).host}\t2\\S+Z\tread\n$`));
});

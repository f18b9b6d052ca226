import { beforeEach, expect, test } from "vitest";
import { KitError } from "../../base/kit-error.ts";
import { connectMcp, modernRequest, textOf } from "../testing/mcp-client.ts";
import { serveForTest, serveForTests } from "../testing/serve-for-tests.ts";

const secret = "sk-live-4f0c9a7de1b24c55";
const fault = new Error("postgres://admin:hunter2@db/root/store");
const tasks = { extensions: { "io.modelcontextprotocol/tasks": {} } };

let failing: Error | undefined;
const served = serveForTests({
  env: { STRIPE_KEY: secret },
  limits: { eventStreams: 1 },
  files: {
    "CLAUDE.md": `# Rules\n\n## Money ${secret}\n\nThe key is ${secret}.\n`,
    ".agents/skills/release/SKILL.md": `---\nname: release\ndescription: Uses ${secret}.\n---\n\nUse ${secret}.\n`,
  },
  authorize: ({ action }) => {
    if (failing !== undefined && action !== "project.read") throw failing;
    return true;
  },
});
beforeEach(() => {
  failing = undefined;
});

const send = (method: string, params?: Readonly<Record<string, unknown>>) =>
  served.send("/mcp", modernRequest(method, params, tasks));

async function startWork(): Promise<string> {
  const call = { name: "agent_careful", arguments: { message: "pay 5" } };
  return (await send("tools/call", call)).body.result.taskId;
}

test("a fault of the server is reported, and its text reaches no client", async () => {
  const taskId = await startWork();
  failing = fault;
  const before = served.errors.length;
  const expected = {
    ...{ code: -32_603, message: "Something went wrong inside kit. The log of the server says more." },
    data: { type: "internal_error" },
  };
  expect((await send("tools/list")).body.error).toEqual(expected);
  expect((await send("tools/call", { name: "agent_echo", arguments: {} })).body.error).toEqual(expected);
  expect((await send("tasks/get", { taskId })).body.error).toEqual(expected);
  expect((await send("tasks/cancel", { taskId })).body.error).toEqual(expected);
  expect(served.errors.slice(before)).toEqual([fault, fault, fault, fault]);
});

test("an error for the client keeps its message, without secrets", async () => {
  failing = new KitError({ code: "unavailable", message: `The key ${secret} is out of use.` });
  const { error } = (await send("tools/list")).body;
  expect(error).toMatchObject({ code: -32_000, data: { type: "unavailable" } });
  expect(error.message).toContain("The key [secret] is out of use.");
});

test("a server of a request that cannot be created is reported", async () => {
  const broken = await serveForTest({
    mcp: {
      extend: () => {
        throw fault;
      },
    },
  });
  const reply = await broken.send("/mcp", modernRequest("tools/list"));
  expect([reply.status, JSON.stringify(reply.body)]).toEqual([500, expect.not.stringContaining("hunter2")]);
  expect(broken.errors).toEqual([fault]);
});

test("no list, resource, completion or prompt contains a secret", async () => {
  const client = await connectMcp(served.url);
  const { resources } = await client.listResources();
  const uri = resources.find((one) => one.uri.startsWith("kit://guidelines/"))?.uri ?? "";
  for (const reply of [
    resources,
    await client.readResource({ uri }),
    await client.listPrompts(),
    await client.getPrompt({ name: "release", arguments: { task: "" } }),
  ]) {
    expect(JSON.stringify(reply)).not.toContain(secret);
    expect(JSON.stringify(reply)).toContain("[secret]");
  }
  await client.close();
});

test("a client that leaves while it waits causes no error", async () => {
  const { headers, body } = modernRequest("tools/call", {
    name: "agent_echo",
    arguments: { message: "hold" },
  });
  const leaving = new AbortController();
  const reply = served.server.fetch(
    new Request("http://localhost/mcp", {
      method: "POST",
      headers: { ...headers, "content-type": "application/json" },
      body: JSON.stringify(body),
      signal: leaving.signal,
    }),
  );
  await served.echo.held(1);
  leaving.abort();
  expect([(await reply).status, await (await reply).text()]).toEqual([499, ""]);
  served.echo.release();
});

test("a call that is refused because too many streams are open has started nothing", async () => {
  const client = await connectMcp(served.url);
  const messages: string[] = [];
  const leaving = new AbortController();
  const first = client.callTool(
    { name: "agent_careful", arguments: { message: "pay 5", instance: "first" } },
    { onprogress: ({ message = "" }) => messages.push(message), signal: leaving.signal },
  );
  await expect.poll(() => messages).toContain("pay waits for a decision in kit's inbox");
  const call = { name: "agent_echo", arguments: { message: "x", instance: "refused" } };
  const { headers, body } = modernRequest("tools/call", call);
  expect((await served.send("/mcp", { headers, body })).status).toBe(503);
  expect((await served.service.engine.listDispatches({ instance_id: "refused" })).items).toEqual([]);
  leaving.abort();
  await expect(first).rejects.toThrow();
  await expect.poll(async () => (await send("tools/list")).status).toBe(200);
  expect(textOf((await served.send("/mcp", { headers, body })).body.result)).toBe("x");
  await client.close();
});

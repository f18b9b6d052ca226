import { mkdir, writeFile } from "node:fs/promises";
import { request as httpRequest } from "node:http";
import { join } from "node:path";
import { expect, test } from "vitest";
import { connectMcp, modernRequest, textOf } from "../testing/mcp-client.ts";
import { serveForTest, serveForTests } from "../testing/serve-for-tests.ts";

const served = serveForTests({
  mcp: { waitMs: 20_000 },
  files: {
    ".agents/skills/release/SKILL.md":
      "---\nname: release\ndescription: Writes release notes.\n---\n\nList what changed.\n",
  },
});

test.each(["auto", "legacy"] as const)(
  "a client of either revision lists and calls the tools (%s)",
  async (era) => {
    const client = await connectMcp(served.url, { era });
    const names = (await client.listTools()).tools.map(({ name }) => name);
    expect(names).toEqual(
      expect.arrayContaining(["guidelines_for", "spec_search", "agent_echo", "work_result"]),
    );
    expect(names).not.toContain("agent_hidden");
    expect(names).not.toContain("agent_broken");
    const rules = await client.callTool({ name: "guidelines_for", arguments: { file: "src/a.ts" } });
    expect(textOf(rules)).toContain("whole cents");
    const reply = await client.callTool({ name: "agent_echo", arguments: { message: "hello there" } });
    expect(reply.structuredContent).toMatchObject({ text: "hello there", session: "default" });
    expect(client.getNegotiatedProtocolVersion()).toBe(era === "auto" ? "2026-07-28" : "2025-11-25");
    await client.close();
  },
);

const raw = (method: string, params?: Readonly<Record<string, unknown>>, capabilities?: object) =>
  served.send("/mcp", modernRequest(method, params, capabilities));
const tasks = { extensions: { "io.modelcontextprotocol/tasks": {} } };
const agentCall = (name: string, args: Record<string, unknown>) => ({ name, arguments: args });

test("an agent goes on with a conversation, and a repeated key starts nothing", async () => {
  const client = await connectMcp(served.url);
  const call = agentCall("agent_echo", { message: "once", key: "k1" });
  const first = (await client.callTool(call)).structuredContent as Record<string, unknown>;
  expect((await client.callTool(call)).structuredContent).toEqual(first);
  const { instance, dispatch_id } = first;
  const next = await client.callTool(agentCall("agent_echo", { message: "again", instance }));
  expect(next.structuredContent).toMatchObject({ instance, text: "again" });
  const waited = await client.callTool({ name: "work_result", arguments: { id: dispatch_id } });
  expect(textOf(waited)).toBe("once");
  await client.close();
});

test("a person who is shown a form approves or denies a call", async () => {
  const asked: string[] = [];
  let answer: object = { action: "accept", content: { decision: "approve" } };
  const client = await connectMcp(served.url, {
    answer: (message) => {
      asked.push(message);
      return answer;
    },
  });
  expect(textOf(await client.callTool(agentCall("agent_careful", { message: "pay 5" })))).toBe("It is done.");
  expect(asked).toEqual(['The agent careful calls pay with {"cents":5}.']);
  answer = { action: "decline" };
  const declined = await client.callTool(agentCall("agent_careful", { message: "pay 6" }));
  const { instance } = declined.structuredContent as { readonly instance: string };
  const history = await served.service.history({
    agent: "careful",
    instance_id: instance,
    session: "default",
  });
  expect(JSON.stringify(history)).toContain("The person who was asked declined.");
  expect(asked).toHaveLength(2);
  await client.close();
});

test.each(["auto", "legacy"] as const)(
  "without forms, people decide in the inbox, and the call waits (%s)",
  async (era) => {
    const client = await connectMcp(served.url, { era });
    const messages: string[] = [];
    const call = client.callTool(agentCall("agent_careful", { message: "pay 7", instance: `inbox-${era}` }), {
      onprogress: ({ message = "" }) => messages.push(message),
    });
    const target = { agent: "careful", instance_id: `inbox-${era}` };
    await expect.poll(() => served.service.approvals.list(target)).toHaveLength(1);
    const [waiting] = await served.service.approvals.list(target);
    await served.service.approvals.decide(waiting?.approval_id ?? "", { approved: true }, target);
    expect(textOf(await call)).toBe("It is done.");
    expect(messages).toContain("pay waits for a decision in kit's inbox");
    await client.close();
  },
);

// The projects of this file share a process: a tool that still runs in the first one keeps the files of a new one from being loaded,
// because it could have written them.
test("a form that is closed without an answer decides nothing", { retry: 2 }, async () => {
  const quick = await serveForTest();
  const client = await connectMcp(quick.url, { answer: () => ({ action: "cancel" }) });
  const call = agentCall("agent_careful", { message: "pay 8", instance: "closed" });
  expect(textOf(await client.callTool(call))).toContain("waits until a person decides about pay");
  expect(await quick.service.approvals.list({ agent: "careful" })).toHaveLength(1);
  await client.close();
});

test("with approvals in the inbox only, a client that shows forms is not asked", async () => {
  const quick = await serveForTest({ mcp: { waitMs: 300, approvals: "inbox" } });
  const client = await connectMcp(quick.url, { answer: () => expect.fail("it was asked") });
  const reply = await client.callTool(agentCall("agent_careful", { message: "pay 8" }));
  const { id } = reply.structuredContent as { readonly id: string };
  const list = () => quick.service.approvals.list({ agent: "careful" });
  await expect.poll(list).toMatchObject([{ dispatch_id: id }]);
  const [waiting] = await list();
  await quick.service.approvals.decide(waiting?.approval_id ?? "", { approved: false, reason: "no" });
  expect(textOf(await client.callTool({ name: "work_result", arguments: { id } }))).toBe("It is done.");
  await client.close();
});

test("a workflow runs, and refuses arguments with the reason", async () => {
  const client = await connectMcp(served.url);
  const doubled = await client.callTool(agentCall("workflow_strict", { n: 4 }));
  expect(doubled.structuredContent).toMatchObject({ result: { doubled: 8 } });
  const refused = await client.callTool(agentCall("workflow_strict", { n: "four" }));
  expect([refused.isError, textOf(refused)]).toEqual([true, expect.stringContaining("n:")]);
  const failed = await client.callTool(agentCall("workflow_failing", {}));
  expect([failed.isError, textOf(failed)]).toEqual([true, expect.not.stringContaining("secret")]);
  const wrong = await client.callTool(agentCall("agent_echo", { mesage: "hi" }));
  expect(textOf(wrong)).toContain("mesage: is not known here");
  await client.close();
});

test("a client that follows tasks gets long work as one, decides in it, and cancels it", async () => {
  const paying = (await raw("tools/call", agentCall("agent_careful", { message: "pay 9" }), tasks)).body
    .result;
  expect(paying).toMatchObject({ resultType: "task", status: "input_required" });
  const { taskId } = paying;
  const [key = ""] = Object.keys(paying.inputRequests);
  const inputResponses = { [key]: { action: "accept", content: { decision: "approve" } } };
  await raw("tasks/update", { taskId, inputResponses }, tasks);
  const get = async (id: string) => (await raw("tasks/get", { taskId: id }, tasks)).body.result;
  await expect.poll(async () => (await get(taskId)).status).toBe("completed");
  expect(textOf((await get(taskId)).result)).toBe("It is done.");

  const slow = (await raw("tools/call", agentCall("workflow_slow", {}), tasks)).body.result;
  expect(slow).toMatchObject({
    resultType: "task",
    status: "working",
    taskId: expect.stringMatching(/^run_/),
  });
  await raw("tasks/cancel", { taskId: slow.taskId }, tasks);
  await expect.poll(async () => (await get(slow.taskId)).status).toBe("cancelled");
  expect((await raw("tasks/get", { taskId }, {})).body.error.code).toBe(-32_021);
});

test("a client that leaves in the middle ends no work", async () => {
  const { headers, body } = modernRequest(
    "tools/call",
    agentCall("agent_echo", { message: "hold", instance: "left" }),
  );
  const leaving = httpRequest(`${served.url}/mcp`, {
    method: "POST",
    headers: { ...headers, "content-type": "application/json" },
  });
  leaving.on("error", () => undefined);
  leaving.end(JSON.stringify(body));
  await served.echo.held(1);
  const closed = new Promise((resolve) => leaving.once("close", resolve));
  leaving.destroy();
  await closed;
  const { items } = await served.service.engine.listDispatches({ instance_id: "left" });
  expect(items).toMatchObject([{ status: "running" }]);
  served.echo.release();
  const ended = await served.service.engine.awaitDispatch(items[0]?.dispatch_id ?? "");
  expect(ended?.status).toBe("completed");
});

test("a forged state, an unknown task and an unknown tool are invalid parameters", async () => {
  const state = { requestState: "dispatch_01AAAAAAAAAAAAAAAAAAAAAAAA" };
  const call = agentCall("agent_echo", { message: "x" });
  expect((await raw("tools/call", { ...call, ...state })).body.error.code).toBe(-32_602);
  expect((await raw("tasks/get", { taskId: "../secret" }, tasks)).body.error.code).toBe(-32_602);
  expect((await raw("tools/call", agentCall("agent_hidden", { message: "x" }))).body.error.code).toBe(
    -32_602,
  );
});

test("skills are prompts; specs and guidelines are listed, completed and read", async () => {
  const client = await connectMcp(served.url);
  const { prompts } = await client.listPrompts();
  expect(prompts).toMatchObject([{ name: "release", description: "Writes release notes." }]);
  const prompt = await client.getPrompt({ name: "release", arguments: { task: "For 1.2." } });
  expect(prompt.messages).toMatchObject([{ content: { text: "List what changed.\n\nFor 1.2." } }]);
  const { resources } = await client.listResources();
  const uri = resources.find((one) => one.uri.startsWith("kit://guidelines/"))?.uri ?? "";
  expect((await client.readResource({ uri })).contents).toMatchObject([
    { text: expect.stringContaining("cents") },
  ]);
  const { completion } = await client.complete({
    ref: { type: "ref/resource", uri: "kit://guidelines/{id}" },
    argument: { name: "id", value: "money" },
  });
  expect(completion.values.map((id) => `kit://guidelines/${encodeURIComponent(id)}`)).toContain(uri);
  await client.close();
});

test("each agent has a tool of its own, whatever signs its name has and how long it is", async () => {
  const file =
    'export const triggers = { webhook: true };\nexport default { kind: "kit.agent", describe: async () => ({}) };\n';
  const names = ["x.y", "x_y", `${"a".repeat(70)}1`, `${"a".repeat(70)}2`, "team.reviewer"];
  const many = await serveForTest({
    files: Object.fromEntries(names.map((name) => [`src/agents/${name}.ts`, file])),
  });
  const client = await connectMcp(many.url);
  const { tools } = await client.listTools();
  const toolNames = tools.filter(({ title = "" }) => names.includes(title)).map(({ name }) => name);
  expect(new Set(toolNames).size).toBe(names.length);
  expect(toolNames).toEqual(expect.arrayContaining(["agent_x_y", "agent_team_reviewer"]));
  for (const name of toolNames) expect(name).toMatch(/^agent_[\w-]{1,58}$/);
  await client.close();
});

test("a client that listens hears of new tools and of the first skill, and one of the older revision is promised nothing", async () => {
  const growing = await serveForTest({ files: {} });
  const { body } = await growing.send("/mcp", modernRequest("server/discover"));
  expect(body.result.capabilities).toMatchObject({
    ...{ tools: { listChanged: true }, prompts: { listChanged: true }, resources: { listChanged: false } },
  });
  const old = await connectMcp(growing.url, { era: "legacy" });
  expect(old.getServerCapabilities()?.tools).toEqual({ listChanged: false });
  expect(old.getServerCapabilities()?.prompts).toBeUndefined();
  const prompts = async () => (await growing.send("/mcp", modernRequest("prompts/list"))).body.result.prompts;
  expect(await prompts()).toEqual([]);
  const unknown = await growing.send("/mcp", modernRequest("prompts/get", { name: "none" }));
  expect(unknown.body.error.code).toBe(-32_602);
  const notifications = { toolsListChanged: true, promptsListChanged: true, resourcesListChanged: true };
  const leaving = new AbortController();
  const stream = await growing.stream("/mcp", {
    ...modernRequest("subscriptions/listen", { notifications }),
    signal: leaving.signal,
  });
  const notices: string[] = [];
  const listening = (async () => {
    for await (const text of stream.body?.pipeThrough(new TextDecoderStream()) ?? [])
      notices.push(
        ...[...text.matchAll(/"method":"notifications\/([^"]+)"/g)].map(([, method = ""]) => method),
      );
  })().catch(() => undefined);
  await expect.poll(() => notices).toEqual(["subscriptions/acknowledged"]);
  await writeFile(join(growing.root, "src/workflows/newer.ts"), "export const run = () => 1;\n");
  const skill = join(growing.root, ".agents/skills/release");
  await mkdir(skill, { recursive: true });
  await writeFile(join(skill, "SKILL.md"), "---\nname: release\ndescription: Releases.\n---\nDo it.\n");
  await growing.service.reload();
  await expect
    .poll(() => notices.toSorted(), { timeout: 5_000 })
    .toEqual(["prompts/list_changed", "subscriptions/acknowledged", "tools/list_changed"]);
  const { tools } = (await growing.send("/mcp", modernRequest("tools/list"))).body.result;
  expect(tools.map(({ name }: { name: string }) => name)).toContain("workflow_newer");
  expect(await prompts()).toMatchObject([{ name: "release" }]);
  leaving.abort();
  await listening;
  await old.close();
});

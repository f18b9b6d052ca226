import { expect, test } from "vitest";
import { createApprovals } from "../../agents/approvals/approvals.ts";
import { InMemorySessionStore } from "../../stores/memory/memory-store.ts";
import { createScriptedModel } from "../../testing/scripted-model.ts";
import { createTestAgent } from "../../testing/test-runtime.ts";
import { createTestService } from "../../testing/test-service.ts";
import { serveForTest, serveForTests } from "../testing/serve-for-tests.ts";
import { openSocket } from "../testing/socket-client.ts";

const served = serveForTests({
  files: {
    "src/agents/desk.ts": `export const triggers = { webhook: true };
const look = { name: "look", description: "Looks.", input: { type: "object" }, execute: () => "seen" };
export default { kind: "kit.agent", describe: async () => ({ tools: [look] }) };
`,
  },
  openService: ({ root }) =>
    createTestService({
      root,
      model: createScriptedModel(({ prompt, tools = [] }) => {
        const last = prompt.at(-1);
        const asked = JSON.stringify(prompt.findLast(({ role }) => role === "user")?.content);
        if (last?.role === "tool" && !JSON.stringify(last.content).includes("not what locate takes"))
          return { text: `It said ${JSON.stringify(last.content[0])}` };
        const input = asked.includes("badly") && last?.role !== "tool" ? { exact: "yes" } : { exact: true };
        return tools.some(({ name }) => name === "locate")
          ? { toolCalls: [{ name: "locate", input }] }
          : { text: "There is no such tool." };
      }),
    }),
});

const locate = {
  name: "locate",
  description: "Where the person is.",
  input_schema: { type: "object", properties: { exact: { type: "boolean" } }, required: ["exact"] },
};

interface Waiting {
  readonly approval_id: string;
  readonly kind?: string;
  readonly args: unknown;
  readonly allow_rules?: unknown;
  readonly requested_at: string;
  readonly expires_at?: string;
}

async function waitingAt(id: string): Promise<Waiting> {
  const list = async (): Promise<Waiting[]> =>
    (await served.send(`/agents/desk/${id}/approvals`)).body.approvals;
  await expect.poll(list, { timeout: 20_000 }).toHaveLength(1);
  const [call] = await list();
  if (call === undefined) throw new Error("No call waits.");
  return call;
}

/** Reads the result of a dispatched input. */
async function replyOf(
  dispatchId: string,
): Promise<{ status: string; result?: { text: string }; error?: { message: string } }> {
  await expect
    .poll(async () => (await served.send(`/dispatches/${dispatchId}`)).body.status, { timeout: 20_000 })
    .toMatch(/completed|failed/);
  return (await served.send(`/dispatches/${dispatchId}`)).body;
}

test("a call of the caller's tool waits until a decision brings its result, for this prompt only", async () => {
  const { body: sent } = await served.send("/agents/desk/one/dispatch", {
    body: { input: "Where?", tools: [locate] },
  });
  const call = await waitingAt("one");
  expect(call).toMatchObject({ kind: "caller", args: { exact: true }, tool: "locate" });
  expect(call.allow_rules).toBeUndefined();
  expect(Date.parse(call.expires_at ?? "") - Date.parse(call.requested_at)).toBe(3_600_000);
  const path = `/agents/desk/one/approvals/${call.approval_id}`;
  const inbox = await served.send("/waiting");
  expect(inbox.body.items).toMatchObject([{ kind: "call", approval: { kind: "caller" } }]);
  expect(await served.send(path, { body: { approved: true } })).toMatchObject({
    status: 400,
    body: { error: { message: "A call of locate is answered with its result." } },
  });
  expect(await served.send(path, { body: { approved: false, result: 1 } })).toMatchObject({ status: 400 });
  expect(await served.send(path, { body: { approved: true, args: {}, result: 1 } })).toMatchObject({
    status: 400,
  });
  expect(
    await served.send(path, { body: { approved: true, result: { city: "Oslo", content: [1] } } }),
  ).toMatchObject({ status: 200 });
  expect(await served.send(path, { body: { approved: true, result: "again" } })).toMatchObject({
    status: 404,
  });
  const { result } = await replyOf(sent.dispatch_id);
  expect(result?.text).toContain(String.raw`{\"city\":\"Oslo\",\"content\":[1]}`);
  expect(result?.text).not.toContain("error");
  const next = await served.send("/agents/desk/one", { body: { message: "Where?" } });
  expect(next.body.result.text).toBe("There is no such tool.");
});

test("the model reads the error of a call that its caller could not run, and a prompt takes tools like a dispatch", async () => {
  const asking = served.send("/agents/desk/two", { body: { message: "Where?", tools: [locate] } });
  const { approval_id } = await waitingAt("two");
  await served.send(`/agents/desk/two/approvals/${approval_id}`, {
    body: { approved: false, reason: "No signal." },
  });
  const { body } = await asking;
  expect(body.result.text).toMatch(/error-text.*No signal\./);
});

test("arguments that the caller's schema refuses go back to the model, and not to the caller", async () => {
  const { body: sent } = await served.send("/agents/desk/three/dispatch", {
    body: { input: "badly", tools: [locate] },
  });
  const call = await waitingAt("three");
  expect(call.args).toEqual({ exact: true });
  await served.send(`/agents/desk/three/approvals/${call.approval_id}`, {
    body: { approved: true, result: "Rome" },
  });
  expect((await replyOf(sent.dispatch_id)).result?.text).toContain("Rome");
});

function largeProperties(count: number): object {
  return Object.fromEntries(Array.from({ length: count }, (_, at) => [`property_${at}`, { type: "string" }]));
}

test("schemas that take long to check are refused, each and together, before they hold up the server", async () => {
  const schema = { properties: largeProperties(1_000) };
  const tools = Array.from({ length: 8 }, (_, at) => ({ name: `tool_${at}`, input_schema: schema }));
  const reply = await served.send("/agents/desk/large", { body: { message: "Where?", tools } });
  expect([reply.status, reply.body.error.message]).toEqual([
    400,
    "The tools of the request have more than 262,144 characters of JSON.",
  ]);
});

test.each([
  ["a name of the agent's", { ...locate, name: "look" }, 'The agent has a tool named "look" of its own.'],
  ["a name of kit's", { ...locate, name: "bash" }, 'The agent has a tool named "bash" of its own.'],
  [
    "a schema of another value",
    { ...locate, input_schema: { type: "string" } },
    "must be the schema of an object",
  ],
  [
    "an invalid schema",
    { ...locate, input_schema: { type: "objekt" } },
    "`input_schema` is not a valid JSON Schema",
  ],
  [
    "a schema that takes long to check",
    { ...locate, input_schema: { properties: largeProperties(2_000) } },
    'The tool "locate": `input_schema` has more than 65,536 characters of JSON.',
  ],
  [
    "a name for an MCP server's",
    { ...locate, name: "mcp__github__list" },
    "is a name for a tool of an MCP server.",
  ],
  [
    "a name of kit's for MCP servers",
    { ...locate, name: "mcp_execute" },
    "is a name for a tool of an MCP server.",
  ],
  ["a wrong name", { ...locate, name: "1 2" }, "must be letters, digits"],
])("a tool with %s is refused", async (_, tool, message) => {
  const reply = await served.send("/agents/desk/four", { body: { message: "Where?", tools: [tool] } });
  expect(reply.status).toBe(400);
  expect(JSON.stringify(reply.body)).toContain(JSON.stringify(message).slice(1, -1));
  const { body } = await served.send("/agents/desk/four/dispatch", {
    body: { input: "Where?", tools: [tool] },
  });
  const failed = body.error ?? (await replyOf(body.dispatch_id)).error;
  expect(JSON.stringify(failed)).toContain(JSON.stringify(message).slice(1, -1));
});

test("a sender who may prompt answers a call of the caller's tool, over HTTP and a WebSocket, and an approver does not", async () => {
  let allowed: readonly string[] = ["agent.prompt", "agent.dispatch", "agent.read"];
  const guarded = await serveForTest({ authorize: ({ action }) => allowed.includes(action) });
  const callOf = async (id: string, input: string): Promise<string> => {
    await guarded.send(`/agents/careful/${id}/dispatch`, { body: { input, tools: [{ name: "locate" }] } });
    const list = async (): Promise<Waiting[]> =>
      (await guarded.send(`/agents/careful/${id}/approvals`)).body.approvals;
    await expect.poll(list, { timeout: 20_000 }).toHaveLength(1);
    return (await list())[0]?.approval_id ?? "";
  };
  const decide = async (id: string, approval: string, body: object): Promise<number> =>
    (await guarded.send(`/agents/careful/${id}/approvals/${approval}`, { body })).status;
  const [first, second] = [await callOf("one", "call locate {}"), await callOf("two", "call locate {}")];
  const paid = await callOf("three", "pay 3");
  expect(await decide("three", paid, { approved: true })).toBe(403);
  allowed = ["agent.approve", "agent.read"];
  expect(await decide("one", first, { approved: true, result: "Oslo" })).toBe(403);
  allowed = ["agent.prompt", "agent.read"];
  expect(await decide("one", first, { approved: true, result: "Oslo" })).toBe(200);
  const client = await openSocket(`${guarded.url}/agents/careful/two`);
  client.send({
    type: "approve",
    request_id: "a",
    approval_id: second,
    approved: true,
    result: { city: "Rome" },
  });
  expect((await client.until("result")).at(-1)).toMatchObject({
    request_id: "a",
    result: { approved: true },
  });
  const history = async (): Promise<string> =>
    JSON.stringify((await guarded.send("/agents/careful/two/history")).body);
  await expect.poll(history, { timeout: 20_000 }).toContain("Rome");
  client.socket.close();
});

test("an instance has at most a hundred calls that wait for their callers", async () => {
  const dispatch = (session: string, at = "full") => {
    const body = { input: "Where?", tools: [locate], session };
    const headers = { "idempotency-key": session };
    return served.send(`/agents/desk/${at}/dispatch`, { body, headers });
  };
  const total = async (): Promise<number> =>
    (await served.send("/agents/desk/full/approvals")).body.approvals.length;
  for (let at = 0; at < 100; at += 1) expect((await dispatch(`s${at}`)).status).toBe(202);
  await expect.poll(total, { timeout: 40_000 }).toBe(100);
  const refused = await dispatch("late");
  expect([refused.status, refused.body.error.message]).toEqual([
    429,
    "100 calls of callers' tools wait in this instance for their results, the most that one instance may have.",
  ]);
  const prompt = { body: { message: "Where?", tools: [locate], session: "other" } };
  expect((await served.send("/agents/desk/full", prompt)).status).toBe(429);
  expect((await dispatch("s1")).status).toBe(202);
  expect((await dispatch("late", "empty")).status).toBe(202);
  const plain = { body: { message: "Where?", session: "plain" } };
  expect((await served.send("/agents/desk/full", plain)).status).toBe(200);
  const [call] = (await served.send("/agents/desk/full/approvals")).body.approvals;
  const answer = { body: { approved: false } };
  await served.send(`/agents/desk/full/approvals/${call.approval_id}`, answer);
  expect((await dispatch("late")).status).toBe(202);
});

test("the log keeps of a long result what the model reads", async () => {
  const store = new InMemorySessionStore();
  const approvals = createApprovals();
  const model = createScriptedModel([{ toolCalls: [{ name: "locate", input: {} }] }, { text: "Read." }]);
  const session = createTestAgent(model, {}, { store, approvals }).session("long");
  const done = session.prompt("Where?", { callerTools: [{ name: "locate" }] });
  await expect.poll(() => approvals.list()).toHaveLength(1);
  const [{ approval_id = "" } = {}] = await approvals.list();
  await approvals.decide(approval_id, { approved: true, result: { found: "x".repeat(1_000_000) } });
  expect((await done).text).toBe("Read.");
  const entries = await store.read({ agent: "tester", instance_id: "1", session: "long" });
  expect(JSON.stringify(entries).length).toBeLessThan(110_000);
  const texts = JSON.stringify(await session.history()).match(/\d+ characters cut/g);
  // Once: a cut of what was cut already would tell another number.
  expect(texts).toEqual(["950112 characters cut"]);
});

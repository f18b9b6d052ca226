import { afterAll, beforeAll, expect, test } from "vitest";
import { KitClient } from "../../client/index.ts";
import { serveForTest, serveForTests } from "../testing/serve-for-tests.ts";

const agent = (profile: string): string =>
  `export const triggers = { webhook: true };\nexport default { kind: "kit.agent", describe: async () => (${profile}) };\n`;

const lookTool = `{ name: "look", description: "Looks.", input: { type: "object", properties: {} }, execute: () => "seen" }`;

let client: KitClient;
const served = serveForTests({
  files: {
    "AGENTS.md": "# Rules\n\nAmounts are whole cents.\n",
    "CLAUDE.md": null,
    "src/agents/looker.ts": agent(
      `{ instructions: "You look. The key is open-sesame-1234.", tools: [${lookTool}], modelSettings: { temperature: 0.5 } }`,
    ),
    "src/agents/brief.ts": agent(
      `{ compaction: { contextWindowTokens: 102, reserveTokens: 100, keepRecentTokens: 1 } }`,
    ),
    "src/agents/hooked.ts": agent(
      `{ hooks: { beforeModel: ({ prompt }) => ({ prompt: [...prompt, { role: "user", content: [{ type: "text", text: "From the hook." }] }] }) } }`,
    ),
  },
  env: { SERVICE_TOKEN: "open-sesame-1234" },
});
beforeAll(() => {
  client = new KitClient({ baseUrl: served.url });
});
afterAll(() => expect(served.errors).toEqual([]));

async function turnsOf(agentName: string, id: string) {
  const { operations } = await client.agents.operations(agentName, { id });
  const turns = [];
  for (const { operation_id, first_index } of [...operations].reverse()) {
    const { events } = await client.agents.operationEvents(agentName, { id, operation_id, first_index });
    for (const event of events) if (event.type === "turn_request") turns.push(event);
  }
  return turns;
}

test("a turn shows the system prompt, messages, tools and settings as they were sent, and the answer", async () => {
  await client.agents.invoke("looker", { id: "exact", message: "First." });
  await client.agents.invoke("looker", { id: "exact", message: "Second." });
  const [first, second] = await turnsOf("looker", "exact");
  const turn = await client.agents.turn("looker", { id: "exact", turn_id: second?.turn_id ?? "" });
  expect(turn.messages.map(({ role, content }) => [role, content[0]?.text])).toEqual([
    ["system", expect.stringContaining("Amounts are whole cents.")],
    ["user", "First."],
    ["assistant", "First."],
    ["user", "Second."],
  ]);
  expect(turn.tools?.find(({ name }) => name === "look")).toMatchObject({
    description: "Looks.",
    input_schema: { type: "object" },
  });
  expect(turn.settings).toMatchObject({ temperature: 0.5 });
  expect(turn.answer).toEqual({ role: "assistant", content: [{ type: "text", text: "Second." }] });
  expect(turn).toMatchObject({ purpose: "agent", attempt: 1, finish_reason: "stop", usage: { input: 3 } });
  expect(turn.missing).toBeUndefined();
  const earlier = await client.agents.turn("looker", { id: "exact", turn_id: first?.turn_id ?? "" });
  expect(earlier.messages).toHaveLength(2);
  // One system prompt and one list of tools for both turns.
  expect(second?.head).toBe(first?.head);
});

test("a turn of a compaction shows the exact prompt and answer, with secrets masked", async () => {
  for (const at of [1, 2, 3]) {
    const message = `Message ${at} with open-sesame-1234. ${"word ".repeat(200)}`;
    await client.agents.invoke("brief", { id: "shortened", message });
  }
  const request = (await turnsOf("brief", "shortened")).find(({ purpose }) => purpose === "compaction");
  const turn = await client.agents.turn("brief", { id: "shortened", turn_id: request?.turn_id ?? "" });
  expect(turn).toMatchObject({ purpose: "compaction", tools: [], settings: { maxOutputTokens: 100 } });
  expect(turn.missing).toBeUndefined();
  expect(turn.messages.map(({ role }) => role)).toEqual(["system", "user"]);
  expect(turn.messages[0]?.content[0]?.text).toContain("a colleague needs");
  const promptText = String(turn.messages[1]?.content[0]?.text);
  expect(promptText).toMatch(/\[user\] Message 1 with .*\n.*Summarize the conversation above/s);
  expect(promptText).not.toContain("open-sesame-1234");
  // The echo model answers with the text that it was sent.
  expect(turn.answer?.content[0]?.text).toBe(promptText);
});

test("a long prompt is split into pages, the newest messages first", async () => {
  const newest = await client.agents.turn("looker", {
    id: "exact",
    turn_id: (await turnsOf("looker", "exact")).at(-1)?.turn_id ?? "",
    limit: 3,
  });
  expect(newest.messages.map(({ position }) => position)).toEqual([2, 3, 4]);
  expect(newest).toMatchObject({ message_count: 4, next_before: 2 });
  const rest = await client.agents.turn("looker", { id: "exact", turn_id: newest.turn_id, before: 2 });
  expect(rest.messages.map(({ role }) => role)).toEqual(["system"]);
  expect(rest.next_before).toBeUndefined();
});

test("a prompt contains the messages that a hook adds, which are stored once for each turn", async () => {
  for (const message of ["One.", "Two."]) await client.agents.invoke("hooked", { id: "h", message });
  const turns = await turnsOf("hooked", "h");
  const turn = await client.agents.turn("hooked", { id: "h", turn_id: turns[1]?.turn_id ?? "" });
  expect(turn.messages.slice(1).map(({ content }) => content[0]?.text)).toEqual([
    "One.",
    "From the hook.",
    "Two.",
    "From the hook.",
  ]);
});

test("a turn whose model failed shows its prompt and the failure", async () => {
  await served.send("/agents/echo/failing", { body: { message: "fail" } });
  const [request] = await turnsOf("echo", "failing");
  const turn = await client.agents.turn("echo", { id: "failing", turn_id: request?.turn_id ?? "" });
  expect(turn.messages.at(-1)?.content[0]?.text).toBe("fail");
  expect(turn.answer).toBeUndefined();
  expect(turn.errors?.at(-1)).toMatchObject({ will_retry: false });
});

test("no prompt contains a secret of the server", async () => {
  const { body } = await served.send(`/agents/looker/exact/operations?limit=1`);
  expect(body.operations).toHaveLength(1);
  const [request] = await turnsOf("looker", "exact");
  const text = JSON.stringify(
    await client.agents.turn("looker", { id: "exact", turn_id: request?.turn_id ?? "" }),
  );
  expect(text).toContain("You look.");
  expect(text).not.toContain("open-sesame-1234");
});

test("operations are listed newest first, in pages, optionally of one session", async () => {
  for (const [session, message] of [
    ["a", "1"],
    ["b", "2"],
    ["a", "3"],
  ] as const)
    await client.agents.invoke("echo", { id: "listed", session, message });
  const newest = await client.agents.operations("echo", { id: "listed", limit: 2 });
  expect(newest.operations.map(({ message }) => message)).toEqual(["3", "2"]);
  expect(newest.operations[0]).toMatchObject({ session: "a", kind: "prompt", is_error: false });
  const older = await client.agents.operations("echo", { id: "listed", before: newest.next_before });
  expect(older.operations.map(({ message }) => message)).toEqual(["1"]);
  expect(older.operations[0]?.last_index).toBeGreaterThan(older.operations[0]?.first_index ?? 0);
  expect(older.next_before).toBeUndefined();
  const ofB = await client.agents.operations("echo", { id: "listed", session: "b" });
  expect(ofB.operations.map(({ message }) => message)).toEqual(["2"]);
});

test("the events of an operation are listed in pages, without those of others", async () => {
  const [newest, older] = (await client.agents.operations("echo", { id: "listed" })).operations;
  const target = { id: "listed", operation_id: older?.operation_id ?? "" };
  const allEvents = await client.agents.operationEvents("echo", target);
  expect(new Set(allEvents.events.map(({ operation_id }) => operation_id))).toEqual(
    new Set([older?.operation_id]),
  );
  expect(allEvents.events[0]?.index).toBe(older?.first_index);
  const page = await client.agents.operationEvents("echo", { ...target, limit: 2 });
  expect(page.events).toEqual(allEvents.events.slice(0, 2));
  const next = await client.agents.operationEvents("echo", { ...target, after: page.next_after });
  expect([...page.events, ...next.events]).toEqual(allEvents.events);
  expect(newest?.operation_id).not.toBe(older?.operation_id);
});

test("an unknown turn or operation is not found", async () => {
  const missing = { status: 404, body: { error: { type: "not_found" } } };
  expect(await served.send("/agents/echo/listed/turns/turn_none")).toMatchObject(missing);
  expect(await served.send("/agents/echo/listed/operations/op_none/events")).toMatchObject(missing);
  expect(await served.send("/agents/echo/listed/turns/x?limit=0")).toMatchObject({ status: 400 });
});

async function forkOf(id: string, fork: Omit<Parameters<typeof client.agents.fork>[1], "id">) {
  const forked = await client.agents.fork("looker", { id, ...fork });
  const record = await served.service.engine.awaitDispatch(forked.dispatch_id);
  expect(record).toMatchObject({ status: "completed" });
  return forked;
}

test("a turn is repeated in a new session, which names its origin", async () => {
  const [first, second] = await turnsOf("looker", "exact");
  const forked = await forkOf("exact", {
    turn_id: second?.turn_id ?? "",
    session: "again",
    model: "first/a",
  });
  const [operation] = (await client.agents.operations("looker", { id: "exact", session: "again" }))
    .operations;
  expect(operation).toMatchObject({
    operation_id: forked.operation_id,
    message: "Second.",
    forked_from: { session: "default", turn_id: second?.turn_id },
  });
  expect(operation?.resumed).toBeUndefined();
  const { messages } = await client.agents.historyPage("looker", { id: "exact", session: "again" });
  expect(messages.map(({ content }) => content[0]?.text)).toEqual(["First.", "First.", "Second.", "Second."]);
  const newest = await turnsOf("looker", "exact");
  expect(newest.at(-1)).toMatchObject({ session: "again", model: "first/a" });
  // A turn within an answer is forked as well, and the session goes on as any other.
  await client.agents.invoke("looker", { id: "exact", session: "again", message: "Third." });
  const before = await client.agents.historyPage("looker", { id: "exact" });
  expect(before.messages).toHaveLength(4);
  expect(first?.turn_id).not.toBe(second?.turn_id);
});

test("a fork leaves out a rule of the project as long as its session exists", async () => {
  const [, second] = await turnsOf("looker", "exact");
  const turn_id = second?.turn_id ?? "";
  const { receipt = [] } = await client.agents.turn("looker", { id: "exact", turn_id });
  expect(receipt.map(({ file }) => file)).toContain("AGENTS.md");
  await forkOf("exact", { turn_id, session: "free", without: ["AGENTS.md"] });
  await client.agents.invoke("looker", { id: "exact", session: "free", message: "Third." });
  const { operations } = await client.agents.operations("looker", { id: "exact", session: "free" });
  expect(operations).toHaveLength(2);
  for (const { operation_id } of operations) {
    const { events } = await client.agents.operationEvents("looker", { id: "exact", operation_id });
    const request = events.find(({ type }) => type === "turn_request");
    const turn = await client.agents.turn("looker", { id: "exact", turn_id: request?.turn_id ?? "" });
    expect(JSON.stringify(turn.messages)).not.toContain("whole cents");
    expect(turn.receipt?.map(({ file }) => file)).not.toContain("AGENTS.md");
    expect(JSON.stringify(turn.messages[0])).toContain("You look.");
  }
});

test("a fork that is not possible is refused with the reason", async () => {
  const [first] = await turnsOf("looker", "exact");
  const path = `/agents/looker/exact/turns/${first?.turn_id}/fork`;
  expect(await served.send(path, { body: { session: "default" } })).toMatchObject({
    status: 409,
    body: { error: { type: "conflict" } },
  });
  const unknown = await served.send(path, { body: { without: ["AGENT.md"] } });
  expect(unknown).toMatchObject({ status: 400, body: { error: { type: "invalid_request" } } });
  expect(unknown.body.error.message).toContain("did you mean AGENTS.md?");
  expect(await served.send(path, { body: { without: ["src/agents/looker.ts"] } })).toMatchObject({
    status: 400,
  });
  expect(await served.send("/agents/looker/exact/turns/none/fork", { body: {} })).toMatchObject({
    status: 404,
  });
  expect(await served.send(path, { body: { model: 7 } })).toMatchObject({ status: 400 });
});

test("a caller who may prompt can fork, and needs a separate right to leave out rules", async () => {
  const actions: string[] = [];
  const guarded = await serveForTest({
    authorize: ({ action }) => {
      actions.push(action);
      return action !== "agent.omit_rules";
    },
  });
  const guardedClient = new KitClient({ baseUrl: guarded.url });
  await guardedClient.agents.invoke("echo", { id: "g", message: "Hello." });
  const [operation] = (await guardedClient.agents.operations("echo", { id: "g" })).operations;
  const { events } = await guardedClient.agents.operationEvents("echo", {
    id: "g",
    operation_id: operation?.operation_id ?? "",
  });
  const turn_id = events.find(({ type }) => type === "turn_request")?.turn_id ?? "";
  actions.length = 0;
  await expect(
    guardedClient.agents.fork("echo", { id: "g", turn_id, without: ["CLAUDE.md"] }),
  ).rejects.toMatchObject({
    code: "forbidden",
  });
  expect(actions).toEqual(["agent.prompt", "agent.read", "agent.omit_rules"]);
  await guardedClient.agents.fork("echo", { id: "g", turn_id });
});

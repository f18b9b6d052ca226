import { afterAll, beforeAll, expect, test } from "vitest";
import { KitClient } from "../../client/index.ts";
import { serveForTests } from "../testing/serve-for-tests.ts";
import { openSocket } from "../testing/socket-client.ts";

const files = {
  "AGENTS.md": "# Rules\n\nBe brief.\n\n## Money\n\nAmounts are whole cents.\n",
  "CLAUDE.md": null,
  ".cursor/rules/api.mdc": "---\nglobs: api/**/*.ts\n---\nNo classes.\n",
  "src/agents/default.ts": `export const triggers = { webhook: true };\nexport default { kind: "kit.agent", describe: () => ({}) };\n`,
};

let client: KitClient;
let refused: readonly string[] = [];
const served = serveForTests({
  files,
  authorize: ({ action }) => !refused.includes(action),
});
beforeAll(() => {
  client = new KitClient({ baseUrl: served.url });
});
afterAll(() => expect(served.errors).toEqual([]));

/** The newest turn of an instance. */
async function turnOf(agent: string, id: string, session = "default") {
  const { operations } = await client.agents.operations(agent, { id, session });
  const { events } = await client.agents.operationEvents(agent, {
    id,
    operation_id: operations[0]?.operation_id ?? "",
  });
  const turn_id = events.find(({ type }) => type === "turn_request")?.turn_id ?? "";
  return await client.agents.turn(agent, { id, turn_id });
}

test("a prompt leaves out rules of the project, and its turns say which", async () => {
  const omit_rules = ["AGENTS.md#money", ".cursor/rules/api.mdc"];
  await client.agents.invoke("echo", { id: "without", message: "Hello.", omit_rules });
  const turn = await turnOf("echo", "without");
  expect(turn.left_out).toEqual(omit_rules);
  expect(JSON.stringify(turn.messages)).toContain("Be brief.");
  expect(JSON.stringify(turn.messages)).not.toContain("whole cents");
  const reply = await served.send("/agents/echo/unknown", {
    body: { message: "x", omit_rules: ["AGENTS.md#mony"] },
  });
  expect(reply).toMatchObject({ status: 400, body: { error: { type: "invalid_request" } } });
  expect(reply.body.error.message).toContain("did you mean AGENTS.md#money?");
});

test("a dispatch leaves out rules of the project", async () => {
  const input = { id: "later", input: "Hello.", omit_rules: ["AGENTS.md#money"] };
  const { dispatch_id } = await client.agents.dispatch("echo", input);
  await served.service.engine.awaitDispatch(dispatch_id);
  expect((await turnOf("echo", "later")).left_out).toEqual(["AGENTS.md#money"]);
});

test("a sender who may prompt may not begin a session with what another one holds, on any route", async () => {
  refused = ["agent.read"];
  const fork = { before: "op_1" };
  const body = { message: "Hello.", fork };
  for (const path of ["/agents/echo/denied", "/prompt/denied", "/prompt/denied/events"])
    expect([path, await served.send(path, { body })]).toMatchObject([path, { status: 403 }]);
  const input = { input: "Hello.", fork };
  expect(await served.send("/agents/echo/denied/dispatch", { body: input })).toMatchObject({ status: 403 });
  const socket = await openSocket(`${served.url}/agents/echo/socket`);
  socket.send({ type: "prompt", request_id: "1", ...body });
  expect((await socket.until("error")).at(-1)).toMatchObject({ error: { type: "forbidden" } });
  socket.socket.close();
  refused = [];
});

test("a sender who may prompt may not leave out rules, on any route", async () => {
  refused = ["agent.omit_rules"];
  const body = { message: "Hello.", omit_rules: ["AGENTS.md"] };
  for (const path of ["/agents/echo/denied", "/prompt/denied", "/prompt/denied/events"]) {
    expect([path, await served.send(path, { body })]).toMatchObject([path, { status: 403 }]);
  }
  expect(await served.send("/prompt/denied", { body: { ...body, omit_rules: [] } })).toMatchObject({
    status: 200,
  });
  const input = { input: "Hello.", omit_rules: ["AGENTS.md"] };
  expect(await served.send("/agents/echo/denied/dispatch", { body: input })).toMatchObject({ status: 403 });
  const socket = await openSocket(`${served.url}/agents/echo/socket`);
  socket.send({ type: "prompt", request_id: "1", ...body });
  expect((await socket.until("error")).at(-1)).toMatchObject({
    error: { type: "forbidden" },
    request_id: "1",
  });
  socket.socket.close();
  refused = [];
});

test("a fork leaves out a section, and a rule that only a later turn would show", async () => {
  await client.agents.invoke("echo", { id: "forked", message: "Hello." });
  const { turn_id } = await turnOf("echo", "forked");
  const without = ["AGENTS.md#money", ".cursor/rules/api.mdc"];
  const forked = await client.agents.fork("echo", { id: "forked", turn_id, session: "free", without });
  await served.service.engine.awaitDispatch(forked.dispatch_id);
  const turn = await turnOf("echo", "forked", "free");
  expect(turn.left_out).toEqual(without);
  expect(turn.receipt?.map(({ id }) => id)).toContain("AGENTS.md");
  expect(JSON.stringify(turn.messages)).not.toContain("whole cents");
});

test("the usage of rules covers the sessions that the sender may read", async () => {
  const before = await client.guidelines.usage({ agent: "echo" });
  await client.agents.invoke("echo", { id: "counted", message: "Hello." });
  const after = await client.guidelines.usage({ agent: "echo" });
  const turnsOf = ({ rules }: typeof after, id: string) => rules.find(({ rule }) => rule === id);
  expect(after.sessions).toBe(before.sessions + 1);
  expect(turnsOf(after, "AGENTS.md#money")?.turns).toBe((turnsOf(before, "AGENTS.md#money")?.turns ?? 0) + 1);
  expect(turnsOf(after, ".cursor/rules/api.mdc")).toMatchObject({ turns: 0, turns_left_out: 2 });
  expect(await client.guidelines.usage({ agent: "absent" })).toMatchObject({ sessions: 0, turns: 0 });
  const later = new Date(Date.now() + 60_000).toISOString();
  expect(await client.guidelines.usage({ since: later })).toMatchObject({ turns: 0 });
  expect(await served.send("/api/guidelines/usage?since=soon")).toMatchObject({ status: 400 });
  refused = ["agent.read"];
  expect(await client.guidelines.usage()).toMatchObject({ sessions: 0, turns: 0 });
  refused = ["project.read"];
  await expect(client.guidelines.usage()).rejects.toMatchObject({ code: "forbidden" });
  refused = [];
});

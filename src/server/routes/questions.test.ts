import { expect, test } from "vitest";
import { serveForTests } from "../testing/serve-for-tests.ts";
import { openSocket } from "../testing/socket-client.ts";

const files = {
  "src/agents/host.ts": `export const triggers = { webhook: true };
const schema = { type: "object", properties: { guests: { type: "integer", minimum: 1 } }, required: ["guests"] };
const book = {
  name: "book",
  description: "Books a table.",
  input: { type: "object" },
  execute: async ({ place }, { ask }) => JSON.stringify(await ask({ message: "For how many at " + place + "?", schema })),
};
export default { kind: "kit.agent", describe: async () => ({ tools: [book] }) };
`,
};

let denied: string | undefined;
const served = serveForTests({ files, authorize: ({ action }) => action !== denied });

interface Waiting {
  readonly approval_id: string;
  readonly schema: object;
}

async function waitingAt(id: string): Promise<Waiting> {
  const list = async (): Promise<Waiting[]> =>
    (await served.send(`/agents/host/${id}/approvals`)).body.approvals;
  await expect.poll(list, { timeout: 20_000 }).toHaveLength(1);
  const [call] = await list();
  if (call === undefined) throw new Error("No call waits.");
  return call;
}

async function dispatch(id: string): Promise<string> {
  const body = { input: `call book {"place":"Ada's"}` };
  return (await served.send(`/agents/host/${id}/dispatch`, { body })).body.dispatch_id;
}

/** Returns the history once the work has ended: it has the result of the tool. */
async function resultAt(id: string, dispatchId: string): Promise<string> {
  const status = async () => (await served.send(`/dispatches/${dispatchId}`)).body.status;
  await expect.poll(status, { timeout: 20_000 }).toBe("completed");
  return JSON.stringify((await served.send(`/agents/host/${id}/history`)).body);
}

test("a question waits in every inbox, and only an answer of its schema, or a refusal, ends it", async () => {
  const dispatchId = await dispatch("one");
  const { approval_id } = await waitingAt("one");
  const question = { kind: "question", approval_id, tool: "book", message: "For how many at Ada's?" };
  expect((await served.send("/waiting")).body.items).toMatchObject([{ kind: "call", approval: question }]);
  expect((await served.send("/approvals?agent=host")).body.approvals).toMatchObject([question]);
  const path = `/agents/host/one/approvals/${approval_id}`;
  const refused = await served.send(path, { body: { approved: true, result: { guests: 0 } } });
  expect(refused).toMatchObject({
    status: 400,
    body: {
      error: {
        message: "The answer is not what book asks for: see `schema` of the question, which still waits.",
        meta: { issues: [{ path: "body.result", message: expect.stringContaining("guests") }] },
      },
    },
  });
  expect(await served.send(path, { body: { approved: true } })).toMatchObject({ status: 400 });
  const long = { approved: true, result: { guests: 1, more: "x".repeat(70_000) } };
  expect((await served.send(path, { body: long })).body.error.message).toContain("65,536");
  expect(
    await served.send(path, { body: { approved: true, args: {}, result: { guests: 1 } } }),
  ).toMatchObject({
    status: 400,
  });
  expect((await served.send("/waiting")).body.total).toBe(1);
  expect(await served.send(path, { body: { approved: true, result: { guests: 4 } } })).toMatchObject({
    status: 200,
  });
  expect(await served.send(path, { body: { approved: true, result: { guests: 5 } } })).toMatchObject({
    status: 404,
  });
  expect(await resultAt("one", dispatchId)).toContain(String.raw`\"value\":{\"guests\":4}`);
  expect((await served.send("/waiting")).body.total).toBe(0);
});

test("a question is declined with a reason, and ends with its work when that is cancelled", async () => {
  const declined = await dispatch("two");
  const { approval_id } = await waitingAt("two");
  const body = { approved: false, reason: "We stay at home." };
  await served.send(`/agents/host/two/approvals/${approval_id}`, { body });
  expect(await resultAt("two", declined)).toContain("We stay at home.");
  const cancelled = await dispatch("three");
  const call = await waitingAt("three");
  await served.send(`/dispatches/${cancelled}/cancel`, { method: "POST" });
  await expect
    .poll(async () => (await served.send("/agents/host/three/approvals")).body.approvals, { timeout: 20_000 })
    .toEqual([]);
  const late = { body: { approved: true, result: { guests: 1 } } };
  expect(await served.send(`/agents/host/three/approvals/${call.approval_id}`, late)).toMatchObject({
    status: 404,
  });
});

test("streams tell of a question and of its end, and a WebSocket answers it", async () => {
  const target = { agent: "host", instance_id: "four", session: "default" };
  await dispatch("four");
  const { approval_id } = await waitingAt("four");
  const client = await openSocket(`${served.url}/agents/host/four`);
  client.send({ type: "approve", request_id: "a", approval_id, approved: true, result: { guests: "two" } });
  expect((await client.until("error")).at(-1)).toMatchObject({ request_id: "a" });
  client.send({ type: "approve", request_id: "b", approval_id, approved: true, result: { guests: 2 } });
  expect((await client.until("result")).at(-1)).toMatchObject({ request_id: "b" });
  client.socket.close();
  const events: object[] = [];
  for await (const event of served.service.events(target, {})) {
    if (event.type.startsWith("approval")) events.push(event);
    if (event.type === "tool_end") break;
  }
  const ids = { approval_id, tool: "book" };
  expect(events).toMatchObject([
    { ...ids, kind: "question", message: "For how many at Ada's?", schema: { type: "object" } },
    { ...ids, type: "approval", approved: true },
  ]);
});

test("a question belongs to its instance, and to those who may approve there", async () => {
  await dispatch("five");
  const { approval_id } = await waitingAt("five");
  const answer = async (instance: string): Promise<number> => {
    const body = { approved: true, result: { guests: 1 } };
    return (await served.send(`/agents/host/${instance}/approvals/${approval_id}`, { body })).status;
  };
  denied = "agent.approve";
  expect(await answer("five")).toBe(403);
  denied = undefined;
  expect([await answer("six"), await answer("five")]).toEqual([404, 200]);
});

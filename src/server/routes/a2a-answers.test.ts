import type { Task } from "@a2a-js/sdk";
import type { Client } from "@a2a-js/sdk/client";
import { afterAll, expect, test } from "vitest";
import { answerTo, callsOf, connectA2a, idOf, messageOf, part, seen, send } from "../testing/a2a-client.ts";
import { serveForTests } from "../testing/serve-for-tests.ts";

const agent = (tool: string): string => `export const triggers = { webhook: true };
const schema = { type: "object", properties: { guests: { type: "integer", minimum: 1 } }, required: ["guests"] };
const weather = { name: "weather", description: "Tells it.", input: { type: "object" }, ${tool} };
export default { kind: "kit.agent", describe: async () => ({ tools: [weather] }) };
`;

const served = serveForTests({
  a2a: { approvals: "sender" },
  files: {
    "src/agents/pair.ts": agent("needsApproval: true, execute: () => 'sun'"),
    "src/agents/host.ts": agent(`execute: async (_, { ask }) => {
    const { action, value } = await ask({ message: "For how many?", schema });
    return action + (value?.guests ?? "");
  }`),
  },
});
afterAll(() => expect(served.errors).toEqual([]));

/** A task of `weather twice`, when both calls wait. */
async function askedTwice(client: Client, contextId: string): Promise<Task> {
  let task = await send(client, messageOf("weather twice", { contextId }));
  while (callsOf(task).length < 2) task = await client.getTask({ ...idOf(task.id), historyLength: 0 });
  return task;
}

const idsOf = (task: Task): readonly string[] => callsOf(task).map(({ approval_id }) => approval_id);

test("a message that is delivered again decides about no other call, and returns its task", async () => {
  const pair = await connectA2a(served.url, "pair");
  const task = await askedTwice(pair, "again");
  const [first, second] = idsOf(task);
  const approve = answerTo(task, { decision: "approve" });
  for (let delivery = 0; delivery < 3; delivery += 1) {
    const now = await send(pair, approve);
    expect([now.id, seen(now)[0], idsOf(now)]).toEqual([task.id, "INPUT_REQUIRED", [second]]);
  }
  // A text has no call that it belongs to, so the refusal has the data to send.
  for (const text of ["approve", "deny"]) {
    const sent = { message: { ...part({ text }), taskId: task.id } };
    const body = { jsonrpc: "2.0", id: 1, method: "SendMessage", params: sent };
    const { error } = (await served.send("/a2a/pair", { body, headers: { "a2a-version": "1.0" } })).body;
    expect([error.code, error.data[0].fieldViolations[0].description]).toEqual([
      -32_602,
      expect.stringContaining(`data {"approval_id":"${second}","decision":"approve"}`),
    ]);
  }
  const deny = messageOf({ approval_id: second, decision: "deny" }, { taskId: task.id });
  expect(seen(await send(pair, deny))).toEqual(["COMPLETED", "It said sun."]);
  for (const sent of [approve, deny]) expect((await send(pair, sent)).id).toBe(task.id);
  expect(first).not.toBe(second);
  await expect(pair.sendMessage(messageOf("approve", { taskId: task.id }))).rejects.toThrow("has ended");
});

test("a question is read with its schema, and answered or declined", async () => {
  const host = await connectA2a(served.url, "host");
  for (const [answer, said] of [
    [{ result: { guests: 3 } }, "It said accept3."],
    [{ decision: "deny" }, "It said decline."],
  ] as const) {
    const task = await send(host, messageOf("weather"));
    expect(task.status?.message?.parts[0]?.content?.value).toContain("weather asks: For how many?");
    expect(callsOf(task)).toMatchObject([
      { kind: "question", message: "For how many?", schema: { required: ["guests"] } },
    ]);
    await expect(host.sendMessage(answerTo(task, { result: { guests: 0 } }))).rejects.toThrow("asks for");
    expect(seen(await send(host, answerTo(task, answer)))).toEqual(["COMPLETED", said]);
  }
});

test("a message with one bad answer decides nothing", async () => {
  const host = await connectA2a(served.url, "host");
  const task = await askedTwice(host, "bad");
  const [first, second] = idsOf(task);
  const message = (guests: readonly [number, number]) => {
    const sent = messageOf({ approval_id: first, result: { guests: guests[0] } }, { taskId: task.id });
    const other = messageOf({ approval_id: second, result: { guests: guests[1] } }).message?.parts ?? [];
    sent.message?.parts.push(...other);
    return sent;
  };
  await expect(host.sendMessage(message([2, 0]))).rejects.toThrow("asks for");
  expect(idsOf(await host.getTask({ ...idOf(task.id), historyLength: 0 }))).toEqual([first, second]);
  // An answer that counts already is skipped.
  const half = messageOf({ approval_id: first, result: { guests: 2 } }, { taskId: task.id });
  expect(idsOf(await send(host, half))).toEqual([second]);
  expect(seen(await send(host, message([9, 4])))[1]).toBe("It said accept2. It said accept4.");
});

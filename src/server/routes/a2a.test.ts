import type { Client } from "@a2a-js/sdk/client";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  answerTo,
  connectA2a,
  idOf,
  listOf,
  messageOf,
  messageOnly,
  part,
  readStream,
  seen,
  send,
} from "../testing/a2a-client.ts";
import { serveForTests } from "../testing/serve-for-tests.ts";

let echo: Client;
let careful: Client;
const served = serveForTests({ a2a: { approvals: "sender" } });
beforeAll(async () => {
  [echo, careful] = await Promise.all([connectA2a(served.url, "echo"), connectA2a(served.url, "careful")]);
});
afterAll(() => expect(served.errors).toEqual([]));

const rpc = (method: string, params: object = {}, headers: object = { "a2a-version": "1.0" }) =>
  served.send("/a2a/echo", { body: { jsonrpc: "2.0", id: 7, method, params }, headers: { ...headers } });

test("a message is a task, which ends with the answer, and the same message again is the same task", async () => {
  const sent = messageOf("hello there", { contextId: "talk" });
  const task = await send(echo, sent);
  expect([task.contextId, ...seen(task)]).toEqual(["talk", "COMPLETED", "hello there"]);
  expect((await send(echo, sent)).id).toBe(task.id);
  expect(await echo.getTask({ ...idOf(task.id), historyLength: undefined })).toEqual(task);
  expect(task.history.map(({ messageId }) => messageId)).toEqual([sent.message?.messageId]);
  const alone = messageOf("without a context");
  const [one, other] = [await send(echo, alone), await send(echo, alone)];
  expect([one.id, one.contextId]).toEqual([other.id, other.contextId]);
});

test("a stream begins with the task, and goes on with its text to the end", async () => {
  const { kinds, text, last } = await readStream(echo.sendMessageStream(messageOf("calmly one two three")));
  expect([kinds[0], kinds.at(-1), text, last]).toEqual([
    "task",
    "COMPLETED",
    "calmly one two three",
    "COMPLETED",
  ]);
  expect(kinds).toContain("artifactUpdate");
  const ended = await readStream(echo.sendMessageStream(messageOf("fail for good")));
  expect(ended.last).toBe("FAILED");
});

test("a task that needs an approval asks for input, and a message of the task goes on with it", async () => {
  for (const [answer, result] of [
    [{ decision: "approve" }, "Paid 5 cents."],
    [{ decision: "deny", reason: "no money" }, "no money"],
  ] as const) {
    const task = await send(careful, messageOf("pay 5"));
    expect(seen(task)).toEqual(["INPUT_REQUIRED", ""]);
    const [text, data] = task.status?.message?.parts ?? [];
    expect(text?.content?.value).toContain('calls pay with {"cents":5}');
    expect(data?.content?.value).toMatchObject({ tool: "pay", args: { cents: 5 } });
    const ended = await send(careful, answerTo(task, answer));
    expect([ended.id, ended.contextId, ...seen(ended)]).toEqual([
      task.id,
      task.contextId,
      "COMPLETED",
      "It is done.",
    ]);
    const target = { agent: "careful", instance_id: "default" };
    const { events } = await served.service.operationEvents({
      ...target,
      operation_id: task.id.replace("dispatch", "op"),
    });
    expect(JSON.stringify(events.filter(({ type }) => type === "tool_end"))).toContain(result);
  }
});

test("a stream ends where input is needed, and the next one goes on from there", async () => {
  const first = await readStream(careful.sendMessageStream(messageOf("pay 7", { contextId: "streamed" })));
  expect(first.last).toBe("INPUT_REQUIRED");
  const { tasks } = await careful.listTasks({ ...listOf("streamed") });
  const [task] = tasks;
  if (task === undefined) throw new Error("There is no task.");
  const follower = readStream(careful.resubscribeTask(idOf(task.id)));
  const next = await readStream(careful.sendMessageStream(answerTo(task, { decision: "approve" })));
  expect([next.kinds[0], next.last, next.text]).toEqual(["task", "COMPLETED", "It is done."]);
  const followed = await follower;
  expect([followed.last, followed.text]).toEqual(["COMPLETED", "It is done."]);
});

test("tasks are listed newest first, in pages, of one context or state", async () => {
  const texts = ["a", "b", "c"];
  for (const text of texts) await send(echo, messageOf(text, { contextId: "many" }));
  await send(echo, messageOf("fail for good", { contextId: "many" }));
  const first = await echo.listTasks(listOf("many", { pageSize: 2, includeArtifacts: true }));
  expect([first.totalSize, first.pageSize, first.tasks.map(seen)]).toEqual([
    4,
    2,
    [
      ["FAILED", ""],
      ["COMPLETED", "c"],
    ],
  ]);
  const rest = await echo.listTasks(listOf("many", { pageSize: 2, pageToken: first.nextPageToken }));
  expect([rest.nextPageToken, rest.tasks.map(seen)]).toEqual([
    "",
    [
      ["COMPLETED", ""],
      ["COMPLETED", ""],
    ],
  ]);
  const failed = await echo.listTasks(listOf("many", { pageSize: 1, status: 4 }));
  expect(failed.tasks.map(seen)).toEqual([["FAILED", ""]]);
  expect((await rpc("ListTasks", { contextId: "many" })).body.result.tasks[0]).not.toHaveProperty(
    "artifacts",
  );
  expect((await echo.listTasks(listOf("none"))).tasks).toEqual([]);
  // Only who asks for messages gets them.
  const [short, long] = await Promise.all(
    [undefined, 1].map((historyLength) => echo.listTasks(listOf("many", { historyLength }))),
  );
  expect([short, long].map((list) => list?.tasks.map(({ history }) => history.length))).toEqual([
    [0, 0, 0, 0],
    [1, 1, 1, 1],
  ]);
  const { result } = (await rpc("ListTasks", { contextId: "many", status: "TASK_STATE_REJECTED" })).body;
  expect(result).toEqual({ tasks: [], nextPageToken: "", pageSize: 0, totalSize: 0 });
});

test("a task that runs is followed again after a cut, and cancelled once", async () => {
  const task = await send(echo, messageOnly("slow", { contextId: "cut" }));
  const leaving = new AbortController();
  const cut = readStream(
    echo.resubscribeTask(idOf(task.id), { signal: leaving.signal }),
    (_, text) => text.length > 6 && leaving.abort(),
  );
  await expect(cut).rejects.toThrow();
  const again = readStream(echo.resubscribeTask(idOf(task.id)));
  const running = await echo.getTask({ ...idOf(task.id), historyLength: 0 });
  const [state, text] = seen(running);
  expect([state, text.startsWith("0 1 2 "), running.history]).toEqual(["WORKING", true, []]);
  const stopped = await echo.cancelTask({ ...idOf(task.id), metadata: undefined });
  expect(seen(stopped)[0]).toBe("CANCELED");
  const { kinds, last, text: whole } = await again;
  expect([kinds[0], last]).toEqual(["task", "CANCELED"]);
  // The stream has the text that the task began with, and what was said since, without a gap.
  expect(whole).toBe(
    whole
      .match(/\d+ /g)
      ?.map((_, at) => `${at} `)
      .join(""),
  );
  await expect(echo.cancelTask({ ...idOf(task.id), metadata: undefined })).rejects.toThrow(/ended/);
});

test("each method refuses wrong input with a code and a field", async () => {
  const refusals: [string, object, number, string][] = [
    ["SendMessage", {}, -32_602, "message"],
    ["SendMessage", { message: { messageId: "m", role: "ROLE_USER", parts: [] } }, -32_602, "message.parts"],
    [
      "SendMessage",
      { message: { messageId: "m", role: "user", parts: [{ text: "x" }] } },
      -32_602,
      "message.role",
    ],
    ["SendMessage", { message: { ...part({ text: "x", url: "y" }) } }, -32_602, "message.parts.0"],
    ["SendMessage", { message: { ...part({ text: "x" }), contextId: "a/b" } }, -32_602, "message.contextId"],
    ["SendMessage", { message: part({ text: "" }) }, -32_602, "message.parts"],
    [
      "SendStreamingMessage",
      { message: { ...part({ text: "x" }), messageId: "" } },
      -32_602,
      "message.messageId",
    ],
    ["GetTask", {}, -32_602, "id"],
    ["GetTask", { id: "x", historyLength: -5 }, -32_602, "historyLength"],
    ["ListTasks", { pageSize: 150 }, -32_602, "pageSize"],
    ["ListTasks", { pageToken: "no" }, -32_602, "pageToken"],
    ["ListTasks", { status: "running" }, -32_602, "status"],
    ["CancelTask", { id: 7 }, -32_602, "id"],
    ["SubscribeToTask", {}, -32_602, "id"],
  ];
  for (const [method, params, code, field] of refusals) {
    const { status, body } = await rpc(method, params);
    expect([method, params, status, body.id, body.error?.code]).toEqual([method, params, 200, 7, code]);
    expect(body.error.data[0].fieldViolations[0]).toEqual({ field, description: expect.any(String) });
  }
});

test("A2A's own errors have its codes and reasons", async () => {
  const { id } = await send(echo, messageOf("over"));
  const { id: waiting } = await send(careful, messageOf("pay 9"));
  const { id: running } = await send(echo, messageOnly("slow"));
  const file = part({ raw: "dGNr", mediaType: "application/x-odd" });
  const odd: [string, object, number, string][] = [
    ["GetTask", { id: "dispatch_none" }, -32_001, "TASK_NOT_FOUND"],
    ["GetTask", { id: waiting }, -32_001, "TASK_NOT_FOUND"],
    ["CancelTask", { id: "none" }, -32_001, "TASK_NOT_FOUND"],
    ["SubscribeToTask", { id: "none" }, -32_001, "TASK_NOT_FOUND"],
    ["SendMessage", { message: { ...part({ text: "x" }), taskId: "none" } }, -32_001, "TASK_NOT_FOUND"],
    ["CancelTask", { id }, -32_002, "TASK_NOT_CANCELABLE"],
    ["SubscribeToTask", { id }, -32_004, "UNSUPPORTED_OPERATION"],
    ["SendMessage", { message: { ...part({ text: "x" }), taskId: id } }, -32_004, "UNSUPPORTED_OPERATION"],
    [
      "SendMessage",
      { message: { ...part({ text: "x" }), taskId: running } },
      -32_004,
      "UNSUPPORTED_OPERATION",
    ],
    ["SendMessage", { message: file }, -32_005, "CONTENT_TYPE_NOT_SUPPORTED"],
    [
      "SendMessage",
      { message: part({ text: "x" }), configuration: { taskPushNotificationConfig: { url: "http://x" } } },
      -32_003,
      "PUSH_NOTIFICATION_NOT_SUPPORTED",
    ],
    ["GetExtendedAgentCard", {}, -32_004, "UNSUPPORTED_OPERATION"],
    ["message/send", {}, -32_601, "METHOD_NOT_FOUND"],
    ["constructor", {}, -32_601, "METHOD_NOT_FOUND"],
    ...["Create", "Get", "Delete"].map((verb): [string, object, number, string] => [
      `${verb}TaskPushNotificationConfig`,
      { taskId: id },
      -32_003,
      "PUSH_NOTIFICATION_NOT_SUPPORTED",
    ]),
    ["ListTaskPushNotificationConfigs", { taskId: id }, -32_003, "PUSH_NOTIFICATION_NOT_SUPPORTED"],
  ];
  for (const [method, params, code, reason] of odd) {
    const { body } = await rpc(method, params);
    expect([method, body.error?.code, body.error?.data[0]]).toEqual([
      method,
      code,
      {
        "@type": "type.googleapis.com/google.rpc.ErrorInfo",
        reason,
        domain: "a2a-protocol.org",
        metadata: {},
      },
    ]);
  }
  await expect(echo.getTask({ ...idOf("none"), historyLength: undefined })).rejects.toMatchObject({
    name: "TaskNotFoundError",
  });
  await echo.cancelTask({ ...idOf(running), metadata: undefined });
  const mixed = messageOf("approve", { taskId: waiting, contextId: "another" });
  await expect(careful.sendMessage(mixed)).rejects.toThrow(/that of the task/);
  expect(seen(await careful.getTask({ ...idOf(waiting), historyLength: undefined }))[0]).toBe(
    "INPUT_REQUIRED",
  );
});

test("other versions and broken requests are refused in the form of JSON-RPC", async () => {
  for (const [headers, code] of [
    [{}, -32_009],
    [{ "a2a-version": "0.3" }, -32_009],
    [{ "a2a-version": "2.0" }, -32_009],
    [{ "a2a-version": "1.0.1" }, -32_001],
  ] as const)
    expect((await rpc("GetTask", { id: "none" }, headers)).body.error.code).toBe(code);
  const raw = async (body: string, type = "application/json", path = "/a2a/echo") => {
    const headers = { "content-type": type, "a2a-version": "1.0" };
    const reply = await fetch(`${served.url}${path}`, { method: "POST", headers, body });
    const { jsonrpc, id, error } = (await reply.json()) as {
      jsonrpc: string;
      id: null;
      error: { code: number };
    };
    return [reply.status, jsonrpc, id, error.code];
  };
  expect(await raw("{")).toEqual([400, "2.0", null, -32_700]);
  expect(await raw("[]")).toEqual([400, "2.0", null, -32_600]);
  expect(await raw('{"jsonrpc":"1.0","method":"GetTask"}')).toEqual([400, "2.0", null, -32_600]);
  expect(await raw('{"jsonrpc":"2.0","method":"GetTask","params":[]}')).toEqual([400, "2.0", null, -32_600]);
  // Each frame repeats the id.
  for (const [length, code] of [
    [200, -32_001],
    [201, -32_600],
  ] as const) {
    const asked = { jsonrpc: "2.0", id: "i".repeat(length), method: "GetTask", params: { id: "none" } };
    expect((await raw(JSON.stringify(asked))).at(-1)).toBe(code);
  }
  expect(await raw("x", "text/plain")).toEqual([415, "2.0", null, -32_005]);
  for (const name of ["hidden", "none", "broken"])
    expect(await raw("{}", "application/json", `/a2a/${name}`)).toEqual([400, "2.0", null, -32_600]);
  const body = { jsonrpc: "2.0", id: 1, method: "GetTask" };
  const replies = await Promise.all(
    ["hidden", "none", "broken"].map(async (name) => (await served.send(`/a2a/${name}`, { body })).body),
  );
  expect(new Set(replies.map((reply) => JSON.stringify(reply))).size).toBe(1);
});

test("a card describes an agent, and is not sent again while it is the same", async () => {
  const card = await served.send("/a2a/echo/.well-known/agent-card.json");
  expect(card.body).toMatchObject({
    name: "echo",
    supportedInterfaces: [
      { url: `${served.url}/a2a/echo`, protocolBinding: "JSONRPC", protocolVersion: "1.0" },
    ],
    capabilities: { streaming: true, pushNotifications: false, extendedAgentCard: false },
  });
  expect(card.headers.get("cache-control")).toBe("private, max-age=60");
  const etag = card.headers.get("etag") ?? "";
  const again = await fetch(`${served.url}/a2a/echo/.well-known/agent-card.json`, {
    headers: { "if-none-match": etag },
  });
  expect([again.status, await again.text()]).toEqual([304, ""]);
  expect((await served.send("/.well-known/agent-card.json")).body.name).toBe("default");
  for (const name of ["hidden", "none"]) {
    const { status, body } = await served.send(`/a2a/${name}/.well-known/agent-card.json`);
    expect([status, body.error.type, body.error.message]).toEqual([
      404,
      "agent_not_found",
      "There is no agent of this name here.",
    ]);
  }
});

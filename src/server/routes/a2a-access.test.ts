import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { InMemorySessionStore } from "../../stores/memory/memory-store.ts";
import { createTestService } from "../../testing/test-service.ts";
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
import { serveService } from "../testing/serve-service.ts";

test("with keys, cards, tasks and lists are those of the sender alone", async () => {
  const { service, close, url, send: sendTo } = await serveService({ access: { apiKeys: ["one", "two"] } });
  try {
    const body = { jsonrpc: "2.0", id: 1, method: "ListTasks" };
    for (const [path, sent] of [
      ["/a2a/echo", { body }],
      ["/a2a/none", { body }],
    ] as const) {
      const { status, headers, body: reply } = await sendTo(path, sent);
      expect([status, headers.get("www-authenticate"), reply.error.code]).toEqual([401, "Bearer", -32_000]);
    }
    for (const path of ["/.well-known/agent-card.json", "/a2a/echo/.well-known/agent-card.json"])
      expect((await sendTo(path)).status).toBe(401);
    const [one, two] = await Promise.all(["one", "two"].map((key) => connectA2a(url, "careful", key)));
    if (one === undefined || two === undefined) throw new Error("There is no client.");
    const card = await one.getAgentCard();
    expect(card).toMatchObject({ name: "careful", capabilities: { extendedAgentCard: true } });
    // A person decides in the inbox, unless the setting says otherwise.
    const task = await send(one, messageOf("pay 5", { contextId: "mine" }));
    expect(seen(task)[0]).toBe("AUTH_REQUIRED");
    const approve = messageOf("approve", { taskId: task.id });
    await expect(one.sendMessage(approve)).rejects.toThrow("A person decides");
    const gone = { name: "TaskNotFoundError" };
    await expect(two.getTask({ ...idOf(task.id), historyLength: undefined })).rejects.toMatchObject(gone);
    await expect(two.cancelTask({ ...idOf(task.id), metadata: undefined })).rejects.toMatchObject(gone);
    await expect(two.sendMessage(approve)).rejects.toMatchObject(gone);
    await expect(readStream(two.resubscribeTask(idOf(task.id)))).rejects.toMatchObject(gone);
    expect((await two.listTasks(listOf(""))).tasks).toEqual([]);
    // The same message id and context of another sender are other work.
    expect((await send(two, messageOf("hello", { contextId: "mine" }))).id).not.toBe(task.id);
    const follower = readStream(one.resubscribeTask(idOf(task.id)));
    const [call] = await service.approvals.list();
    await service.approvals.decide(call?.approval_id ?? "", { approved: true });
    expect(await follower).toMatchObject({ last: "COMPLETED", text: "It is done." });
  } finally {
    await close();
  }
});

test("public cards need no key and tell less, and authorize decides about each", async () => {
  const { close, send: sendTo } = await serveService({
    access: { apiKeys: ["one"] },
    a2a: { cards: "public", agent: "echo", url: "https://kit.example/" },
    files: { ".agents/skills/release/SKILL.md": "---\nname: release\ndescription: Releases.\n---\nDo it.\n" },
    authorize: ({ principal, action, agent }) =>
      principal === undefined ? action === "agent.list" && agent === "echo" : action !== "agent.abort",
  });
  try {
    const path = "/.well-known/agent-card.json";
    const open = await sendTo(path);
    expect([open.status, open.body.skills.map(({ id }: { id: string }) => id)]).toEqual([200, ["echo"]]);
    expect(open.body.supportedInterfaces[0].url).toBe("https://kit.example/a2a/echo");
    expect(open.body.securityRequirements).toEqual([{ schemes: { key: { list: [] } } }]);
    expect((await sendTo("/a2a/echo/.well-known/agent-card.json")).status).toBe(200);
    const refused = await Promise.all(
      ["careful", "hidden", "none"].map((name) => sendTo(`/a2a/${name}${path}`)),
    );
    expect(new Set(refused.map(({ status, body }) => JSON.stringify([status, body]))).size).toBe(1);
    expect(refused[0]?.status).toBe(403);
    const headers = { authorization: "Bearer one", "a2a-version": "1.0" };
    const ask = (method: string, params: object = {}) =>
      sendTo("/a2a/echo", { body: { jsonrpc: "2.0", id: 1, method, params }, headers });
    const { skills } = (await ask("GetExtendedAgentCard")).body.result;
    expect(skills.map(({ id }: { id: string }) => id)).toEqual(["echo", "skill:release"]);
    const sent = { message: part({ text: "slow" }), configuration: { returnImmediately: true } };
    const { task } = (await ask("SendMessage", sent)).body.result;
    const { error } = (await ask("CancelTask", { id: task.id })).body;
    expect([error.code, error.data[0].reason]).toEqual([-32_000, "FORBIDDEN"]);
  } finally {
    await close();
  }
});

test("a task outlives its server: it is followed, decided and found again after a restart", async () => {
  const engineFolder = await mkdtemp(join(tmpdir(), "kit-a2a-"));
  const store = new InMemorySessionStore();
  const open = () =>
    serveService({
      a2a: { approvals: "sender" },
      openService: (from) => createTestService({ ...from, engineFolder, store }),
    });
  let first = await open();
  try {
    const client = await connectA2a(first.url, "careful");
    const asking = await send(client, messageOf("pay 5", { contextId: "night" }));
    const slow = await send(
      await connectA2a(first.url, "echo"),
      messageOnly("calmly one two three four five six"),
    );
    const cut = readStream((await connectA2a(first.url, "echo")).resubscribeTask(idOf(slow.id)));
    const isCut = expect(cut).rejects.toThrow();
    await first.close();
    await isCut;
    first = await open();
    const again = await connectA2a(first.url, "careful");
    const waiting = await again.getTask({ ...idOf(asking.id), historyLength: undefined });
    expect(seen(waiting)[0]).toBe("INPUT_REQUIRED");
    const ended = await send(again, answerTo(waiting, { decision: "approve" }));
    expect(seen(ended)).toEqual(["COMPLETED", "It is done."]);
    const client2 = await connectA2a(first.url, "echo");
    const { status } = await client2.getTask({ ...idOf(slow.id), historyLength: undefined });
    const done = [3, 4].includes(status?.state ?? 0)
      ? seen(await client2.getTask({ ...idOf(slow.id), historyLength: undefined }))
      : await readStream(client2.resubscribeTask(idOf(slow.id))).then(({ last, text }) => [last, text]);
    expect(done).toEqual(["COMPLETED", "calmly one two three four five six"]);
  } finally {
    await first.close();
    await rm(engineFolder, { recursive: true });
  }
});

import type { UIMessage } from "ai";
import { afterAll, beforeAll, expect, test } from "vitest";
import { KitClient } from "../../client/index.ts";
import { readAnswer, toMessage } from "../testing/read-ui-stream.ts";
import { serveForTest, serveForTests } from "../testing/serve-for-tests.ts";

let client: KitClient;
let paid: number[];
const served = serveForTests({
  files: {
    "src/agents/payer.ts": `export const triggers = { webhook: true };
const pay = {
  name: "pay",
  description: "Pays an amount.",
  input: { type: "object", properties: { cents: { type: "integer" } }, required: ["cents"] },
  needsApproval: true,
  editableArguments: true,
  execute: ({ cents }) => { (globalThis.uiPaid ??= []).push(cents); return JSON.stringify({ cents }); },
};
export default { kind: "kit.agent", describe: async () => ({ tools: [pay] }) };
`,
  },
});
beforeAll(() => {
  client = new KitClient({ baseUrl: served.url });
  paid = (globalThis as { uiPaid?: number[] }).uiPaid ??= [];
});
afterAll(() => expect(served.errors).toEqual([]));

let count = 0;
const user = (text: string, more: object = {}) => ({
  id: `m${++count}`,
  role: "user",
  parts: [{ type: "text", text }],
  ...more,
});
const post = (agent: string, session: string, messages: readonly object[]) =>
  served.stream(`/agents/${agent}/page/ui`, { body: { id: session, messages, trigger: "submit-message" } });
const get = (path: string, headers: Record<string, string> = {}) =>
  served.stream(`/agents/${path}`, { headers });
const messagesOf = async (agent: string, session: string): Promise<UIMessage[]> =>
  (await served.send(`/agents/${agent}/page/ui/${session}/messages`)).body.messages;
const textOf = (message: UIMessage): string =>
  message.parts.map((part) => (part.type === "text" ? part.text : "")).join("");

/** The message with answers to its approvals, as `addToolApprovalResponse` writes them. */
function answered(message: UIMessage, approved: boolean | string): UIMessage {
  return {
    ...message,
    parts: message.parts.map((part) =>
      "approval" in part && part.state === "approval-requested"
        ? ({
            ...part,
            state: "approval-responded",
            approval: { ...part.approval, approved },
          } as unknown as typeof part)
        : part,
    ),
  };
}

test("a page's message is answered as a stream, and the stored message is the one that the page built", async () => {
  const sent = user("hello there page");
  const { chunks, message, isDone } = await readAnswer(await post("echo", "said", [user("older"), sent]));
  expect([textOf(message), isDone]).toEqual(["hello there page", true]);
  expect(chunks.map(({ type }) => type).filter((type) => type !== "text-delta")).toEqual([
    "start",
    "start-step",
    "text-start",
    "text-end",
    "message-metadata",
    "finish-step",
    "finish",
  ]);
  expect(await messagesOf("echo", "said")).toEqual([sent, message]);
  // The same message again is the same answer: a lost reply is asked for again.
  const again = await readAnswer(await post("echo", "said", [sent]));
  expect(again.message).toEqual(message);
  expect((await client.agents.operations("echo", { id: "page", session: "said" })).operations).toHaveLength(
    1,
  );
});

test("a page takes up the running answer at the beginning, or after any position that it has", async () => {
  const text = "calmly one two three four five six seven";
  const first = await readAnswer(await post("echo", "taken", [user(text)]), { upTo: 5 });
  expect(first.isDone).toBe(false);
  expect((await messagesOf("echo", "taken")).map(({ role }) => role)).toEqual(["user"]);
  const whole = await readAnswer(await get("echo/page/ui/taken/stream"));
  expect([textOf(whole.message), whole.isDone]).toEqual([text, true]);
  expect((await get("echo/page/ui/taken/stream")).status).toBe(204);
  const { messageId: operation_id } = whole.chunks[0] as { messageId: string };
  for (const [at, id] of whole.ids.entries()) {
    if (id === undefined) continue;
    const path = `echo/page/ui/taken/stream?operation_id=${operation_id}`;
    const rest = await readAnswer(await get(path, { "last-event-id": id }), { before: undefined });
    const joined = await toMessage([...whole.chunks.slice(0, at + 1), ...rest.chunks]);
    expect([joined, rest.isDone]).toEqual([whole.message, true]);
  }
});

test("a call waits for the page; its answer lets the call run, and nothing is said twice", async () => {
  const asked = await readAnswer(await post("payer", "paid", [user("pay 5")]));
  const [part] = asked.message.parts.filter(({ type }) => type === "tool-pay");
  expect(part).toMatchObject({ state: "approval-requested", input: { cents: 5 }, providerExecuted: true });
  expect(asked.chunks.at(-1)).toMatchObject({ type: "finish", finishReason: "tool-calls" });
  // A reload in between: nothing runs, and the page starts with the waiting call.
  expect((await get("payer/page/ui/paid/stream")).status).toBe(204);
  const [, waiting] = await messagesOf("payer", "paid");
  expect(waiting).toEqual(asked.message);
  const reply = await post("payer", "paid", [answered(asked.message, true)]);
  const { message, isDone } = await readAnswer(reply, { before: answered(asked.message, true) });
  expect(isDone).toBe(true);
  expect(message.parts.filter(({ type }) => type === "tool-pay")).toMatchObject([
    { state: "output-available", output: { cents: 5 }, approval: { approved: true } },
  ]);
  expect(textOf(message)).toBe("It is done.");
  const [, stored] = await messagesOf("payer", "paid");
  expect(stored?.parts).toEqual(message.parts);
  expect(paid).toEqual([5]);
  // A replay does not stop at a call that has been decided since.
  const replay = await readAnswer(await get(`payer/page/ui/paid/stream?operation_id=${message.id}`));
  expect(replay.message.parts).toEqual(message.parts);
  // A second answer, from another tab, changes nothing.
  const late = await readAnswer(await post("payer", "paid", [answered(asked.message, false)]), {
    before: asked.message,
  });
  expect(textOf(late.message)).toBe("It is done.");
  expect(paid).toEqual([5]);
});

test("a denied call never runs, and an answer that is not understood decides nothing", async () => {
  const asked = await readAnswer(await post("payer", "denied", [user("pay 7")]));
  for (const wrong of [
    answered(asked.message, "true"),
    { ...answered(asked.message, true), metadata: {} },
    asked.message,
  ]) {
    const refused = await post("payer", "denied", [wrong]);
    expect([refused.status, refused.headers.get("content-type")]).toEqual([400, "text/plain; charset=utf-8"]);
    expect(await refused.text()).toMatch(/^The message of the chat cannot be answered\. body\.messages: /);
  }
  const before = answered(asked.message, false);
  const { message } = await readAnswer(await post("payer", "denied", [before]), { before });
  expect(message.parts.filter(({ type }) => type === "tool-pay")).toMatchObject([{ state: "output-denied" }]);
  expect(paid).not.toContain(7);
  const [, stored] = await messagesOf("payer", "denied");
  expect(stored?.parts).toEqual(message.parts);
});

const locate = { name: "locate", description: "Where the person is." };

/** The message with the result of the page's tool, as `addToolOutput` writes it. */
function ran(message: UIMessage, result: object): UIMessage {
  return {
    ...message,
    parts: message.parts.map((part) =>
      part.type === "tool-locate" ? ({ ...part, ...result } as unknown as typeof part) : part,
    ),
  };
}

test("a call of the page's tool waits for the page, over a reload too, and the answer goes on with its result", async () => {
  const ask = (session: string) =>
    served.stream("/agents/payer/page/ui", {
      body: { id: session, messages: [user("call locate {}")], tools: [locate] },
    });
  const asked = await readAnswer(await ask("located"));
  const [part] = asked.message.parts.filter(({ type }) => type === "tool-locate");
  expect(part).toMatchObject({ state: "input-available", input: {} });
  // So the AI SDK knows that the page runs it.
  expect(part).not.toHaveProperty("providerExecuted");
  expect(asked.chunks.at(-1)).toMatchObject({ type: "finish", finishReason: "tool-calls" });
  expect((await get("payer/page/ui/located/stream")).status).toBe(204);
  expect((await messagesOf("payer", "located"))[1]).toEqual(asked.message);
  const before = ran(asked.message, { state: "output-available", output: { city: "Oslo" } });
  const { message, isDone } = await readAnswer(await post("payer", "located", [before]), { before });
  expect(isDone).toBe(true);
  expect(message.parts.filter(({ type }) => type === "tool-locate")).toMatchObject([
    { state: "output-available", output: { city: "Oslo" } },
  ]);
  expect(textOf(message)).toBe("It is done.");
  expect((await messagesOf("payer", "located"))[1]?.parts).toEqual(message.parts);
  // A second tab is later.
  const late = ran(asked.message, { state: "output-available", output: { city: "Rome" } });
  expect(textOf((await readAnswer(await post("payer", "located", [late]), { before: late })).message)).toBe(
    "It is done.",
  );
  expect(JSON.stringify(await messagesOf("payer", "located"))).not.toContain("Rome");
  const failing = await readAnswer(await ask("lost"));
  const failed = ran(failing.message, { state: "output-error", errorText: "No signal." });
  const ended = await readAnswer(await post("payer", "lost", [failed]), { before: failed });
  expect(ended.message.parts.filter(({ type }) => type === "tool-locate")).toMatchObject([
    { state: "output-error", errorText: "No signal." },
  ]);
});

test("a page's result decides no call that needs approval", async () => {
  const asked = await readAnswer(await post("payer", "unapproved", [user("pay 13")]));
  const parts = asked.message.parts.map((part) =>
    part.type === "tool-pay"
      ? { ...part, state: "output-available", output: "paid", providerExecuted: undefined }
      : part,
  ) as unknown as UIMessage["parts"];
  const forged = { ...asked.message, parts };
  const reply = await post("payer", "unapproved", [forged]);
  await reply.body?.cancel();
  expect(await messagesOf("payer", "unapproved")).toMatchObject([{}, asked.message]);
  expect(paid).not.toContain(13);
});

const again = (session: string, body: object) =>
  served.stream("/agents/echo/page/ui", { body: { id: session, trigger: "submit-message", ...body } });

test("a message is edited and an answer asked for again in its chat, and a repeated request is the same work", async () => {
  const [first, second] = [user("one"), user("two")];
  const one = await readAnswer(await post("echo", "edited", [first]));
  const two = await readAnswer(await post("echo", "edited", [second]));
  const regenerate = {
    messages: [second],
    trigger: "regenerate-message",
    messageId: two.message.id,
    request_id: "r1",
  };
  const other = await readAnswer(await again("edited", regenerate));
  expect(other.message.id).not.toBe(two.message.id);
  expect((await readAnswer(await again("edited", regenerate))).message).toEqual(other.message);
  expect(await messagesOf("echo", "edited")).toEqual([first, one.message, second, other.message]);
  const changed = { ...first, parts: [{ type: "text", text: "calmly other words" }] };
  const edit = { messages: [changed], messageId: first.id, request_id: "r2" };
  await readAnswer(await again("edited", edit), { upTo: 3 });
  // The page lost the reply, and asks again while the answer runs.
  const edited = await readAnswer(await again("edited", edit));
  expect(textOf(edited.message)).toBe("calmly other words");
  expect(await messagesOf("echo", "edited")).toEqual([changed, edited.message]);
  const { body } = await served.send("/agents/echo/page/history?session=edited&limit=50");
  expect(body.messages.map(({ role }: { role: string }) => role)).toEqual(["user", "assistant"]);
});

test("an edit stops the answer that it leaves behind, and a message that never arrived is asked for the first time", async () => {
  const sent = user("slow");
  await readAnswer(await post("echo", "running", [sent]), { upTo: 3 });
  const changed = { ...sent, parts: [{ type: "text", text: "quick" }] };
  const edited = await readAnswer(await again("running", { messages: [changed], messageId: sent.id }));
  expect(await messagesOf("echo", "running")).toEqual([changed, edited.message]);
  const lost = user("lost");
  const answer = await readAnswer(
    await again("running", { messages: [lost], trigger: "regenerate-message" }),
  );
  expect(await messagesOf("echo", "running")).toEqual([changed, edited.message, lost, answer.message]);
});

test("a stop ends the answer that it names, also a queued one, and no later one", async () => {
  const running = await post("echo", "stopped", [user("slow")]);
  const { chunks } = await readAnswer(running, { upTo: 4 });
  const { messageId: operation_id } = chunks[0] as { messageId: string };
  const queued = await post("echo", "stopped", [user("never said")]);
  const stop = async (body: object) =>
    (await served.send("/agents/echo/page/ui/stopped/stop", { body })).body;
  const reader = queued.body?.pipeThrough(new TextDecoderStream()).getReader();
  const begun = /"messageId":"(\w+)"/.exec((await reader?.read())?.value ?? "")?.[1] ?? "";
  expect(await stop({ operation_id: begun })).toEqual({ stopped: true });
  let rest = "";
  for (let next = await reader?.read(); next?.done === false; next = await reader?.read()) rest += next.value;
  expect(rest).toMatch(/"abort".*"finish".*\[DONE\]\n\n$/s);
  expect(await stop({ operation_id })).toEqual({ stopped: true });
  const { message } = await readAnswer(await post("echo", "stopped", [user("calmly said")]));
  expect(textOf(message)).toBe("calmly said");
  expect(await stop({ operation_id })).toEqual({ stopped: false });
  expect((await messagesOf("echo", "stopped")).map(({ role }) => role)).toEqual([
    "user",
    "assistant",
    "user",
    "assistant",
  ]);
});

test("failures, files and refusals reach the page as it understands them", async () => {
  const failed = await readAnswer(await post("echo", "failed", [user("fail for good")]));
  expect(failed.chunks).toContainEqual({ type: "error", errorText: "It is too long." });
  expect(failed.isDone).toBe(true);
  const file = { type: "file", mediaType: "image/png", url: "data:image/png;base64,aGk=" };
  const photo = user("look", { parts: [file, { type: "text", text: "look" }] });
  await readAnswer(await post("echo", "photo", [photo]));
  expect((await messagesOf("echo", "photo"))[0]).toEqual(photo);
  // Above the limit of other routes, because a page sends its photos.
  const large = {
    type: "file",
    mediaType: "image/png",
    url: `data:image/png;base64,${"aGkh".repeat(500_000)}`,
  };
  await readAnswer(
    await post("echo", "photo", [user("look", { parts: [large, { type: "text", text: "look" }] })]),
  );
  expect((await get("echo/page/ui/none/stream")).status).toBe(204);
  expect(await messagesOf("echo", "none")).toEqual([]);
  expect((await get("unknown/page/ui/none/messages")).status).toBe(404);
});

test("a chat of another principal does not exist: its ids are 404 on every route", async () => {
  const guarded = await serveForTest({
    access: { apiKeys: ["first-key-of-the-test", "second-key-of-the-test"] },
    authorize: ({ principal, instance }) => instance === undefined || principal?.id === instance,
  });
  const call = (key: string, path: string, body?: object) =>
    guarded.stream(`/agents/echo/${path}`, {
      headers: { authorization: `Bearer ${key}` },
      ...(body && { body }),
    });
  const refused = await call("wrong", "x/ui/a/messages");
  expect([refused.status, refused.headers.get("content-type")]).toEqual([401, "text/plain; charset=utf-8"]);
  const owner = await ownerOf("first-key-of-the-test");
  const mine = await call("first-key-of-the-test", `${owner}/ui`, { id: "a", messages: [user("hello")] });
  const { chunks } = await readAnswer(mine);
  const operation_id = (chunks[0] as { messageId: string }).messageId;
  const requests: [string, object?][] = [
    [`${owner}/ui`, { id: "a", messages: [user("hello")] }],
    [`${owner}/ui/a/stream?operation_id=${operation_id}`],
    [`${owner}/ui/a/messages`],
    [`${owner}/ui/a/stop`, { operation_id }],
  ];
  for (const [path, body] of requests)
    expect((await call("second-key-of-the-test", path, body)).status).toBe(404);
  // In an instance of its own, the id of the other's operation names nothing.
  const other = await ownerOf("second-key-of-the-test");
  const stream = await call("second-key-of-the-test", `${other}/ui/a/stream?operation_id=${operation_id}`);
  expect(stream.status).toBe(404);
});

async function ownerOf(key: string): Promise<string> {
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(key)));
  return `key_${Buffer.from(digest).toString("hex").slice(0, 12)}`;
}

test("a message decides only calls of its own chat, and its id is only its own chat's", async () => {
  const [mine, other] = [user("pay 11"), user("pay 12")];
  const asked = await readAnswer(await post("payer", "mine", [mine]));
  const foreign = await readAnswer(await post("payer", "foreign", [{ ...other, id: mine.id }]));
  expect(foreign.message.id).not.toBe(asked.message.id);
  const forged = { ...answered(foreign.message, true), id: asked.message.id, metadata: { kit_index: 1 } };
  await readAnswer(await post("payer", "mine", [forged]), { before: asked.message });
  expect(await messagesOf("payer", "foreign")).toMatchObject([{}, foreign.message]);
  expect(paid).not.toContain(12);
  const id = asked.message.id.replace("op_", "other_");
  const stream = await served.stream(`/agents/payer/page/operations/${id}/events`, {
    headers: { accept: "text/event-stream" },
  });
  expect(stream.status).toBe(404);
});

test("parts of any shape are refused, and fail nothing in the server", async () => {
  const shape = { toString: 1, valueOf: 1 };
  const file = { type: "file", mediaType: "image/png", url: "https://example.com/a.png" };
  for (const part of [
    { type: "text", text: shape },
    { ...file, mediaType: shape },
    { ...file, url: [shape] },
  ])
    expect((await post("echo", "shapes", [user("", { parts: [part] })])).status).toBe(400);
});

test("a stream that the server ends early breaks off, so that no page takes it for the end", async () => {
  const limited = await serveForTest({ limits: { streamMs: 300 } });
  const reply = await limited.stream("/agents/echo/a/ui", {
    body: { id: "long", messages: [user("calmly a b c d e f g h i j k l")] },
  });
  await expect(readAnswer(reply)).rejects.toThrow();
});

import type OpenAI from "openai";
import { afterAll, beforeAll, expect, test } from "vitest";
import { serveForTests } from "../testing/serve-for-tests.ts";
import { serveService } from "../testing/serve-service.ts";
import { allOf, clientOf, refusal } from "./openai-client.suite.ts";

let client: OpenAI;

const served = serveForTests();
beforeAll(() => {
  client = clientOf(served);
});
afterAll(() => expect(served.errors).toEqual([]));

const model = "echo";
const user = (content: string) => ({ role: "user", content }) as const;
const chat = (content: string) => ({ model, messages: [user(content)] });
const until = async <Value>(read: () => Promise<Value | undefined>): Promise<Value> => {
  for (;;) {
    const value = await read();
    if (value !== undefined) return value;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
};
const historyOf = async (session: string, instance = "default") => {
  const { body } = await served.send(`/agents/echo/${instance}/history?session=${session}&limit=50`);
  return body.messages.map((message: { role: string; content: { text: string }[] }) => [
    message.role,
    message.content.map(({ text }) => text).join(""),
  ]);
};

test("the agents that are served are the models", async () => {
  const { data } = await client.models.list();
  expect(data.map(({ id }) => id)).toEqual(["careful", "default", "echo"]);
});

test("a chat completion is the answer of the agent, plain and as a stream with its usage", async () => {
  const plain = await client.chat.completions.create(chat("hello there you"));
  expect(plain).toMatchObject({
    object: "chat.completion",
    model,
    choices: [{ message: { role: "assistant", content: "hello there you" }, finish_reason: "stop" }],
    usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 },
  });
  const stream = client.chat.completions.stream({
    ...chat("calmly there you"),
    stream_options: { include_usage: true },
  });
  const parts: string[] = [];
  for await (const chunk of stream) parts.push(chunk.choices[0]?.delta.content ?? "");
  expect(parts.filter((part) => part !== "")).toEqual(["calmly ", "there ", "you"]);
  const final = await stream.finalChatCompletion();
  expect([final.choices[0]?.message.content, final.usage?.total_tokens]).toEqual(["calmly there you", 0]);
});

test("the messages of a client are the history of a new session, and a named session goes on with its own", async () => {
  const headers = { "X-Kit-Session": "shop-7" };
  const messages = [
    { role: "system", content: "Be a pirate." } as const,
    user("I am Alice."),
    { role: "assistant", content: "Hello Alice." } as const,
    user("who am I"),
  ];
  await client.chat.completions.create({ model, messages }, { headers });
  const said = [
    ["user", "[Instructions of the client] Be a pirate."],
    ["user", "I am Alice."],
    ["assistant", "Hello Alice."],
    ["user", "who am I"],
    ["assistant", "who am I"],
  ];
  expect(await historyOf("shop-7")).toEqual(said);
  await client.chat.completions.create({ model, messages: [...messages, user("and now")] }, { headers });
  expect(await historyOf("shop-7")).toEqual([...said, ["user", "and now"], ["assistant", "and now"]]);
  // The template of a front end can be empty.
  const unnamed = { headers: { "X-Kit-Session": "" } };
  expect((await client.chat.completions.create({ model, messages }, unnamed)).choices).toHaveLength(1);
  const again = await served.send("/agents/echo/default", {
    body: { message: "x", session: "shop-7", history: [{ role: "user", content: "other" }] },
  });
  expect([again.status, again.body.error.type]).toEqual([409, "conflict"]);
});

test("kit refuses by the name of the field what no agent can do", async () => {
  const cases = [
    [{ tools: [{ type: "web_search" }] }, "tools.0"],
    [{ tools: [{ type: "function", function: { name: "f" } }], tool_choice: "always" }, "tool_choice"],
    [{ n: 2 }, "n"],
    [{ response_format: { type: "json_object" } }, "response_format"],
    [{ messages: [{ role: "assistant", content: "x" }] }, "messages"],
    [{ messages: [{ role: "user", content: [{ type: "video", video: 1 }] }] }, "messages.0.content.0.type"],
  ] as const;
  for (const [fields, param] of cases) {
    const error = await refusal(client.chat.completions.create({ ...chat("x"), ...fields } as never));
    expect([error.status, error.type, error.param]).toEqual([400, "invalid_request_error", param]);
  }
  const missing = await refusal(client.chat.completions.create({ ...chat("x"), model: "nothing" }));
  expect([missing.status, missing.code]).toEqual([404, "model_not_found"]);
  const hidden = await refusal(client.responses.create({ model: "hidden", input: "x" }));
  expect([hidden.status, hidden.code]).toEqual([404, "model_not_found"]);
});

test("an error of the model is an error of the client, plain and in the stream", async () => {
  const plain = await refusal(client.chat.completions.create(chat("fail for good")));
  expect([plain.status, plain.code]).toEqual([502, "context_length_exceeded"]);
  const stream = await client.chat.completions.create({ ...chat("fail for good"), stream: true });
  const streamed = await refusal(allOf(stream));
  expect(streamed.code).toBe("context_length_exceeded");
  const response = await client.responses.create({ model, input: "fail for good" });
  expect([response.status, response.error?.message]).toEqual(["failed", "It is too long."]);
});

test("a client that leaves ends a chat completion, and not a response", async () => {
  const stream = await client.chat.completions.create({ ...chat("slow"), stream: true });
  let id = "";
  for await (const chunk of stream) {
    ({ id } = chunk);
    if (chunk.choices[0]?.delta.content) break;
  }
  const statusOf = async (ulid: string) =>
    (await served.send(`/dispatches/dispatch_${ulid}`)).body.status as string;
  const left = id.replace("chatcmpl-", "");
  expect(await until(async () => ((await statusOf(left)) === "running" ? undefined : statusOf(left)))).toBe(
    "cancelled",
  );
  const kept = await client.responses.create({ model, input: "calmly on and on", stream: true });
  for await (const event of kept) {
    if (event.type === "response.created") ({ id } = event.response);
    if (event.type === "response.output_text.delta") break;
  }
  const done = await until(async () => {
    const now = await client.responses.retrieve(id);
    return now.status === "in_progress" ? undefined : now;
  });
  expect([done.status, done.output_text]).toEqual(["completed", "calmly on and on"]);
});

test("a response is plain, or a stream whose events build it", async () => {
  const plain = await client.responses.create({ model, input: "hello there", metadata: { a: "b" } });
  expect(plain).toMatchObject({
    status: "completed",
    output_text: "hello there",
    metadata: { a: "b" },
    usage: { input_tokens: 3, output_tokens: 2, total_tokens: 5 },
  });
  const stream = client.responses.stream({ model, input: "calmly there you" });
  const events: { readonly type: string; readonly sequence_number: number }[] = [];
  for await (const event of stream) events.push(event);
  expect(events.map(({ type }) => type.replace("response.", ""))).toEqual([
    "created",
    "in_progress",
    "output_item.added",
    "content_part.added",
    ...Array.from({ length: 3 }, () => "output_text.delta"),
    "output_text.done",
    "content_part.done",
    "output_item.done",
    "completed",
  ]);
  const numbers = events.map(({ sequence_number }) => sequence_number);
  expect(numbers).toEqual([...new Set(numbers)].sort((a, b) => a - b));
  const final = await stream.finalResponse();
  expect(final.output_text).toBe("calmly there you");
  const { output, usage, completed_at } = await client.responses.retrieve(final.id);
  expect({ output, usage, completed_at }).toEqual({
    output: final.output.map(({ parsed: _, ...item }: object & { parsed?: unknown }) => ({
      ...item,
      content: (item as { content: object[] }).content.map(
        ({ parsed: _p, ...part }: object & { parsed?: unknown }) => part,
      ),
    })),
    usage: final.usage,
    completed_at: final.completed_at,
  });
});

test("a response that follows another goes on in its session, and only after the newest", async () => {
  const one = await client.responses.create({
    model,
    input: "first",
    instructions: "Be short.",
    conversation: "talk",
  });
  const two = await client.responses.create({ model, input: "second", previous_response_id: one.id });
  expect(await historyOf("talk")).toEqual([
    ["user", "[Instructions of the client] Be short."],
    ["user", "first"],
    ["assistant", "first"],
    ["user", "second"],
    ["assistant", "second"],
  ]);
  const older = await refusal(client.responses.create({ model, input: "x", previous_response_id: one.id }));
  expect([older.status, older.param]).toEqual([409, "previous_response_id"]);
  const none = await refusal(
    client.responses.create({ model, input: "x", previous_response_id: "resp_none" }),
  );
  expect([none.status, none.code]).toEqual([404, "previous_response_not_found"]);
  const other = await refusal(
    client.responses.create({ model: "careful", input: "x", previous_response_id: two.id }),
  );
  expect([other.status, other.param]).toEqual([400, "previous_response_id"]);
  const unstored = await client.responses.create({ model, input: "x", store: false });
  for (const id of [unstored.id, unstored.id.replace("unstored_", "")])
    expect((await refusal(client.responses.retrieve(id))).status).toBe(404);
});

test("a response in the background is taken up after any of its events, without a gap and nothing twice", async () => {
  const text = "calmly one two three four five six";
  const stream = await client.responses.create({ model, input: text, background: true, stream: true });
  const live: OpenAI.Responses.ResponseStreamEvent[] = [];
  let id = "";
  for await (const event of stream) {
    if (event.type === "response.created") ({ id } = event.response);
    live.push(event);
    if (live.length === 7) break;
  }
  const last = live.at(-1)?.sequence_number ?? 0;
  const rest = await client.responses.retrieve(id, { stream: true, starting_after: last });
  for await (const event of rest) live.push(event);
  const textOf = (events: readonly OpenAI.Responses.ResponseStreamEvent[]): string =>
    events.map((event) => (event.type === "response.output_text.delta" ? event.delta : "")).join("");
  expect(textOf(live)).toBe(text);
  // By now the log has joined the deltas.
  for (const [at, { sequence_number }] of live.entries()) {
    const tail = await allOf(
      await client.responses.retrieve(id, { stream: true, starting_after: sequence_number }),
    );
    expect(textOf(live.slice(0, at + 1)) + textOf(tail)).toBe(text);
    expect(tail.every((event) => event.sequence_number > sequence_number)).toBe(true);
    if (at + 1 < live.length) expect(tail.at(-1)).toEqual(live.at(-1));
  }
});

test("a response in the background is polled and cancelled, also while it is queued", async () => {
  const conversation = "line";
  const one = await client.responses.create({ model, input: "slow", background: true, conversation });
  expect(one.status).toBe("queued");
  await until(async () => ((await client.responses.retrieve(one.id)).output.length > 0 ? true : undefined));
  const queued = await client.responses.create({ model, input: "later", background: true, conversation });
  expect((await client.responses.retrieve(queued.id)).status).toBe("queued");
  expect((await client.responses.cancel(queued.id)).status).toBe("cancelled");
  expect((await client.responses.cancel(one.id)).status).toBe("cancelled");
  expect((await client.responses.retrieve(one.id)).status).toBe("cancelled");
  expect((await client.responses.retrieve(one.id)).background).toBeNull();
  const events = await allOf(await client.responses.retrieve(queued.id, { stream: true }));
  expect(events.at(-1)).toMatchObject({ type: "response.incomplete", response: { status: "cancelled" } });
});

test("a response is not found once its events are gone, nor where no calls waited", async () => {
  const { id } = await client.responses.create({ model: "default", input: "hello" });
  for (const suffix of ["_0", "_1", "_3", "_999999"])
    for (const stream of [false, true])
      expect((await refusal(client.responses.retrieve(`${id}${suffix}`, { stream }))).status).toBe(404);
  await served.send("/agents/default/default", { method: "DELETE" });
  for (const stream of [false, true])
    expect((await refusal(client.responses.retrieve(id, { stream }))).status).toBe(404);
});

test("a sender that may not read a response can neither retrieve nor cancel it", async () => {
  const guarded = await serveService({ authorize: ({ action }) => action !== "agent.read" });
  try {
    const { responses } = clientOf(guarded);
    const { id } = await responses.create({ model, input: "secret" });
    for (const attempt of [responses.retrieve(id), responses.cancel(id)])
      expect((await refusal(attempt)).status).toBe(404);
  } finally {
    await guarded.close();
  }
});

test("keys are those of kit, models are those that a sender may prompt, and ids of others are not found", async () => {
  const guarded = await serveService({
    access: {
      auth: ({ headers }) => ({ id: /Bearer (\S+)/.exec(headers.get("authorization") ?? "")?.[1] ?? "" }),
    },
    authorize: ({ principal, agent, action }) =>
      principal?.id !== "" && (principal?.id !== "eve" || agent !== "careful") && action !== "agent.delete",
  });
  try {
    const [ann, eve] = [clientOf(guarded, "ann"), clientOf(guarded, "eve")];
    expect((await eve.models.list()).data.map(({ id }) => id)).toEqual(["default", "echo"]);
    expect((await refusal(eve.chat.completions.create({ ...chat("x"), model: "careful" }))).status).toBe(403);
    const { id } = await ann.responses.create({ model, input: "secret" });
    expect((await ann.responses.retrieve(id)).output_text).toBe("secret");
    for (const attempt of [
      eve.responses.retrieve(id),
      eve.responses.cancel(id),
      eve.responses.create({ model, input: "x", previous_response_id: id }),
      eve.responses.create({
        model,
        input: [{ type: "item_reference", id: `${id.replace("resp", "msg")}-1` }, user("x")],
      }),
    ])
      expect((await refusal(attempt)).status).toBe(404);
  } finally {
    await guarded.close();
  }
});

test("a key that is missing and a limit that is reached have OpenAI's errors", async () => {
  const guarded = await serveService({
    access: { apiKeys: ["right"] },
    rateLimit: { requests: 2, per_seconds: 60 },
  });
  try {
    const wrong = await refusal(clientOf(guarded, "wrong").models.list());
    expect([wrong.status, wrong.code]).toEqual([401, "invalid_api_key"]);
    const right = clientOf(guarded, "right");
    await right.models.list();
    await right.models.list();
    const limited = await refusal(right.models.list());
    expect([limited.status, limited.type]).toEqual([429, "rate_limit_error"]);
  } finally {
    await guarded.close();
  }
});

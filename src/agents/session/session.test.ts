import type { LanguageModelV4StreamPart } from "@ai-sdk/provider";
import { expect, test } from "vitest";
import type { KitEvent } from "../../protocol/event.ts";
import { textOf } from "../../protocol/read-records.ts";
import { InMemorySessionStore } from "../../stores/memory/memory-store.ts";
import { readAll } from "../../testing/read-all.ts";
import { createScriptedModel } from "../../testing/scripted-model.ts";
import { createTestAgent } from "../../testing/test-runtime.ts";
import { defineTool } from "../define/tool.ts";
import { defaultModelRetryPolicy } from "../turn/retry.ts";

const noTokens = {
  inputTokens: { total: 0, noCache: 0, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 0, text: 0, reasoning: 0 },
};

const clock = defineTool({
  name: "clock",
  description: "Tells the time.",
  input: { type: "object" },
  execute: () => "12:00",
});

test("a session answers a prompt, and the next prompt continues the conversation", async () => {
  const model = createScriptedModel([{ text: "Hello." }, { text: "You said hi." }]);
  const session = createTestAgent(model).session();
  expect((await session.prompt("hi")).text).toBe("Hello.");
  expect((await session.prompt("what did I say?")).text).toBe("You said hi.");
  expect((await session.history()).map((message) => message.role)).toEqual([
    "user",
    "assistant",
    "user",
    "assistant",
  ]);
});

test("an agent in another process continues a session from the same store", async () => {
  const store = new InMemorySessionStore();
  await createTestAgent(createScriptedModel([{ text: "one" }]), {}, { store })
    .session("a")
    .prompt("1");
  const model = createScriptedModel([{ text: "two" }]);
  await createTestAgent(model, {}, { store }).session("a").prompt("2");
  expect(model.calls[0]?.prompt.map((message) => message.role)).toEqual([
    "system",
    "user",
    "assistant",
    "user",
  ]);
});

test("two agents with the same instance and session names share nothing", async () => {
  const store = new InMemorySessionStore();
  await createTestAgent(createScriptedModel([{ text: "x" }]), {}, { store, name: "first" })
    .session()
    .prompt("secret");
  expect(
    await createTestAgent(createScriptedModel([]), {}, { store, name: "second" }).session().history(),
  ).toEqual([]);
});

test("the agent runs tool calls and sends their results to the model", async () => {
  const model = createScriptedModel([
    { toolCalls: [{ name: "clock" }, { name: "clock", id: "b" }] },
    { text: "Noon." },
  ]);
  const result = await createTestAgent(model, { tools: [clock] })
    .session()
    .prompt("time?");
  expect(result.text).toBe("Noon.");
  expect(result.metadata.turns).toBe(2);
  expect(result.messages.map((message) => message.role)).toEqual(["user", "assistant", "tool", "assistant"]);
});

test("a session runs its operations one at a time, in the order of the calls", async () => {
  const order: string[] = [];
  const model = createScriptedModel(async (_call, index) => {
    order.push(`start ${index}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
    order.push(`end ${index}`);
    return { text: String(index) };
  });
  const session = createTestAgent(model).session();
  const results = await Promise.all(["a", "b", "c"].map((text) => session.prompt(text)));
  expect(results.map((result) => result.text)).toEqual(["0", "1", "2"]);
  expect(order).toEqual(["start 0", "end 0", "start 1", "end 1", "start 2", "end 2"]);
});

test("a session with a full queue refuses the next operation", async () => {
  const model = createScriptedModel(() => ({ text: "x", delayMs: 5 }));
  const session = createTestAgent(model, {}, { maxWaitingOperations: 2 }).session();
  const results = await Promise.allSettled(["1", "2", "3", "4"].map((text) => session.prompt(text)));
  expect(results.map((result) => result.status)).toEqual(["fulfilled", "fulfilled", "fulfilled", "rejected"]);
  expect(results[3]).toMatchObject({ reason: { code: "too_many_requests", meta: { retry_after_s: 5 } } });
});

test("an abort during a tool call leaves a history that the next prompt can use", async () => {
  const forever = defineTool({
    name: "forever",
    description: "Never ends, and ignores its signal.",
    input: { type: "object" },
    execute: () => new Promise<string>(() => undefined),
  });
  const model = createScriptedModel([{ toolCalls: [{ name: "forever" }] }, { text: "Back." }]);
  const session = createTestAgent(model, { tools: [forever] }).session();
  const events: KitEvent[] = [];
  const stream = session.stream("go");
  await readAll(stream, async (event) => {
    events.push(event);
    if (event.type === "tool_start") await session.abort();
  });
  await expect(stream.result).rejects.toMatchObject({ code: "aborted" });
  expect(events.map((event) => event.type)).toContain("aborted");
  expect((await session.prompt("again")).text).toBe("Back.");
  const history = await session.history();
  expect(history[2]?.content[0]).toMatchObject({ type: "tool_result", is_error: true });
});

test("an abort during an answer keeps the text received until then", async () => {
  const model = createScriptedModel((_call, index) =>
    index === 0 ? { deltas: ["a", "b", "c", "d"], delayMs: 20 } : { text: "next" },
  );
  const session = createTestAgent(model).session();
  const stream = session.stream("go");
  await readAll(stream, (event) => {
    if (event.type === "text_delta" && event.text === "b") void session.abort();
  });
  await expect(stream.result).rejects.toMatchObject({ code: "aborted" });
  expect((await session.prompt("again")).text).toBe("next");
  expect((await session.history())[1]).toMatchObject({ finish_reason: "aborted", content: [{ text: "ab" }] });
});

test("a call that a killed process left without a result is closed as unknown", async () => {
  const store = new InMemorySessionStore();
  const key = { agent: "tester", instance_id: "1", session: "default" };
  await createTestAgent(
    createScriptedModel([{ toolCalls: [{ name: "clock", id: "c1" }] }, { text: "" }]),
    { tools: [clock] },
    { store },
  )
    .session()
    .prompt("x");
  const entries = store.read(key).slice(0, 2);
  store.delete(key);
  store.append({ key, expected: 0, entries });
  const model = createScriptedModel([{ text: "I will check." }]);
  await createTestAgent(model, { tools: [clock] }, { store })
    .session()
    .prompt("go on");
  expect(store.read(key)[2]).toMatchObject({
    message: { role: "tool", content: [{ tool_call_id: "c1", outcome: "unknown" }] },
  });
});

test("an answer that stops inside a surrogate pair leaves a history that providers can read", async () => {
  const model = createScriptedModel([
    { deltas: ["Look: \u{1F600}".slice(0, -1), "never"], error: new Error("gone"), failAfter: 3 },
    { text: "ok" },
  ]);
  const session = createTestAgent(
    model,
    {},
    { retry: { ...defaultModelRetryPolicy, attempts: 1 } },
  ).session();
  await expect(session.prompt("hi")).rejects.toMatchObject({ code: "model_error" });
  await session.prompt("again");
  const said = (await session.history()).map((message) => textOf(message));
  expect(said[1]).toMatch(/^Look: /);
  expect(said.every((text) => text.isWellFormed())).toBe(true);
});

test("a listener for listener errors that throws does not fail the operation", async () => {
  const fails = () => {
    throw new Error("again");
  };
  const model = createScriptedModel([{ text: "ok" }]);
  const agent = createTestAgent(model, { onEvent: fails }, { onListenerError: fails });
  expect((await agent.session().prompt("hi")).text).toBe("ok");
});

test("a listener that throws does not affect the run, and other listeners get every event in order", async () => {
  const events: KitEvent[] = [];
  const model = createScriptedModel([{ text: "ok", toolCalls: [{ name: "clock" }] }, { text: "done" }]);
  const agent = createTestAgent(model, {
    tools: [clock],
    onEvent: () => {
      throw new Error("listener");
    },
  });
  agent.onEvent((event) => events.push(event));
  await agent.session().prompt("x");
  expect(events.map((event) => event.type)).toEqual([
    "operation_start",
    "agent_start",
    "turn_request",
    "text_delta",
    "turn",
    "tool_start",
    "tool_end",
    "turn_end",
    "turn_request",
    "text_delta",
    "turn",
    "turn_end",
    "operation",
    "idle",
  ]);
  expect(events.map((event) => event.index)).toEqual(events.map((_event, position) => position + 1));
  const origins = events.map(({ agent, instance_id, session, operation_id }) =>
    [agent, instance_id, session, operation_id].join(" "),
  );
  expect(new Set(origins)).toEqual(new Set([expect.stringMatching(/^tester 1 default op_\w+$/)]));
  for (const event of events) if ("duration_ms" in event) expect(event.duration_ms % 1).toBe(0);
});

test("a transient failure is retried, and the answer is stored once", async () => {
  const model = createScriptedModel([
    {
      error: Object.assign(new Error("busy"), {
        statusCode: 429,
        responseHeaders: { "retry-after-ms": "1" },
      }),
    },
    { deltas: ["half"], error: new Error("connection lost"), failAfter: 2 },
    { text: "whole" },
  ]);
  const session = createTestAgent(model).session();
  expect((await session.prompt("x")).text).toBe("whole");
  expect(await session.history()).toHaveLength(2);
});

test("a permanent failure is not retried, and its error does not show the provider's text", async () => {
  const model = createScriptedModel([
    { error: Object.assign(new Error("key sk-123 is wrong"), { statusCode: 401 }) },
  ]);
  const events: KitEvent[] = [];
  const agent = createTestAgent(model);
  agent.onEvent((event) => events.push(event));
  await expect(agent.session().prompt("x")).rejects.toMatchObject({
    code: "model_error",
    message: "The model's provider answered with status 401.",
  });
  expect(model.calls).toHaveLength(1);
  const said = events.find((event) => event.type === "error");
  expect(said).toMatchObject({ will_retry: false, error: { type: "model_error" } });
  expect(said).not.toHaveProperty("retry_in_ms");
});

test("a model that sends nothing until the idle timeout fails with `model_timeout`", async () => {
  const model = createScriptedModel(() => ({ text: "never", delayMs: 60_000 }));
  const agent = createTestAgent(
    model,
    {},
    { modelIdleTimeoutMs: 20, retry: { attempts: 1, baseDelayMs: 1, maxDelayMs: 1 } },
  );
  await expect(agent.session().prompt("x")).rejects.toMatchObject({ code: "model_timeout" });
});

test("a model that keeps sending does not time out, however long its answer takes", async () => {
  const words = Array.from({ length: 12 }, (_, index) => `word ${index} `);
  const speaking = createScriptedModel([]);
  const answer = async function* (): AsyncGenerator<LanguageModelV4StreamPart> {
    yield { type: "text-start", id: "1" };
    for (const delta of words) {
      await new Promise((resolve) => setTimeout(resolve, 20));
      yield { type: "text-delta", id: "1", delta };
    }
    yield { type: "finish", finishReason: { unified: "stop", raw: "stop" }, usage: noTokens };
  };
  const model = { ...speaking, doStream: async () => ({ stream: ReadableStream.from(answer()) }) };
  const once = { attempts: 1, baseDelayMs: 1, maxDelayMs: 1 };
  const agent = createTestAgent(model, {}, { modelIdleTimeoutMs: 150, retry: once });
  expect((await agent.session().prompt("x")).text).toBe(words.join(""));
});

test("a model that sends nothing after a slow tool, or after an earlier timeout, times out", async () => {
  const slow = defineTool({
    name: "slow",
    description: "Takes longer than a model may be silent.",
    input: { type: "object" },
    execute: async () => {
      await new Promise((resolve) => setTimeout(resolve, 60));
      return "done";
    },
  });
  const model = createScriptedModel((_call, index) =>
    index === 0 ? { toolCalls: [{ name: "slow" }] } : { text: "never", delayMs: 60_000 },
  );
  const agent = createTestAgent(
    model,
    { tools: [slow] },
    { modelIdleTimeoutMs: 20, retry: { attempts: 2, baseDelayMs: 1, maxDelayMs: 1 } },
  );
  await expect(agent.session().prompt("x")).rejects.toMatchObject({ code: "model_timeout" });
  expect(model.calls).toHaveLength(3);
});

test("a stream that is aborted ends its iteration with the error of its result", async () => {
  const reason = new Error("The user left.");
  const controller = new AbortController();
  const model = createScriptedModel([{ text: "one two three", delayMs: 20 }, { error: "broken" }]);
  const session = createTestAgent(model, { instructions: "x" }).session();
  const stream = session.stream("x", { signal: controller.signal });
  const read = async (): Promise<void> => {
    for await (const event of stream) if (event.type === "text_delta") controller.abort(reason);
  };
  const aborted = { name: "KitError", code: "aborted", cause: reason };
  await expect(read()).rejects.toMatchObject(aborted);
  await expect(stream.result).rejects.toMatchObject(aborted);
  await expect(session.prompt("x", { signal: controller.signal })).rejects.toMatchObject(aborted);
});

test("a stream that fails ends its iteration with the error of its result", async () => {
  const model = createScriptedModel([{ error: Object.assign(new Error("no"), { statusCode: 401 }) }]);
  const stream = createTestAgent(model, { instructions: "x" }).session().stream("x");
  const types: string[] = [];
  const read = async (): Promise<void> => {
    for await (const { type } of stream) types.push(type);
  };
  await expect(read()).rejects.toMatchObject({ code: "model_error" });
  expect(types.at(-1)).toBe("idle");
});

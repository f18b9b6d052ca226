import { expect, test } from "vitest";
import { KitError } from "../../base/kit-error.ts";
import type { Message } from "../../protocol/message.ts";
import { textOf } from "../../protocol/read-records.ts";
import { InMemorySessionStore } from "../../stores/memory/memory-store.ts";
import { SqliteSessionStore } from "../../stores/sqlite/sqlite-store.ts";
import { readAll } from "../../testing/read-all.ts";
import { createScriptedModel, type ScriptedModel, type ScriptedTurn } from "../../testing/scripted-model.ts";
import { createTestAgent } from "../../testing/test-runtime.ts";
import { defineTool } from "../define/tool.ts";
import type { Agent } from "../harness.ts";
import type { PromptResult } from "../operations/options.ts";
import type { Session } from "./session.ts";

const key = { agent: "tester", instance_id: "1", session: "default" };

function messagesOf(store: SqliteSessionStore): readonly Message[] {
  return store.read(key).flatMap((entry) => (entry.type === "message" ? [entry.message] : []));
}

test("a process that lost its lease to another process appends nothing to the history", async () => {
  const store = new SqliteSessionStore({ file: ":memory:" });
  const stop = new AbortController();
  const lost = new KitError({ code: "lease_lost", message: "Another process does the work." });
  const model = createScriptedModel([{ deltas: ["a", "b", "c"] }]);
  const agent = createTestAgent(model, {}, { store });
  const stream = agent.session().stream("begin", { operationId: "op_1", signal: stop.signal });
  await readAll(stream, (event) => {
    if (event.type === "text_delta" && event.text === "b") stop.abort(lost);
  });
  await expect(stream.result).rejects.toBe(lost);
  expect(messagesOf(store).map((message) => message.role)).toEqual(["user"]);
  store.close();
});

test("an interrupted answer is continued when the operation resumes", async () => {
  const store = new SqliteSessionStore({ file: ":memory:" });
  const model = createScriptedModel((_call, index) =>
    index === 0 ? { deltas: ["a", "b", "c"], delayMs: 1 } : { text: "c d" },
  );
  const agent = createTestAgent(model, {}, { store });
  const stream = agent.session().stream("begin", { operationId: "op_1" });
  await readAll(stream, (event) => {
    if (event.type === "text_delta" && event.text === "b") void agent.session().abort();
  });
  await expect(stream.result).rejects.toMatchObject({ code: "aborted" });
  const result = await agent.session().prompt("begin", { operationId: "op_1" });
  expect(result.text).toBe("c d");
  expect(result.metadata.turns).toBe(2);
  expect(messagesOf(store).map((message) => message.role)).toEqual([
    "user",
    "assistant",
    "user",
    "assistant",
  ]);
  store.close();
});

test("a finished operation returns its logged answer without a model call, in the same or another process", async () => {
  const store = new SqliteSessionStore({ file: ":memory:" });
  const first = createTestAgent(
    createScriptedModel([{ text: "yes", usage: { input: 3, output: 1 } }]),
    {},
    { store },
  );
  const answered = await first.session().prompt("begin", { operationId: "op_1" });
  expect(await first.session().prompt("begin", { operationId: "op_1" })).toEqual({
    ...answered,
    metadata: { ...answered.metadata, duration_ms: expect.any(Number) },
  });
  const second = createTestAgent(createScriptedModel([]), {}, { store });
  const again = await second.session().prompt("begin", { operationId: "op_1" });
  expect(again).toMatchObject({ text: "yes", usage: { total_tokens: 4 }, model: { id: "scripted/test" } });
  expect(again.messages).toEqual(answered.messages);
  store.close();
});

test("a finished operation returns its answer after later operations, also those of another process", async () => {
  const store = new SqliteSessionStore({ file: ":memory:" });
  const words = (): ScriptedModel => createScriptedModel(() => ({ text: "ok" }));
  const mine = createTestAgent(words(), {}, { store });
  await mine.session().prompt("one", { operationId: "op_1" });
  await createTestAgent(words(), {}, { store }).session().prompt("two", { operationId: "op_2" });
  const again = await mine.session().prompt("one", { operationId: "op_1" });
  expect(again.messages.map(textOf)).toEqual(["one", "ok"]);
  expect((await mine.session().prompt("two", { operationId: "op_2" })).messages).toHaveLength(2);
  expect(messagesOf(store)).toHaveLength(4);
  store.close();
});

test.each(["", "a b", "x".repeat(129), "op/1"])("the operation id %j is refused", async (operationId) => {
  const session = createTestAgent(createScriptedModel([])).session();
  await expect(session.prompt("x", { operationId })).rejects.toMatchObject({ code: "invalid_request" });
});

test("tokens spent before a crash count against the budget", async () => {
  const store = new SqliteSessionStore({ file: ":memory:" });
  const clock = defineTool({
    name: "clock",
    description: "",
    input: { type: "object" },
    execute: () => "12:00",
  });
  const turn = (): ScriptedTurn => ({ toolCalls: [{ name: "clock" }], usage: { input: 30, output: 10 } });
  const ask = (script: readonly ScriptedTurn[]): Promise<PromptResult<undefined>> =>
    createTestAgent(createScriptedModel(script), { tools: [clock] }, { store })
      .session()
      .prompt("begin", { operationId: "op_1", budget: { maxTokens: 100 } });
  // The script has only two turns.
  await expect(ask([turn(), turn()])).rejects.toMatchObject({ code: "invalid_request" });
  await expect(ask([turn(), turn()])).rejects.toMatchObject({ code: "budget_exceeded" });
  store.close();
});

test("a compaction that is repeated with the same id runs once", async () => {
  const store = new SqliteSessionStore({ file: ":memory:" });
  const model = createScriptedModel(() => ({ text: "words" }));
  const session = createTestAgent(model, { compaction: { keepRecentTokens: 1 } }, { store }).session();
  await session.prompt("one");
  await session.prompt("two");
  expect(await session.compact({ operationId: "op_c" })).toBe(true);
  const calls = model.calls.length;
  expect(await session.compact({ operationId: "op_c" })).toBe(true);
  expect(model.calls).toHaveLength(calls);
  store.close();
});

test("a skill or a task that is repeated with the same id resumes", async () => {
  const store = new SqliteSessionStore({ file: ":memory:" });
  const model = createScriptedModel(() => ({ text: "done", usage: { input: 2, output: 1 } }));
  const session = createTestAgent(model, {}, { store }).session();
  const skill = { name: "sum", description: "Sums.", instructions: "Sum." };
  await session.skill(skill, { operationId: "op_s" });
  expect((await session.skill(skill, { operationId: "op_s" })).text).toBe("done");
  expect(model.calls).toHaveLength(1);
  const task = await session.task("part", { operationId: "op_t" });
  expect(await session.task("part", { operationId: "op_t" })).toMatchObject({
    text: "done",
    usage: task.usage,
  });
  expect(model.calls).toHaveLength(2);
  store.close();
});

test("suspended work resumes in the middle of an answer or of a task", async () => {
  const store = new SqliteSessionStore({ file: ":memory:" });
  const later = new KitError({ code: "aborted", message: "Stopping.", meta: { will_resume: true } });
  const seen: string[] = [];
  const model = createScriptedModel(({ prompt }) => {
    const isChild = JSON.stringify(prompt[1]).includes("part");
    const results = prompt.filter((message) => message.role === "tool").length;
    seen.push(`${isChild ? "child" : "parent"} ${results}`);
    if (!isChild)
      return results === 0 ? { toolCalls: [{ name: "task", input: { prompt: "part" } }] } : { text: "all" };
    return results === 0 ? { toolCalls: [{ name: "look" }] } : { deltas: ["ha", "lf"] };
  });
  const inspect = defineTool({
    name: "look",
    description: "",
    input: { type: "object" },
    execute: () => "seen",
  });
  const session = (): Session => createTestAgent(model, { tools: [inspect] }, { store }).session();
  const stop = new AbortController();
  const stream = session().stream("begin", { operationId: "op_1", signal: stop.signal });
  await readAll(stream, (event) => {
    if (event.type === "text_delta") stop.abort(later);
  });
  await expect(stream.result).rejects.toBe(later);
  expect(seen).toEqual(["parent 0", "child 0", "child 1"]);
  const { text, messages } = await session().prompt("begin", { operationId: "op_1" });
  expect(text).toBe("all");
  expect(messages[2]?.content).toMatchObject([{ is_error: false, content: [{ text: "half" }] }]);
  expect(seen.slice(3)).toEqual(["child 1", "parent 1"]);
  store.close();
});

test("after a crash, built-in tools that only read run again and those that write do not", async () => {
  const store = new SqliteSessionStore({ file: ":memory:" });
  const calls = [
    { name: "read", id: "read", input: { path: "a.txt" } },
    { name: "write", id: "write", input: { path: "a.txt", content: "x" } },
  ];
  const script: readonly ScriptedTurn[] = [{ toolCalls: calls }, { text: "done" }];
  const agent = (turns: readonly ScriptedTurn[]): Agent =>
    createTestAgent(createScriptedModel(turns), { allowWrite: true }, { store });
  await agent(script).session().prompt("begin", { operationId: "op_1" });
  const crashed = store.read(key).slice(0, 2);
  await store.delete(key);
  await store.append({ key, expected: 0, entries: crashed });
  const again = agent(script.slice(1)).session();
  const { messages } = await again.prompt("begin", { operationId: "op_1" });
  // This agent has no sandbox, so a tool that runs again returns that error.
  expect(messages[2]?.content).toMatchObject([
    { tool: "read", content: [{ text: "This test has no sandbox." }] },
    { tool: "write", outcome: "unknown" },
  ]);
  store.close();
});

test("an operation with a new id does not read the log", async () => {
  let reads = 0;
  class WatchedStore extends InMemorySessionStore {
    override read(...args: Parameters<InMemorySessionStore["read"]>) {
      reads += 1;
      return super.read(...args);
    }
  }
  const session = createTestAgent(
    createScriptedModel(() => ({ text: "ok" })),
    {},
    { store: new WatchedStore() },
  ).session();
  await session.prompt("one", { operationId: "op_1", resumes: false });
  await session.prompt("two", { operationId: "op_2", resumes: false });
  // One read, of the history.
  expect(reads).toBe(1);
  await session.prompt("two", { operationId: "op_2" });
  expect(reads).toBeGreaterThan(1);
  await expect(session.prompt("x", { resumes: "no" as never })).rejects.toMatchObject({
    code: "invalid_request",
  });
});

import { setTimeout as delay } from "node:timers/promises";
import fc from "fast-check";
import { expect, test } from "vitest";
import type { Message } from "../../protocol/message.ts";
import { textOf } from "../../protocol/read-records.ts";
import type { MaybePromise, SessionStore } from "../../stores/contract.ts";
import { InMemorySessionStore } from "../../stores/memory/memory-store.ts";
import { SqliteSessionStore } from "../../stores/sqlite/sqlite-store.ts";
import { rounds } from "../../testing/campaign.suite.ts";
import { createScriptedModel, type ScriptedTurn } from "../../testing/scripted-model.ts";
import { createTestAgent } from "../../testing/test-runtime.ts";
import { defineTool } from "../define/tool.ts";
import type { Agent } from "../harness.ts";

const key = { agent: "tester", instance_id: "1", session: "default" };

async function messagesOf(store: SessionStore): Promise<readonly Message[]> {
  return (await store.read(key)).flatMap((entry) => (entry.type === "message" ? [entry.message] : []));
}

/** The messages as `u:text` for users and `a:text` for answers; those that kit wrote as `kit`. */
async function messagesIn(store: SessionStore): Promise<readonly string[]> {
  return (await messagesOf(store)).map((message) => {
    if (message.role === "user" && message.source !== undefined) return "kit";
    return `${message.role[0]}:${textOf(message)}`;
  });
}

/** Expects each input once, and the results of the calls directly after each message with calls. */
function checkConversation(messages: readonly Message[], inputs: readonly string[]): void {
  const said = messages.flatMap((message) =>
    message.role === "user" && message.source === undefined ? [textOf(message)] : [],
  );
  expect([...said].sort()).toEqual([...inputs].sort());
  messages.forEach((message, index) => {
    if (message.role !== "assistant") return;
    const calls = message.content.flatMap((part) => (part.type === "tool_call" ? [part.tool_call_id] : []));
    if (calls.length === 0) return;
    const next = messages[index + 1];
    expect(next?.role).toBe("tool");
    expect(next?.role === "tool" && next.content.map((part) => part.tool_call_id)).toEqual(calls);
  });
  const results = messages.filter(({ role }) => role === "tool").length;
  const asked = messages.filter(
    ({ role, content }) => role === "assistant" && content.some((part) => part.type === "tool_call"),
  );
  expect(results).toBe(asked.length);
}

/** An agent in another process, with one answer to all. */
const otherWriter = (store: InMemorySessionStore, text: string) =>
  createTestAgent(
    createScriptedModel(() => ({ text })),
    {},
    { store },
  );

test("an answer that comes after another process's work is appended after it, and its input is stored once", async () => {
  const store = new InMemorySessionStore();
  const other = otherWriter(store, "b");
  const mine = createTestAgent(
    createScriptedModel(async () => {
      await other.session().prompt("b");
      return { text: "slow" };
    }),
    {},
    { store },
  );
  expect((await mine.session().prompt("slow")).text).toBe("slow");
  expect(await messagesIn(store)).toEqual(["u:slow", "u:b", "a:b", "kit", "a:slow"]);
  expect((await mine.session().prompt("again")).text).toBe("slow");
});

test("results of calls that another process closed reach the model as text, and no tool runs twice", async () => {
  const store = new InMemorySessionStore();
  const other = otherWriter(store, "b");
  let runs = 0;
  const inspect = defineTool({
    name: "look",
    description: "",
    input: { type: "object" },
    async execute() {
      runs += 1;
      await other.session().prompt("b");
      return "It is seven.";
    },
  });
  const model = createScriptedModel([{ toolCalls: [{ name: "look" }] }, { text: "seven" }]);
  const mine = createTestAgent(model, { tools: [inspect] }, { store });
  expect((await mine.session().prompt("look")).text).toBe("seven");
  expect(runs).toBe(1);
  checkConversation(await messagesOf(store), ["look", "b"]);
  expect(JSON.stringify(model.calls[1]?.prompt)).toContain("It is seven.");
});

test("a process writes nothing when another process has finished the same operation", async () => {
  const store = new InMemorySessionStore();
  const again = otherWriter(store, "theirs");
  const mine = createTestAgent(
    createScriptedModel(async () => {
      await again.session().prompt("begin", { operationId: "op_1" });
      return { text: "mine" };
    }),
    {},
    { store },
  );
  const work = mine.session().prompt("begin", { operationId: "op_1" });
  await expect(work).rejects.toMatchObject({ code: "conflict" });
  expect(await messagesIn(store)).toEqual(["u:begin", "a:theirs"]);
  expect((await mine.session().prompt("begin", { operationId: "op_1" })).text).toBe("theirs");
});

// Slow reads let several processes append the same input at the same time.
test("an input that several processes append at the same time is stored once", async () => {
  const store = new InMemorySessionStore();
  const late: SessionStore = {
    append: (request) => store.append(request),
    read: async (of, after) => {
      const entries = store.read(of, after);
      await delay(5);
      return entries;
    },
    info: (of) => store.info(of),
    list: (filter) => store.list(filter),
    delete: (of) => store.delete(of),
    close: () => undefined,
  };
  const agent = (of: SessionStore): Agent =>
    createTestAgent(
      createScriptedModel(() => ({ text: "ok", delayMs: 2 })),
      {},
      { store: of },
    );
  const ended = await Promise.allSettled(
    [late, late, store].map((of) => agent(of).session().prompt("one", { operationId: "op_1" })),
  );
  expect(ended.some(({ status }) => status === "fulfilled")).toBe(true);
  expect((await messagesIn(store)).filter((line) => line === "u:one")).toHaveLength(1);
});

test("a compaction by another process leaves the input stored, and the model reads its text again", async () => {
  const store = new InMemorySessionStore();
  const profile = { compaction: { keepRecentTokens: 1 } };
  const broken = createTestAgent(createScriptedModel([]), {}, { store });
  await expect(broken.session().prompt("the first words", { operationId: "op_1" })).rejects.toThrow();
  const other = createTestAgent(
    createScriptedModel(() => ({ text: "x" })),
    profile,
    { store },
  );
  await other.session().prompt("second");
  await other.session().compact();
  const model = createScriptedModel([{ text: "first" }]);
  const mine = createTestAgent(model, {}, { store });
  const reply = await mine.session().prompt("the first words", { operationId: "op_1" });
  expect(reply.text).toBe("first");
  expect(reply.messages.map(({ role }) => role)).toEqual(["user", "user", "assistant"]);
  expect(JSON.stringify(model.calls[0]?.prompt.at(-1))).toContain("the first words");
  expect((await messagesIn(store)).filter((line) => line === "u:the first words")).toHaveLength(1);
});

test("the history includes what another process wrote or deleted, also while an operation runs", async () => {
  const store = new SqliteSessionStore({ file: ":memory:" });
  const [mine, other] = ["a", "b"].map((text) =>
    createTestAgent(
      createScriptedModel(() => ({ text })),
      {},
      { store },
    ),
  ) as [Agent, Agent];
  const texts = async (): Promise<readonly string[]> => (await mine.session().history()).map(textOf);
  await mine.session().prompt("one");
  await other.session().prompt("two");
  expect(await texts()).toEqual(["one", "a", "two", "b"]);
  await mine.session().prompt("three");
  expect(await texts()).toEqual(["one", "a", "two", "b", "three", "a"]);
  await store.delete(key);
  expect(await texts()).toEqual([]);
  const slow = createTestAgent(
    createScriptedModel(async () => {
      await other.session().prompt("meanwhile");
      expect((await slow.session().history()).map(textOf)).toEqual(["slow", "meanwhile", "b"]);
      return { text: "done" };
    }),
    {},
    { store },
  );
  await slow.session().prompt("slow");
  expect((await texts()).at(-1)).toBe("done");
  store.close();
});

test("however two processes interleave, each input is stored once and every call has its results", async () => {
  const turn = fc.record({ calls: fc.nat({ max: 2 }), delay: fc.nat({ max: 3 }) });
  const work = fc.array(fc.array(turn, { maxLength: 2 }), { minLength: 1, maxLength: 3 });
  await fc.assert(
    fc.asyncProperty(fc.tuple(work, work), fc.boolean(), async (writers, isAsync) => {
      const memory = new InMemorySessionStore();
      const store = isAsync ? slowly(memory) : memory;
      const inputs = writers.flatMap((works, writer) => works.map((_, index) => `input ${writer} ${index}`));
      await Promise.all(
        writers.map(async (works, writer) => {
          for (const [index, turns] of works.entries()) {
            const agent = writerOf(store, turns);
            const reply = await agent.session().prompt(`input ${writer} ${index}`);
            expect(reply.text).toBe("done");
          }
        }),
      );
      checkConversation(await messagesOf(store), inputs);
    }),
    { numRuns: rounds(10, 40) },
  );
});

function writerOf(store: SessionStore, turns: readonly { calls: number; delay: number }[]): Agent {
  const model = createScriptedModel(async (_call, index): Promise<ScriptedTurn> => {
    const turn = turns[index];
    await delay(turn?.delay ?? 0);
    if (turn === undefined || turn.calls === 0) return { text: "done" };
    return { toolCalls: Array.from({ length: turn.calls }, () => ({ name: "wait" })) };
  });
  const wait = defineTool({
    name: "wait",
    description: "",
    input: { type: "object" },
    execute: async () => {
      await delay(1);
      return "waited";
    },
  });
  return createTestAgent(model, { tools: [wait] }, { store });
}

/** The same store with asynchronous calls, like a store over a network. */
function slowly(store: SessionStore): SessionStore {
  const later = async <Value>(work: () => MaybePromise<Value>): Promise<Value> => {
    await delay(0);
    const value = await work();
    await delay(0);
    return value;
  };
  return {
    append: (request) => later(() => store.append(request)),
    read: (of, after) => later(() => store.read(of, after)),
    info: (of) => later(() => store.info(of)),
    list: (filter) => later(() => store.list(filter)),
    delete: (of) => later(() => store.delete(of)),
    close: () => undefined,
  };
}

import { expect, test } from "vitest";
import { InMemorySessionStore } from "../../stores/memory/memory-store.ts";
import { createScriptedModel } from "../../testing/scripted-model.ts";
import { createTestAgent } from "../../testing/test-runtime.ts";

const echo = () =>
  createScriptedModel(({ prompt }) => ({ text: `${prompt.filter(({ role }) => role === "user").length}` }));

test("an agent creates, finds, lists and deletes sessions by name", async () => {
  const agent = createTestAgent(echo());
  expect(await agent.sessions.get("plan")).toBeUndefined();
  const plan = await agent.sessions.create("plan");
  await plan.prompt("one");
  await agent.session().prompt("hello");
  await expect(agent.sessions.create("plan")).rejects.toMatchObject({ code: "conflict" });
  expect((await agent.sessions.list()).map(({ session }) => session).sort()).toEqual(["default", "plan"]);
  expect((await (await agent.sessions.get("plan"))?.prompt("two"))?.text).toBe("2");
  await agent.sessions.delete("plan");
  expect(await agent.sessions.get("plan")).toBeUndefined();
  expect((await plan.prompt("anew")).text).toBe("1");
});

test.each(["", ".", "..", "a/b", "a\\b", "a\u0000b", "a\ud800", "x".repeat(129), 7 as never])(
  "the session name %j is refused",
  (name) => {
    expect(() => createTestAgent(echo()).session(name)).toThrow("A session's name");
  },
);

test("the agent evicts idle sessions above its limit and reads them from the store on the next prompt", async () => {
  const read: string[] = [];
  class WatchedStore extends InMemorySessionStore {
    override read(...args: Parameters<InMemorySessionStore["read"]>) {
      read.push(args[0].session);
      return super.read(...args);
    }
  }
  const agent = createTestAgent(echo(), {}, { store: new WatchedStore(), maxIdleSessions: 2 });
  for (const name of ["a", "b", "c", "a"]) await agent.session(name).prompt("hi");
  // "a" was evicted for "c" and read again, with its complete history.
  expect(read.filter((name) => name === "a")).toHaveLength(2);
  expect(await agent.session("a").history()).toHaveLength(4);
});

test("a closed agent refuses prompts, and closing with `drain` finishes the running ones first", async () => {
  const { promise, resolve } = Promise.withResolvers<void>();
  const slow = createScriptedModel(async () => {
    await promise;
    return { text: "late" };
  });
  const agent = createTestAgent(slow);
  const answer = agent.session().prompt("x");
  const closed = agent.close({ drain: true });
  expect(agent.busy).toBe(true);
  resolve();
  expect((await answer).text).toBe("late");
  await closed;
  await expect(agent.session().prompt("x")).rejects.toMatchObject({ code: "unavailable" });
});

test("a stream buffers the events of its operation for a slow reader, and its result needs no reader", async () => {
  const model = createScriptedModel([{ deltas: Array.from({ length: 5_000 }, (_, at) => `${at} `) }]);
  const stream = createTestAgent(model).session().stream("count");
  const { text } = await stream.result;
  let read = "";
  const types = new Set<string>();
  let parts = 0;
  for await (const event of stream) {
    types.add(event.type);
    if (event.type !== "text_delta") continue;
    read += event.text;
    parts += 1;
  }
  expect(read).toBe(text);
  // Unread deltas are joined, so that the buffer stays small.
  expect(parts).toBeLessThan(1_100);
  expect([...types]).toEqual(
    expect.arrayContaining(["operation_start", "turn_request", "turn", "operation"]),
  );
});

test("several readers of a stream share its events, and each sees the end", async () => {
  const model = createScriptedModel([{ deltas: ["a", "b", "c"] }]);
  const stream = createTestAgent(model).session().stream("x");
  const read: string[] = [];
  const reader = async (): Promise<void> => {
    for await (const event of stream) if (event.type === "text_delta") read.push(event.text);
  };
  await Promise.all([reader(), reader(), reader()]);
  expect(read.sort()).toEqual(["a", "b", "c"]);
});

test("a reader that leaves early does not stop the operation, and a rejected listener is reported", async () => {
  const reported: unknown[] = [];
  const model = createScriptedModel([{ deltas: ["a", "b", "c"] }]);
  const agent = createTestAgent(
    model,
    {
      onEvent: async () => {
        throw new Error("mine");
      },
    },
    { onListenerError: (error) => reported.push(error) },
  );
  const stream = agent.session().stream("x");
  for await (const event of stream) if (event.type === "text_delta") break;
  expect((await stream.result).text).toBe("abc");
  expect(reported.length).toBeGreaterThan(0);
});

import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { expect, onTestFinished, test } from "vitest";
import { storeUnavailable } from "../../protocol/error-code.ts";
import type { AppendRequest, SessionStore } from "../../stores/contract.ts";
import { InMemorySessionStore } from "../../stores/memory/memory-store.ts";
import { SqliteSessionStore } from "../../stores/sqlite/sqlite-store.ts";
import { createScriptedModel } from "../../testing/scripted-model.ts";
import { testFolder } from "../../testing/test-folder.ts";
import { createTestAgent } from "../../testing/test-runtime.ts";
import { defineTool } from "../define/tool.ts";

const key = { agent: "tester", instance_id: "1", session: "default" };

const inspect = defineTool({
  name: "look",
  description: "",
  input: { type: "object" },
  execute: () => "It is seven.",
});

/** A store that is asked over a network; `append` may do something else first. */
function overNetwork(
  store: InMemorySessionStore,
  before: (request: AppendRequest) => Promise<void>,
): SessionStore {
  return {
    append: async (request) => {
      await before(request);
      store.append(request);
    },
    read: async (of, after) => store.read(of, after),
    info: async (of) => store.info(of),
    list: async (filter) => store.list(filter),
    delete: async (of) => store.delete(of),
    close: () => undefined,
  };
}

const roleOf = ({ entries }: AppendRequest): string =>
  entries.map((entry) => (entry.type === "message" ? entry.message.role : entry.type)).join("+");

const rolesIn = (store: InMemorySessionStore): string =>
  roleOf({ key, expected: 0, entries: store.read(key) });

test("while the model thinks about the results of its calls, they are in the file already", async () => {
  const folder = testFolder(onTestFinished);
  const file = join(folder, "sessions.db");
  const store = new SqliteSessionStore({ file });
  const reader = new SqliteSessionStore({ file });
  let seen = "";
  const model = createScriptedModel(async (_call, index) => {
    if (index === 0) return { toolCalls: [{ name: "look" }] };
    await expect
      .poll(() => {
        seen = JSON.stringify(reader.read(key));
        return seen;
      })
      .toContain("It is seven.");
    return { text: "seven" };
  });
  const agent = createTestAgent(model, { tools: [inspect] }, { store });
  await agent.session().prompt("look");
  expect(seen).toContain("It is seven.");
  reader.close();
  store.close();
});

test("the model is asked while a slow store takes the results, and its calls wait until they and the answer are stored", async () => {
  const store = new InMemorySessionStore();
  const course: string[] = [];
  let answered = Promise.withResolvers<void>();
  const slow = overNetwork(store, async (request) => {
    course.push(`append ${roleOf(request)}`);
    await (roleOf(request) === "tool" ? answered.promise : delay(1));
    course.push("stored");
  });
  const model = createScriptedModel(async (_call, index) => {
    await delay(20);
    course.push("answer");
    answered.resolve();
    answered = Promise.withResolvers();
    return index < 2 ? { toolCalls: [{ name: "look" }] } : { text: "seven" };
  });
  const tool = defineTool({ ...inspect, execute: () => course.push("tool").toString() });
  await createTestAgent(model, { tools: [tool] }, { store: slow })
    .session()
    .prompt("look");
  const turn = ["append assistant", "stored", "tool", "append tool", "answer", "stored"];
  expect(course).toEqual([
    ...["append user", "stored", "answer"],
    ...turn,
    ...turn,
    ...["append assistant", "stored"],
  ]);
});

test("results, and an answer that is there at once, are one append", async () => {
  const store = new InMemorySessionStore();
  const appends: string[] = [];
  const counted = overNetwork(store, async (request) => {
    appends.push(roleOf(request));
  });
  const model = createScriptedModel([{ toolCalls: [{ name: "look" }] }, { text: "seven" }]);
  const reply = await createTestAgent(model, { tools: [inspect] }, { store: counted })
    .session()
    .prompt("look");
  expect(appends).toEqual(["user", "assistant", "tool+assistant"]);
  expect(reply.messages.map(({ role }) => role)).toEqual(["user", "assistant", "tool", "assistant"]);
});

for (const thinks of [0, 20]) {
  test(`results that others were faster than come behind them as text, and the answer once (${thinks} ms)`, async () => {
    const store = new InMemorySessionStore();
    const other = createTestAgent(
      createScriptedModel(() => ({ text: "b" })),
      {},
      { store },
    );
    const overtaken = overNetwork(store, async (request) => {
      if (roleOf(request).startsWith("tool") && request.expected === 2) await other.session().prompt("b");
    });
    const model = createScriptedModel(async (_call, index) => {
      if (index === 0) return { toolCalls: [{ name: "look" }] };
      if (thinks > 0) await delay(thinks);
      return { text: "seven" };
    });
    const mine = createTestAgent(model, { tools: [inspect] }, { store: overtaken });
    expect((await mine.session().prompt("look")).text).toBe("seven");
    expect(rolesIn(store)).toBe("user+assistant+tool+user+assistant+user+assistant");
    const resumed = JSON.stringify(store.read(key)[5]);
    expect(resumed).toContain("It is seven.");
    const reported = await mine.session().history();
    expect(reported.map(({ role }) => role).join("+")).toBe(rolesIn(store));
  });
}

test("a store that cannot take the results fails the operation, however the model answers, and the log goes on", async () => {
  for (const answers of ["at once", "later", "fails"]) {
    const store = new InMemorySessionStore();
    let away = true;
    const refused = Promise.withResolvers<void>();
    const leaving = overNetwork(store, async (request) => {
      if (!away || !roleOf(request).startsWith("tool")) return;
      setImmediate(refused.resolve);
      throw storeUnavailable({ store: "The session store", reason: "it is away", hint: "Wait." });
    });
    const model = createScriptedModel(async (_call, index) => {
      if (index === 0) return { toolCalls: [{ name: "look" }] };
      if (answers !== "at once") await refused.promise;
      return index === 1 && answers === "fails" ? { error: new Error("500") } : { text: "again" };
    });
    const agent = createTestAgent(model, { tools: [inspect] }, { store: leaving });
    await expect(agent.session().prompt("look")).rejects.toMatchObject({ code: "store_unavailable" });
    expect(rolesIn(store)).toBe("user+assistant");
    away = false;
    expect((await agent.session().prompt("go on")).text).toBe("again");
    // An answer that came before the store had refused is kept with the results.
    const answer = answers === "at once" ? "+assistant" : "";
    expect(rolesIn(store)).toBe(`user+assistant+tool${answer}+user+assistant`);
    expect(JSON.stringify(store.read(key)[2])).not.toContain('"outcome":"unknown"');
  }
});

test("a reader of the history finds the results of a turn that has ended", async () => {
  const store = new SqliteSessionStore({ file: ":memory:" });
  const model = createScriptedModel([{ toolCalls: [{ name: "look" }] }, { text: "seven" }]);
  const agent = createTestAgent(model, { tools: [inspect] }, { store });
  const read: Promise<number>[] = [];
  agent.onEvent((event) => {
    if (event.type === "turn_end" && event.tool_calls > 0)
      read.push(
        agent
          .session()
          .history()
          .then((messages) => messages.length),
      );
  });
  await agent.session().prompt("look");
  expect(read).toHaveLength(1);
  expect(await read[0]).toBeGreaterThanOrEqual(3);
  store.close();
});

import { expect, test } from "vitest";
import { InMemorySessionStore } from "../../stores/memory/memory-store.ts";
import { createScriptedModel } from "../../testing/scripted-model.ts";
import { createTestAgent } from "../../testing/test-runtime.ts";
import { defineTool } from "../define/tool.ts";

/** A model that says which of the user's texts it reads. */
function reader() {
  return createScriptedModel(({ prompt }) => ({
    text: prompt
      .flatMap(({ role, content }) =>
        role === "user" && typeof content !== "string"
          ? content.flatMap((part) => (part.type === "text" ? [part.text.slice(0, 40)] : []))
          : [],
      )
      .join("|"),
  }));
}

test("a session goes on before a message, of which the model then reads nothing", async () => {
  const session = createTestAgent(reader()).session();
  await session.prompt("one", { clientId: "m1" });
  await session.prompt("two", { operationId: "op_two", clientId: "m2" });
  await session.prompt("three", { clientId: "m3" });
  expect((await session.prompt("2", { rewindBefore: "op_two", clientId: "m2" })).text).toBe("one|2");
  expect((await session.prompt("four")).text).toBe("one|2|four");
  // The client's id names the message of the branch that goes on.
  expect((await session.prompt("zwei", { rewindBefore: "m2" })).text).toBe("one|zwei");
  await expect(session.prompt("x", { rewindBefore: "m3" })).rejects.toMatchObject({ code: "not_found" });
  expect((await session.prompt("eins", { rewindBefore: "m1" })).text).toBe("eins");
  expect((await session.history()).map(({ role }) => role)).toEqual(["user", "assistant"]);
});

test("another process that opens the session reads the same branch, also after rewinds within rewinds", async () => {
  const store = new InMemorySessionStore();
  const open = () => createTestAgent(reader(), {}, { store }).session("chat");
  for (const text of ["a", "b", "c", "d"]) await open().prompt(text, { clientId: text });
  await open().prompt("C", { rewindBefore: "c" });
  await open().prompt("e", { clientId: "e" });
  await open().prompt("B", { rewindBefore: "b" });
  expect((await open().prompt("f")).text).toBe("a|B|f");
  const writer = open();
  const other = open();
  await writer.prompt("g");
  await other.prompt("A", { rewindBefore: "a" });
  expect((await writer.prompt("h")).text).toBe("A|h");
});

test("a rewind before a compaction brings back what the summary had replaced", async () => {
  const model = createScriptedModel(({ prompt }) => {
    const texts = JSON.stringify(prompt);
    return { text: texts.includes("summar") && !texts.includes("again") ? "the summary" : texts };
  });
  const session = createTestAgent(model).session();
  await session.prompt("alpha", { clientId: "m1" });
  await session.prompt("beta", { clientId: "m2" });
  await session.compact();
  await session.prompt("gamma", { clientId: "m3" });
  const { text } = await session.prompt("beta again", { rewindBefore: "m2" });
  expect(text).toContain("alpha");
  expect(text).toContain("beta again");
  expect(text).not.toContain("gamma");
  expect(text).not.toContain("the summary");
});

test("a message whose call was left open by a stop is asked again, and its call is in no prompt", async () => {
  const stop = new AbortController();
  const wait = defineTool({
    name: "wait",
    description: "",
    input: { type: "object" },
    execute: () => {
      stop.abort();
      return new Promise<string>(() => undefined);
    },
  });
  let calls = 0;
  const model = createScriptedModel(({ prompt }) => {
    calls += 1;
    return calls === 1 ? { toolCalls: [{ name: "wait" }] } : { text: `${prompt.length}` };
  });
  const session = createTestAgent(model, { tools: [wait] }).session();
  await session.prompt("go", { clientId: "m1", signal: stop.signal }).catch(() => undefined);
  // The system prompt and the message.
  expect((await session.prompt("go", { rewindBefore: "m1" })).text).toBe("2");
});

test("a new session begins before a message of another one, and each goes on by itself", async () => {
  const store = new InMemorySessionStore();
  const agent = () => createTestAgent(reader(), {}, { store });
  const session = agent().session("chat");
  await session.prompt("one", { clientId: "m1" });
  await session.prompt("lost", { clientId: "m2" });
  await session.prompt("two", { rewindBefore: "m2", operationId: "op_two" });
  await session.prompt("three");
  const fork = { session: "chat", before: "op_two" };
  const other = agent().session("other");
  expect((await other.prompt("zwei", { fork })).text).toBe("one|zwei");
  expect((await agent().session("other").prompt("drei")).text).toBe("one|zwei|drei");
  expect((await session.prompt("four")).text).toBe("one|two|three|four");
  await expect(other.prompt("x", { fork })).rejects.toMatchObject({ code: "conflict" });
  const third = agent().session("third");
  const unknown = { session: "chat", before: "m9" };
  await expect(third.prompt("x", { fork: unknown })).rejects.toMatchObject({ code: "not_found" });
  await expect(third.prompt("x", { fork: { before: "" } })).rejects.toMatchObject({
    code: "invalid_request",
  });
  expect((await third.prompt("eins", { fork: { session: "chat", before: "m1" } })).text).toBe("eins");
});

test("a fork whose request was refused or has failed can be asked for again, and one with an answer cannot", async () => {
  const store = new InMemorySessionStore();
  let fails = true;
  const read = reader();
  const model = createScriptedModel((call) => {
    const last = JSON.stringify(call.prompt.at(-1));
    if (fails && last.includes("fails")) throw Object.assign(new Error("refused"), { statusCode: 400 });
    return {
      text: call.prompt
        .flatMap(({ role, content }) =>
          role === "user" ? content.map((part) => (part.type === "text" ? part.text : "")) : [],
        )
        .join("|"),
    };
  });
  const open = () => createTestAgent(model, {}, { store });
  await createTestAgent(read, {}, { store }).session("chat").prompt("one");
  await open().session("chat").prompt("two", { clientId: "m2" });
  await open().session("chat").prompt("three", { clientId: "m3" });
  const fork = { session: "chat", before: "m2" };
  const session = open().session("other");
  await expect(session.prompt("x", { fork, role: "ghost" })).rejects.toMatchObject({
    code: "invalid_request",
  });
  await expect(session.prompt("x", { fork, rewindBefore: "m2" })).rejects.toMatchObject({
    code: "invalid_request",
  });
  for (const text of ["fails", "fails again"]) await expect(session.prompt(text, { fork })).rejects.toThrow();
  fails = false;
  const elsewhere = { fork: { session: "chat", before: "m3" } };
  await expect(session.prompt("x", elsewhere)).rejects.toMatchObject({ code: "conflict" });
  expect((await session.prompt("zwei", { fork })).text).toBe("one|zwei");
  expect((await open().session("other").prompt("drei")).text).toBe("one|zwei|drei");
  await expect(session.prompt("x", { fork })).rejects.toMatchObject({ code: "conflict" });
});

test("a fork that its process left without its message goes on there, once", async () => {
  const store = new InMemorySessionStore();
  const open = () => createTestAgent(reader(), {}, { store });
  await open().session("chat").prompt("one");
  await open().session("chat").prompt("two", { clientId: "m2" });
  const options = { fork: { session: "chat", before: "m2" }, operationId: "op_fork" };
  const append = store.append.bind(store);
  store.append = (request) => {
    if (request.input === "op_fork") throw new Error("The process dies.");
    return append(request);
  };
  await expect(open().session("other").prompt("zwei", options)).rejects.toThrow("dies");
  store.append = append;
  expect((await open().session("other").prompt("zwei", options)).text).toBe("one|zwei");
  expect((await open().session("other").prompt("zwei", options)).text).toBe("one|zwei");
  expect(await open().session("other").history()).toHaveLength(4);
});

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

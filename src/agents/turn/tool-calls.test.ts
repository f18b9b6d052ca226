import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import type { ToolMessage } from "../../protocol/message.ts";
import { createScriptedModel, type ScriptedTurn } from "../../testing/scripted-model.ts";
import { createTestAgent } from "../../testing/test-runtime.ts";
import { type AnyTool, defineTool } from "../define/tool.ts";

/** Lets a model make the calls in one turn, and returns their results as the model reads them. */
async function results(tools: readonly AnyTool[], toolCalls: NonNullable<ScriptedTurn["toolCalls"]>) {
  const model = createScriptedModel([{ toolCalls }, { text: "Done." }]);
  const { messages } = await createTestAgent(model, { tools }).session().prompt("Go.");
  const message = messages.find((each): each is ToolMessage => each.role === "tool");
  return (message?.content ?? []).map(({ content, is_error, outcome }) => ({
    text: content.map((part) => (part.type === "text" ? part.text : part.media_type)).join(""),
    is_error,
    outcome,
  }));
}

const anything = { type: "object" } as const;

test("the calls of a turn run concurrently, and their results keep the order of the calls", async () => {
  const first = Promise.withResolvers<string>();
  const slow = defineTool({ name: "slow", description: "", input: anything, execute: () => first.promise });
  const quick = defineTool({
    name: "quick",
    description: "",
    input: anything,
    execute() {
      // The test would hang if this call waited for the one before it.
      first.resolve("slow one");
      return "quick one";
    },
  });
  const answered = await results([slow, quick], [{ name: "slow" }, { id: "second", name: "quick" }]);
  expect(answered.map(({ text }) => text)).toEqual(["slow one", "quick one"]);
});

test("an abort stops each call that runs, and none that has ended", async () => {
  const stopped: string[] = [];
  const begun = Promise.withResolvers<void>();
  const tool = (name: string): AnyTool =>
    defineTool({
      name,
      description: "",
      input: anything,
      execute: (_, { signal }) => {
        signal.addEventListener("abort", () => stopped.push(name));
        if (name === "last") begun.resolve();
        return name === "short" ? Promise.resolve("done") : new Promise<string>(() => undefined);
      },
    });
  const names = ["first", "short", "middle", "last"];
  const model = createScriptedModel([{ toolCalls: names.map((name) => ({ id: name, name })) }]);
  const session = createTestAgent(model, { tools: names.map(tool) }).session();
  const aborted = expect(session.prompt("Go.")).rejects.toMatchObject({ code: "aborted" });
  await begun.promise;
  await sleep(0);
  await session.abort();
  await aborted;
  expect(stopped.toSorted()).toEqual(["first", "last", "middle"]);
});

test("an exclusive tool never runs together with another call", async () => {
  const steps: string[] = [];
  const tool = (name: string, exclusive: boolean): AnyTool =>
    defineTool({
      name,
      description: "",
      input: anything,
      exclusive,
      async execute() {
        steps.push(`${name} begins`);
        await Promise.resolve();
        steps.push(`${name} ends`);
        return name;
      },
    });
  const calls = ["a", "change", "b"].map((name) => ({ id: name, name }));
  await results([tool("a", false), tool("change", true), tool("b", false)], calls);
  expect(steps).toEqual(["a", "change", "b"].flatMap((name) => [`${name} begins`, `${name} ends`]));
});

test("a tool that exceeds its time limit is stopped, and its outcome is reported as unknown", async () => {
  let stopped = false;
  const endless = defineTool({
    name: "endless",
    description: "",
    input: anything,
    timeoutMs: 20,
    execute: (_input, { signal }) =>
      new Promise<string>((resolve) => {
        signal.addEventListener("abort", () => {
          stopped = true;
          resolve("too late");
        });
      }),
  });
  const [result] = await results([endless], [{ name: "endless" }]);
  expect(result).toMatchObject({ is_error: true, outcome: "unknown" });
  expect(result?.text).toContain("did not finish within 0.02 seconds");
  expect(stopped).toBe(true);
});

test.each([Number.POSITIVE_INFINITY, 2 ** 40])(
  "a time limit of %s ms does not end the call at once",
  async (timeoutMs) => {
    // Longer than the 1 ms after which a timer of more than 24 days would fire.
    const execute = () => sleep(20, "slept");
    const patient = defineTool({ name: "patient", description: "", input: anything, timeoutMs, execute });
    expect(await results([patient], [{ name: "patient" }])).toMatchObject([
      { text: "slept", is_error: false },
    ]);
  },
);

test("a long result is cut in the middle and marked", async () => {
  const long = defineTool({
    name: "long",
    description: "",
    input: anything,
    maxResultChars: 100,
    execute: () => `begin${"x".repeat(10_000)}end`,
  });
  const [result] = await results([long], [{ name: "long" }]);
  expect(result?.text).toMatch(/^begin[x]+\n\[… 9908 characters cut …\]\n[x]+end$/);
});

test("a mistake of the model becomes a result that it can act on", async () => {
  const strict = defineTool({
    name: "strict",
    description: "",
    input: {
      "~standard": {
        version: 1,
        vendor: "test",
        validate: () => ({ issues: [{ message: "must be a number", path: ["n"] }] }),
        jsonSchema: { input: () => ({ type: "object" }) },
      },
    },
    execute: () => "never",
  });
  const answered = await results(
    [strict],
    [
      { id: "1", name: "strict", input: { n: "one" } },
      { id: "2", name: "strict", rawInput: '{"n": ' },
      { id: "3", name: "missing" },
      { id: "4", name: "write", input: {} },
    ],
  );
  expect(answered.every(({ is_error }) => is_error)).toBe(true);
  const texts = answered.map(({ text }) => text);
  expect(texts[0]).toContain("must be a number");
  expect(texts[1]).toContain("not valid JSON");
  expect(texts[2]).toContain('There is no tool named "missing". The tools are: ');
  expect(texts[3]).toContain('"write" is not allowed to this agent.');
});

test("a malformed call gets a result, and is stored in a form that every provider accepts", async () => {
  const seen: unknown[] = [];
  const tool = defineTool({
    name: "look",
    description: "",
    input: anything,
    execute(input) {
      seen.push(input);
      return "seen";
    },
  });
  const model = createScriptedModel([
    {
      toolCalls: [
        { id: "", name: "look" },
        { id: "a.b", name: "multi_tool_use.parallel" },
        { id: "c", name: "" },
        { id: "c", name: "look", rawInput: '{"text": "\\ud83d \\ud83d\\ude00"}' },
        { id: "d", name: "look", rawInput: "[1]" },
        { id: "e", name: "look", rawInput: '{"text": ' },
      ],
    },
    { text: "Done." },
  ]);
  await createTestAgent(model, { tools: [tool] }, { validateJson: () => [] })
    .session()
    .prompt("Go.");
  expect(seen).toEqual([{}, { text: "\ufffd 😀" }, [1]]);
  const [calls, answers] = (model.calls[1]?.prompt.slice(2) ?? []).map(({ content }) =>
    Array.isArray(content) ? content : [],
  );
  expect(calls).toMatchObject([
    { toolName: "look" },
    { toolName: "multi_tool_use_parallel" },
    { toolName: "_" },
    { toolName: "look", input: { text: "\ufffd 😀" } },
    { toolName: "look", input: { value: [1] } },
    { toolName: "look", input: { invalid_json: '{"text": ' } },
  ]);
  const pairs = [calls, answers].map((parts = []) =>
    parts.flatMap((part) => ("toolCallId" in part ? [[part.toolCallId, part.toolName]] : [])),
  );
  expect(pairs[0]).toEqual(pairs[1]);
  const ids = new Set(pairs[0]?.map(([id]) => id));
  expect(ids.size).toBe(6);
  for (const id of ids) expect(id).toMatch(/^[a-zA-Z0-9_-]{1,64}$/);
});

test("an answer without text is stored, and not sent to the model again", async () => {
  const model = createScriptedModel([
    {},
    { text: "\n\n", toolCalls: [{ name: "odd" }] },
    { text: " " },
    { text: "Done." },
  ]);
  const session = createTestAgent(model).session();
  for (const text of ["one", "two", "three"]) await session.prompt(text);
  const sent = model.calls[3]?.prompt.map(({ role, content }) =>
    Array.isArray(content) ? [role, ...content.map(({ type }) => type)].join(" ") : role,
  );
  expect(sent).toEqual([
    "system",
    "user text",
    "user text",
    "assistant tool-call",
    "tool tool-result",
    "user text",
  ]);
  expect(await session.history()).toHaveLength(8);
});

// TypeScript forbids these outputs, but plain JavaScript can return them.
test.each<readonly [string, unknown, string]>([
  ["nothing", undefined, ""],
  ["a number", 5, "5"],
  ["parts of an unknown type", { content: [{ type: "table" }] }, '{"content":[{"type":"table"}]}'],
  ["no parts", { content: [null] }, '{"content":[null]}'],
  [
    "a text part without a string",
    { content: [{ type: "text", text: 5 }] },
    '{"content":[{"type":"text","text":5}]}',
  ],
  [
    "bytes",
    { content: [{ type: "image", media_type: "image/png", data: new Uint8Array([1]) }] },
    "image/png",
  ],
  ["an image without bytes", { content: [{ type: "image", media_type: "image/png" }] }, "An image has"],
  [
    "an image with an invalid URL",
    { content: [{ type: "image", media_type: "image/png", data: "https://" }] },
    "An image has",
  ],
  ["a value that is not JSON", 5n, "it is a bigint"],
])("a tool that returns %s does not break later prompts", async (_what, output, text) => {
  const tool = defineTool({ name: "odd", description: "", input: anything, execute: () => output as string });
  const model = createScriptedModel([{ toolCalls: [{ name: "odd" }] }, { text: "Done." }, { text: "On." }]);
  const session = createTestAgent(model, { tools: [tool] }).session();
  const { messages } = await session.prompt("Go.");
  expect(JSON.stringify(messages[2]?.content)).toContain(JSON.stringify(text).slice(1, -1));
  expect((await session.prompt("Go on.")).text).toBe("On.");
});

test("a tool that throws has an error result, and its idempotency key is the same for every attempt of a call", async () => {
  const keys: string[] = [];
  const failing = defineTool({
    name: "failing",
    description: "",
    input: anything,
    execute(_input, { idempotencyKey }) {
      keys.push(idempotencyKey);
      throw new Error("The printer is on fire.");
    },
  });
  const answered = await results(
    [failing],
    [
      { id: "1", name: "failing" },
      { id: "2", name: "failing" },
    ],
  );
  expect(answered.map(({ text }) => text)).toEqual(["The printer is on fire.", "The printer is on fire."]);
  expect(new Set(keys).size).toBe(2);
});

test("a tool name that providers refuse, or that kit reserves, is refused on creation", () => {
  const withName = (name: string) => ({ name, description: "", input: anything, execute: () => "" });
  expect(() => defineTool(withName("two words"))).toThrow(TypeError);
  expect(() => createTestAgent(createScriptedModel([]), { tools: [defineTool(withName("bash"))] })).toThrow(
    new TypeError('`tools` has the name "bash", which is that of a built-in tool.'),
  );
});

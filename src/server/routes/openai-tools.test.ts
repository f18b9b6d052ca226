import { createOpenResponses } from "@ai-sdk/open-responses";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateText, isStepCount, jsonSchema, streamText, tool } from "ai";
import type OpenAI from "openai";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createScriptedModel, type ScriptedTurn } from "../../testing/scripted-model.ts";
import { createTestService } from "../../testing/test-service.ts";
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
const weather = {
  name: "weather",
  description: "The weather of a place.",
  parameters: {
    type: "object" as const,
    properties: { place: { type: "string" as const } },
    required: ["place"],
  },
};

test("a function of the caller ends the answer, and its result goes on in the same operation", async () => {
  const tools = [{ type: "function" as const, function: weather }];
  const messages = [user("weather")] as OpenAI.Chat.ChatCompletionMessageParam[];
  const asked = await client.chat.completions.create({ model, messages, tools });
  const [choice] = asked.choices;
  expect(choice).toMatchObject({
    finish_reason: "tool_calls",
    message: {
      content: null,
      tool_calls: [{ function: { name: "weather", arguments: '{"place":"Rome"}' } }],
    },
  });
  const call = choice?.message.tool_calls?.[0];
  if (choice === undefined || call === undefined) throw new Error("There is no call.");
  const result = { role: "tool", tool_call_id: call.id, content: "64 degrees" } as const;
  const answer = await client.chat.completions.create({
    model,
    messages: [...messages, choice.message, result],
    tools,
  });
  expect([answer.id, answer.choices[0]?.message.content]).toEqual([asked.id, "It said 64 degrees."]);
  const again = client.chat.completions.create({ model, messages: [...messages, choice.message, result] });
  expect((await refusal(again)).param).toBe("messages.2.tool_call_id");
});

test("OpenAI's loop of functions runs over a stream", async () => {
  const cities: unknown[] = [];
  const runner = client.chat.completions.runTools({
    model,
    stream: true,
    messages: [user("weather twice")],
    tools: [
      {
        type: "function",
        function: {
          ...weather,
          parse: JSON.parse,
          function: (args: unknown) => {
            cities.push(args);
            return `${cities.length} degrees`;
          },
        },
      },
    ],
  });
  expect(await runner.finalContent()).toBe("It said 1 degrees. It said 2 degrees.");
  expect(cities).toEqual([{ place: "Rome" }, { place: "Oslo" }]);
});

test("a response with calls is complete, and each part of the operation keeps its own response", async () => {
  const tools = [{ type: "function" as const, strict: false, ...weather }];
  const stream = client.responses.stream({ model, input: "weather", tools });
  const types: string[] = [];
  for await (const event of stream) types.push(event.type.replace("response.", ""));
  expect(types).toEqual([
    "created",
    "in_progress",
    "output_item.added",
    "function_call_arguments.delta",
    "function_call_arguments.done",
    "output_item.done",
    "completed",
  ]);
  const first = await stream.finalResponse();
  const call = first.output[0];
  if (call?.type !== "function_call") throw new Error("There is no call.");
  const input = [{ type: "function_call_output", call_id: call.call_id, output: "64 degrees" } as const];
  const second = await client.responses.create({ model, input, previous_response_id: first.id });
  expect([second.status, second.output_text]).toEqual(["completed", "It said 64 degrees."]);
  expect((await client.responses.retrieve(second.id)).output_text).toBe("It said 64 degrees.");
  expect((await client.responses.retrieve(first.id)).output).toMatchObject([
    { type: "function_call", call_id: call.call_id },
  ]);
  const replay = await allOf(await client.responses.retrieve(second.id, { stream: true }));
  expect(replay.at(-1)).toMatchObject({ response: { id: second.id, status: "completed" } });
  // A caller that goes on with a message has left its calls.
  const left = await client.responses.create({ model, input: "weather", tools, conversation: "left" });
  const next = await client.responses.create({ model, input: "hello", previous_response_id: left.id });
  expect(next.output_text).toBe("hello");
  const other = await refusal(
    client.responses.create({
      model,
      input: [{ type: "function_call_output", call_id: "call_x", output: "" }],
    }),
  );
  expect([other.status, other.param]).toEqual([400, "input.0.call_id"]);
});

const scripted = (turns: readonly ScriptedTurn[], files: Record<string, string> = {}) =>
  serveService({
    files,
    openService: ({ root }) =>
      createTestService({ root, model: createScriptedModel(turns, { recordCalls: false }) }),
  });
const written = (input: object): ScriptedTurn => ({ toolCalls: [{ name: "weather", input, pieces: 4 }] });

test("a stream that is taken up among parallel calls has the events of the first one", async () => {
  const cities = ["Rome", "Oslo", "Bern", "Wien", "Riga", "Lima"];
  const toolCalls = cities.map((place) => ({ name: "weather", input: { place }, pieces: 4 }));
  const own = await scripted([{ text: "I look. ", reasoning: "Hm.", delayMs: 5, toolCalls }]);
  try {
    const openai = clientOf(own);
    const tools = [{ type: "function" as const, strict: false, ...weather }];
    const stream = openai.responses.stream({ model, input: "go", tools });
    const live: OpenAI.Responses.ResponseStreamEvent[] = [];
    for await (const event of stream) live.push(event);
    const { id, output } = await stream.finalResponse();
    expect(output.flatMap((item) => (item.type === "function_call" ? [item.arguments] : []))).toEqual(
      cities.map((place) => JSON.stringify({ place })),
    );
    const first = live.findIndex(({ type }) => type === "response.output_item.added");
    for (let at = first; at < live.length; at += 1) {
      const after = { stream: true, starting_after: live[at]?.sequence_number ?? 0 } as const;
      const rest = await allOf(await openai.responses.retrieve(id, after));
      const numbersOf = (events: readonly object[]) =>
        events.map((event) => {
          const { type, sequence_number, output_index, item_id } = event as Record<string, unknown>;
          return [type, sequence_number, output_index, item_id];
        });
      // The log joins the deltas of a text.
      const isText = ({ type }: { readonly type: string }) => type.endsWith("text.delta");
      const expected = live.slice(at + 1).filter((event) => !isText(event));
      expect(numbersOf(rest.filter((event) => !isText(event)))).toEqual(numbersOf(expected));
    }
  } finally {
    await own.close();
  }
});

const right = written({ place: "Rome" });
const changing = `export const triggers = { webhook: true };
export default { kind: "kit.agent", describe: async () => ({ hooks: [{
  beforeTool: ({ tool }) => (tool === "weather" ? { args: { place: "Oslo" } } : undefined) }] }) };
`;
test.each([
  { fate: "does not fit at first", turns: [written({ city: "Rome" }), right] },
  {
    fate: "breaks off at first",
    turns: [{ ...right, failAfter: 3, error: new TypeError("fetch failed") }, right],
  },
  { fate: "a hook changes", turns: [right], files: { "src/agents/echo.ts": changing }, place: "Oslo" },
])("clients run a call that $fate once, as kit has checked it", async ({ turns, files, place = "Rome" }) => {
  const dialogue = [...turns, { text: "It is warm." }];
  const own = await scripted([...dialogue, ...dialogue, ...dialogue], files);
  try {
    for (const name of ["responses of @ai-sdk/openai", "chat of @ai-sdk/openai"] as const) {
      const ran: unknown[] = [];
      const parts: string[] = [];
      const { fullStream } = streamText({
        model: modelsOf(`${own.url}/v1`)[name],
        prompt: "go",
        maxRetries: 0,
        stopWhen: isStepCount(3),
        tools: {
          weather: tool({
            inputSchema: jsonSchema(weather.parameters),
            execute: (args) => ran.push(args),
          }),
        },
      });
      let said = "";
      for await (const part of fullStream) {
        if (part.type === "text-delta") said += part.text;
        if (/^tool-input-(start|end)$|error/.test(part.type)) parts.push(part.type);
      }
      expect([said, ran, parts]).toEqual([
        "It is warm.",
        [{ place }],
        ["tool-input-start", "tool-input-end"],
      ]);
    }
    const tools = [{ type: "function" as const, strict: false, ...weather }];
    const { status, output } = await clientOf(own)
      .responses.stream({ model, input: "go", tools })
      .finalResponse();
    expect([status, output]).toMatchObject(["completed", [{ arguments: JSON.stringify({ place }) }]]);
    expect(own.errors).toEqual([]);
  } finally {
    await own.close();
  }
});

const odd = { type: "text", text: { toString: 1, valueOf: 1 } };
const call = { role: "tool", tool_call_id: "call_x" } as const;
const asked = (content: unknown) => ({ messages: [{ role: "user", content }] });
const toolOf = (fields: object) => ({ ...asked("x"), tools: [{ type: "function", function: fields }] });

test.each([
  ["a text", { messages: [{ role: "assistant", content: [odd] }, user("x")] }],
  ["a result", { messages: [{ ...call, content: [odd] }] }],
  ["a format of audio", asked([{ type: "input_audio", input_audio: { data: "AAAA", format: odd.text } }])],
  ["an address of a file", asked([{ type: "image_url", image_url: { url: odd.text } }])],
  ["an empty name of a tool", toolOf({ name: "" })],
  ["a broken name of a tool", toolOf({ name: "a b\nc" })],
  ["a long name of a tool", toolOf({ name: "a".repeat(5_000) })],
  ["a long description of a tool", toolOf({ name: "a", description: "a".repeat(200_000) })],
])("%s that no agent can take is refused", async (_, fields) => {
  const { status, body } = await served.send("/v1/chat/completions", { body: { model, ...fields } });
  expect([status, body.error.type]).toEqual([400, "invalid_request_error"]);
});

test("a method that a path does not have is refused in OpenAI's form", async () => {
  const { status, body } = await served.send("/v1/models", { method: "PUT" });
  expect([status, "param" in body.error]).toEqual([405, true]);
});

const modelsOf = (baseURL: string) => {
  const openai = createOpenAI({ baseURL, apiKey: "none" });
  return {
    "responses of @ai-sdk/openai": openai.responses(model),
    "chat of @ai-sdk/openai": openai.chat(model),
    "@ai-sdk/openai-compatible": createOpenAICompatible({
      name: "kit",
      baseURL,
      includeUsage: true,
    }).chatModel(model),
    "@ai-sdk/open-responses": createOpenResponses({ name: "kit", url: `${baseURL}/responses` })(model),
  };
};
const names = [
  "responses of @ai-sdk/openai",
  "chat of @ai-sdk/openai",
  "@ai-sdk/openai-compatible",
  "@ai-sdk/open-responses",
] as const;

test.each(names)("%s generates, streams, and goes on with a conversation", async (name) => {
  const kit = modelsOf(`${served.url}/v1`)[name];
  const { text, response } = await generateText({ model: kit, prompt: "hello there", maxRetries: 0 });
  expect(text).toBe("hello there");
  const streamed = streamText({ model: kit, prompt: "hello you", maxRetries: 0 });
  let said = "";
  for await (const part of streamed.textStream) said += part;
  expect([said, (await streamed.usage).totalTokens]).toEqual(["hello you", 5]);
  const messages = [user("hello there"), ...response.messages, user("and now")];
  const next = await generateText({ model: kit, messages, maxRetries: 0 });
  expect(next.text).toBe("and now");
});

test("the sources of an answer are those of the AI SDK, plain and streamed", async () => {
  const source = { sourceType: "url", url: "https://example.org/a", title: "A page" };
  for (const name of ["responses of @ai-sdk/openai", "chat of @ai-sdk/openai"] as const) {
    const kit = modelsOf(`${served.url}/v1`)[name];
    expect((await generateText({ model: kit, prompt: "cite" })).sources).toMatchObject([source]);
    expect(await streamText({ model: kit, prompt: "cite" }).sources).toMatchObject([source]);
  }
});

test.each(names)("%s runs its tools in a loop", async (name) => {
  const cities: unknown[] = [];
  const { text, steps } = await generateText({
    model: modelsOf(`${served.url}/v1`)[name],
    prompt: "weather twice",
    maxRetries: 0,
    stopWhen: isStepCount(3),
    tools: {
      weather: tool({
        description: weather.description,
        inputSchema: jsonSchema(weather.parameters),
        execute: (args) => {
          cities.push(args);
          return `${cities.length} degrees`;
        },
      }),
    },
  });
  expect([text, steps.length]).toEqual(["It said 1 degrees. It said 2 degrees.", 2]);
  expect(cities).toEqual([{ place: "Rome" }, { place: "Oslo" }]);
});

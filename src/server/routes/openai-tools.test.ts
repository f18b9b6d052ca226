import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateText, isStepCount, jsonSchema, streamText, tool } from "ai";
import OpenAI from "openai";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type ServedService, serveService } from "../testing/serve-service.ts";

let served: ServedService;
let client: OpenAI;
const clientOf = (at: ServedService, apiKey = "none"): OpenAI =>
  new OpenAI({ baseURL: `${at.url}/v1`, apiKey, maxRetries: 0 });

beforeAll(async () => {
  served = await serveService();
  client = clientOf(served);
});
afterAll(async () => {
  expect(served.errors).toEqual([]);
  await served.close();
});

const model = "echo";
const user = (content: string) => ({ role: "user", content }) as const;
const refusal = async (work: PromiseLike<unknown>): Promise<InstanceType<typeof OpenAI.APIError>> => {
  const error = await Promise.resolve(work).then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(OpenAI.APIError);
  return error as InstanceType<typeof OpenAI.APIError>;
};
const allOf = async <Item>(items: AsyncIterable<Item>): Promise<Item[]> => {
  const read: Item[] = [];
  for await (const item of items) read.push(item);
  return read;
};
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

test("arguments arrive as they are written, and a stream that is taken up among them has them whole", async () => {
  const tools = [{ type: "function" as const, strict: false, ...weather }];
  const stream = client.responses.stream({ model, input: "weather slowly", tools });
  const live: OpenAI.Responses.ResponseStreamEvent[] = [];
  for await (const event of stream) live.push(event);
  const { id, output } = await stream.finalResponse();
  const completed = output.map((item) => ({ type: item.type, id: item.id, status: "completed" }));
  expect(output).toMatchObject([{ type: "message" }, { type: "function_call", name: "weather" }]);
  // A client that goes by the ids of items puts the arguments together like this.
  const argsOf = (events: readonly OpenAI.Responses.ResponseStreamEvent[]) => {
    const written = new Map<string | undefined, string>();
    for (const event of events)
      if (event.type === "response.output_item.added") written.set(event.item.id ?? "", "");
      else if (event.type === "response.function_call_arguments.delta")
        written.set(event.item_id, (written.get(event.item_id) ?? "") + event.delta);
    return [...written].find(([item]) => item?.startsWith("fc_"))?.[1];
  };
  const pieces = live.filter(({ type }) => type === "response.function_call_arguments.delta");
  expect([pieces.length, argsOf(live)]).toEqual([4, '{"place":"Rome"}']);
  for (const [at, { sequence_number }] of live.entries()) {
    const after = { stream: true, starting_after: sequence_number } as const;
    const all = [...live.slice(0, at + 1), ...(await allOf(await client.responses.retrieve(id, after)))];
    const numbers = all.map((event) => event.sequence_number);
    expect(numbers).toEqual([...new Set(numbers)].sort((a, b) => a - b));
    expect(argsOf(all)).toBe('{"place":"Rome"}');
    expect(numbers.at(-1)).toBe(live.at(-1)?.sequence_number);
    const last = all.at(-1);
    expect(last?.type === "response.completed" && last.response.output).toMatchObject(completed);
  }
  // While the model still writes.
  const cut: OpenAI.Responses.ResponseStreamEvent[] = [];
  let running = "";
  for await (const event of await client.responses.create({
    model,
    input: "weather slowly",
    tools,
    stream: true,
  })) {
    cut.push(event);
    if (event.type === "response.created") running = event.response.id;
    if (event.type === "response.function_call_arguments.delta") break;
  }
  const starting_after = cut.at(-1)?.sequence_number ?? 0;
  const rest = await allOf(await client.responses.retrieve(running, { stream: true, starting_after }));
  expect(argsOf([...cut, ...rest])).toBe('{"place":"Rome"}');
  const chunks = await allOf(
    await client.chat.completions.create({
      model,
      stream: true,
      messages: [user("weather slowly")],
      tools: [{ type: "function", function: weather }],
    }),
  );
  const calls = chunks.flatMap(({ choices }) => choices[0]?.delta.tool_calls ?? []);
  expect(calls.map((call) => call.function?.arguments)).toEqual(["", '{"pl', 'ace"', ':"Ro', 'me"}']);
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
  };
};
const names = ["responses of @ai-sdk/openai", "chat of @ai-sdk/openai", "@ai-sdk/openai-compatible"] as const;

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

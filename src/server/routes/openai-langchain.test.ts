import { HumanMessage, ToolMessage } from "@langchain/core/messages";
import { tool } from "@langchain/core/tools";
import { ChatOpenAI } from "@langchain/openai";
import { afterAll, expect, test } from "vitest";
import { z } from "zod";
import { serveForTests } from "../testing/serve-for-tests.ts";

const served = serveForTests();
afterAll(() => expect(served.errors).toEqual([]));

const modelOf = (useResponsesApi: boolean): ChatOpenAI =>
  new ChatOpenAI({
    model: "echo",
    apiKey: "none",
    useResponsesApi,
    maxRetries: 0,
    configuration: { baseURL: `${served.url}/v1` },
  });
const interfaces = [
  ["Chat Completions", false],
  ["Responses", true],
] as const;

test.each(interfaces)("LangChain invokes and streams an agent over %s", async (_, useResponsesApi) => {
  const model = modelOf(useResponsesApi);
  const answer = await model.invoke([new HumanMessage("hello there")]);
  expect(answer).toMatchObject({ text: "hello there", usage_metadata: { total_tokens: 5 } });
  const texts: string[] = [];
  for await (const chunk of await model.stream("calmly there you")) texts.push(chunk.text);
  expect(texts.filter((text) => text !== "")).toEqual(["calmly ", "there ", "you"]);
  const next = await model.invoke([new HumanMessage("hello there"), answer, new HumanMessage("and now")]);
  expect(next.text).toBe("and now");
});

test.each(interfaces)("LangChain runs its tools for an agent over %s", async (_, useResponsesApi) => {
  const weather = tool(({ place }) => `${place.length} degrees`, {
    name: "weather",
    description: "The weather of a place.",
    schema: z.object({ place: z.string() }),
  });
  const model = modelOf(useResponsesApi).bindTools([weather]);
  const asked = new HumanMessage("weather");
  let call = undefined as Awaited<ReturnType<typeof model.invoke>> | undefined;
  for await (const chunk of await model.stream([asked])) {
    call = call === undefined ? chunk : (call as typeof chunk).concat(chunk);
  }
  if (call === undefined) throw new Error("There is no answer.");
  expect(call.tool_calls).toMatchObject([{ name: "weather", args: { place: "Rome" } }]);
  const results = await Promise.all(call.tool_calls?.map((each) => weather.invoke(each)) ?? []);
  expect(results[0]).toBeInstanceOf(ToolMessage);
  const answer = await model.invoke([asked, call, ...results]);
  expect(answer.text).toBe("It said 4 degrees.");
});

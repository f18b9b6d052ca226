import { expect, onTestFinished, test } from "vitest";
import type { AgentProfile } from "../agents/define/agent-profile.ts";
import { createModelResolver } from "../models/create-model-resolver.ts";
import { createOfflineGuide } from "../models/offline/offline-guide.ts";
import { causeOf } from "../protocol/error-cause.ts";
import type { KitEvent } from "../protocol/event.ts";
import { providerProtocols } from "../testing/provider-server/protocols.ts";
import { startProviderServer } from "../testing/provider-server/provider-server.ts";
import { createScriptedModel, type Script } from "../testing/scripted-model.ts";
import { createTestAgent } from "../testing/test-runtime.ts";
import { createOpenTelemetryObserver, replayEvents } from "./create-observer.ts";
import type { OpenTelemetryOptions } from "./event-spans.ts";
import { ask, price } from "./testing/price.ts";
import { recordSpans } from "./testing/recorded-spans.ts";

const plain = { clean: (text: string) => text, place: () => undefined };

interface Setting {
  readonly profile?: AgentProfile;
  readonly options?: Omit<OpenTelemetryOptions, "tracer" | "meter">;
}

function begin(script: Script, { profile, options }: Setting = {}) {
  const recorded = recordSpans();
  const observer = createOpenTelemetryObserver({ tracer: recorded.tracer, meter: false, ...options });
  const events: KitEvent[] = [];
  const all = new Set([observer, (event: KitEvent) => events.push(event)]);
  const observers = { all, tracing: observer.tracing };
  const agent = createTestAgent(createScriptedModel(script), { tools: [price], ...profile }, { observers });
  const replayed = (): ReturnType<typeof recordSpans> => {
    const again = recordSpans();
    replayEvents(JSON.parse(JSON.stringify(events)) as KitEvent[], { tracer: again.tracer, ...options });
    return again;
  };
  return { ...recorded, events, session: agent.session(), replayed };
}

test("the span of a turn has the settings of its request, and the tokens of its reasoning", async () => {
  const { session, withName, events, replayed } = begin(
    [{ text: '{"a":1}', usage: { input: 120, output: 20, reasoning: 15 }, finishReason: "content-filter" }],
    {
      profile: {
        description: "Sells lamps.",
        thinkingLevel: "high",
        modelSettings: {
          temperature: 0.5,
          topP: 0.9,
          topK: 7,
          seed: 4,
          maxOutputTokens: 100,
          stopSequences: ["END"],
          frequencyPenalty: 0.1,
          presencePenalty: 0.2,
        },
      },
    },
  );
  const { usage: total } = await session.prompt("x");
  const expected = {
    "gen_ai.request.temperature": 0.5,
    "gen_ai.request.top_p": 0.9,
    "gen_ai.request.top_k": 7,
    "gen_ai.request.seed": 4,
    "gen_ai.request.max_tokens": 100,
    "gen_ai.request.stop_sequences": ["END"],
    "gen_ai.request.frequency_penalty": 0.1,
    "gen_ai.request.presence_penalty": 0.2,
    "gen_ai.request.reasoning.level": "high",
    "gen_ai.response.finish_reasons": ["content_filter"],
    "gen_ai.usage.reasoning.output_tokens": 15,
  };
  expect(withName("chat test").attributes).toMatchObject(expected);
  expect(replayed().withName("chat test").attributes).toMatchObject(expected);
  expect(withName("invoke_agent tester").attributes["gen_ai.agent.description"]).toBe("Sells lamps.");
  expect(total.reasoning).toBe(15);
  expect(events.find(({ type }) => type === "operation")).toMatchObject({ usage: { reasoning: 15 } });
  expect(withName("chat test").attributes).not.toHaveProperty("gen_ai.conversation.compacted");
});

test("with content, a turn that calls tools has the calls in its output, and its tools' definitions", async () => {
  const run = begin([{ text: "I look.", toolCalls: [ask] }, { text: "ok" }], {
    options: { captureContent: true },
  });
  await run.session.prompt("x");
  const outputs = (spans: typeof run.spans) =>
    spans()
      .filter(({ name }) => name === "chat test")
      .map(({ attributes }) => JSON.parse(String(attributes["gen_ai.output.messages"])));
  const call = { type: "tool_call", id: expect.any(String), name: "price", arguments: { article: "lamp" } };
  expect(outputs(run.spans)[0]).toEqual([
    {
      role: "assistant",
      parts: [{ type: "text", content: "I look." }, call],
      finish_reason: "tool_call",
    },
  ]);
  expect(outputs(run.replayed().spans)).toEqual(outputs(run.spans));
  const { attributes } = run.withName("chat test");
  expect(attributes["gen_ai.response.finish_reasons"]).toEqual(["tool_call"]);
  expect(JSON.parse(String(attributes["gen_ai.tool.definitions"]))).toContainEqual({
    type: "function",
    name: "price",
    description: "Gives a price.",
    parameters: { type: "object" },
  });
  expect(run.withName("execute_tool price").attributes["gen_ai.tool.description"]).toBe("Gives a price.");
});

test("the span of a turn has the address of its provider, and the status with which the provider refused it", async () => {
  const server = await startProviderServer();
  onTestFinished(() => server.close());
  server.script([{ text: "hi" }, { status: 400, message: "No such parameter." }]);
  const recorded = recordSpans();
  const observer = createOpenTelemetryObserver({ tracer: recorded.tracer, meter: false });
  const resolveModel = createModelResolver({ env: {}, providers: server.providers });
  const provider = providerProtocols[0]?.provider ?? "";
  const agent = createTestAgent(
    createOfflineGuide(),
    { model: `${provider}/m` },
    {
      resolveModel,
      observers: { all: new Set([observer]), tracing: observer.tracing },
      causeOf: (error) => causeOf(error, plain),
    },
  );
  await agent.session().prompt("x");
  const { port } = new URL(server.providers[provider]?.base_url ?? "");
  expect(recorded.withName("chat m").attributes).toMatchObject({
    "server.address": "127.0.0.1",
    "server.port": Number(port),
  });
  await expect(agent.session().prompt("y")).rejects.toMatchObject({ code: "model_error" });
  const failed = recorded.spans().flatMap(({ name, attributes }) => {
    const type = attributes["error.type"];
    return type === undefined ? [] : [`${name} ${type}`];
  });
  expect(failed).toEqual(["chat m 400", "invoke_agent tester model_error"]);
});

test("a compaction has the turn that writes the summary below it", async () => {
  const run = begin([{ text: "one" }, { text: "two" }, { text: "a summary" }, { text: "three" }]);
  await run.session.prompt("x ".repeat(50_000));
  await run.session.prompt("y");
  await run.session.compact();
  expect(run.paths()).toContain("invoke_agent tester > kit.compaction > chat test");
  expect(run.withName("kit.compaction").attributes).toMatchObject({ "kit.compaction.reason": "manual" });
  await run.session.prompt("z");
  const turns = run.spans().filter(({ name }) => name === "chat test");
  expect(turns.map(({ attributes }) => attributes["gen_ai.conversation.compacted"])).toEqual([
    undefined,
    undefined,
    undefined,
    true,
  ]);
});

import type { LanguageModelV4 } from "@ai-sdk/provider";
import { expect, test } from "vitest";
import type { AgentProfile } from "../agents/define/agent-profile.ts";
import type { Agent } from "../agents/harness.ts";
import type { PromptOptions } from "../agents/operations/options.ts";
import { systemClock } from "../base/clock.ts";
import type { KitEvent } from "../protocol/event.ts";
import { forTests } from "../testing/for-tests.ts";
import { startProviderServer } from "../testing/provider-server/provider-server.ts";
import { createScriptedModel } from "../testing/scripted-model.ts";
import { createTestAgent } from "../testing/test-runtime.ts";
import { createModelResolver } from "./create-model-resolver.ts";

const server = forTests(startProviderServer, ({ close }) => close());

const models = ["local/first", "anthropic/claude-sonnet-4-6"];
const retry = { attempts: 2, baseDelayMs: 1, maxDelayMs: 1 };

interface Setup {
  readonly agent: Agent;
  readonly events: KitEvent[];
  readonly advance: (ms: number) => void;
}

function open(profile: AgentProfile = {}, providers = server.providers): Setup {
  const events: KitEvent[] = [];
  // Waits of a retry are real: only the time of day is the test's.
  let ahead = 0;
  const clock = { ...systemClock, now: () => Date.now() + ahead };
  const resolveModel = createModelResolver({ env: {}, providers });
  const own = { model: models, onEvent: (event: KitEvent) => void events.push(event), ...profile };
  const agent = createTestAgent(createScriptedModel([]), own, {
    resolveModel,
    retry,
    clock,
  });
  const advance = (ms: number): void => {
    ahead += ms;
  };
  return { agent, events, advance };
}

/** The models that were asked, in order. */
function asked(): readonly string[] {
  return server.requests.map((request) => (request as { readonly model: string }).model);
}

test("the next model answers where one fails for good, and the events and the answer say which", async () => {
  server.script([{ status: 500 }, { status: 500 }, { text: "well" }]);
  const { agent, events } = open();
  const { text, model } = await agent.session().prompt("x");
  expect([text, model.id]).toEqual(["well", "anthropic/claude-sonnet-4-6"]);
  expect(asked()).toEqual(["first", "first", "claude-sonnet-4-6"]);
  const reported = events.flatMap((event): (string | number | boolean | undefined)[][] =>
    event.type === "error"
      ? [[event.will_retry, event.next_model]]
      : event.type === "turn_request"
        ? [[event.model, event.attempt]]
        : [],
  );
  expect(reported).toEqual([
    ["local/first", 1],
    [true, undefined],
    ["local/first", 2],
    [true, "anthropic/claude-sonnet-4-6"],
    ["anthropic/claude-sonnet-4-6", 1],
  ]);
});

test.each([401, 403, 404, 400])("a status %d that no repeating mends hands over at once", async (status) => {
  server.script([{ status }, { text: "well" }]);
  expect((await open().agent.session().prompt("x")).text).toBe("well");
  expect(asked()).toEqual(["first", "claude-sonnet-4-6"]);
});

test("later turns of the operation stay with the model that took over, the tools' results included", async () => {
  server.script([
    { status: 401 },
    { toolCall: { id: "call_1", name: "exists", args: JSON.stringify({ path: "a" }) } },
    { text: "done" },
  ]);
  expect((await open().agent.session().prompt("x")).text).toBe("done");
  expect(asked()).toEqual(["first", "claude-sonnet-4-6", "claude-sonnet-4-6"]);
});

test("a model that failed is passed over for a minute, by other sessions as well, and asked again then", async () => {
  server.script([{ status: 401 }, { text: "one" }, { text: "two" }, { text: "three" }]);
  const { agent, advance } = open();
  await agent.session("a").prompt("x");
  await agent.session("b").prompt("x");
  advance(60_000);
  await agent.session("b").prompt("x");
  expect(asked()).toEqual(["first", "claude-sonnet-4-6", "claude-sonnet-4-6", "first"]);
});

test("where all fail, the last failure is the error, and all of them are asked again the next time", async () => {
  server.script([{ status: 401 }, { status: 403 }, { text: "back" }]);
  const { agent } = open();
  await expect(agent.session().prompt("x")).rejects.toThrow("status 403");
  expect((await agent.session().prompt("x")).text).toBe("back");
  expect(asked()).toEqual(["first", "claude-sonnet-4-6", "first"]);
});

test("where all models of a program failed lately, each of them is asked once more", async () => {
  const calls: string[] = [];
  const failing = (modelId: string): LanguageModelV4 => ({
    ...createScriptedModel([]),
    modelId,
    doStream: async () => {
      calls.push(modelId);
      throw new Error("The model is away.");
    },
  });
  const { agent } = open({ model: [failing("a"), failing("b")] });
  for (const session of ["1", "2"]) {
    await expect(agent.session(session).prompt("x")).rejects.toMatchObject({ code: "model_error" });
  }
  expect([...new Set(calls.splice(0, calls.length / 2))]).toEqual(["a", "b"]);
  expect([...new Set(calls)]).toEqual(["a", "b"]);
});

test("a model without a key or a package is passed over; without any that can be used the first says why", async () => {
  const { local = {} } = server.providers;
  server.script([{ text: "ok" }]);
  const { agent } = open({ model: ["openai/gpt-5.1", "local/m"] }, { local });
  expect((await agent.session().prompt("x")).model.id).toBe("local/m");
  const none = open({ model: ["openai/gpt-5.1", "google/gemini-2.5-pro"] }, {});
  await expect(none.agent.session().prompt("x")).rejects.toThrow("There is no key for openai.");
  const wrong = open({ model: ["nowhere/m", "local/m"] });
  await expect(wrong.agent.session().prompt("x")).rejects.toThrow('There is no provider named "nowhere".');
});

test("an abort is not a failure of the model", async () => {
  server.script([{ answer: { text: "slow" }, silentAfter: 1 }, { text: "never" }]);
  const stop = new AbortController();
  const asking = open().agent.session().prompt("x", { signal: stop.signal });
  await expect.poll(() => server.requests.length).toBe(1);
  stop.abort(new Error("enough"));
  await expect(asking).rejects.toThrow();
  expect(asked()).toEqual(["first"]);
});

test("a typed result comes from the model that took over, whether or not it can be held to a schema", async () => {
  const schema: PromptOptions["result"] = {
    type: "object",
    properties: { ok: { type: "boolean" } },
    required: ["ok"],
  } as never;
  for (const list of [
    ["openai/gpt-5.1", "local/m"],
    ["local/m", "openai/gpt-5.1"],
  ]) {
    server.script([{ status: 401 }, { text: '{"ok":true}' }]);
    const { agent } = open({ model: list });
    expect((await agent.session().prompt("x", { result: schema })).result).toEqual({ ok: true });
    expect(JSON.stringify(server.requests[1])).toContain("It must be valid against this JSON Schema");
  }
});

test.each([[[]], [[1]], [42], [null]])("a list of models that is none is refused: %o", async (model) => {
  await expect(
    open()
      .agent.session()
      .prompt("x", { model: model as never }),
  ).rejects.toThrow("model");
});

import { expect, test } from "vitest";
import { createApprovals } from "../agents/approvals/approvals.ts";
import type { AgentProfile } from "../agents/define/agent-profile.ts";
import { defineTool } from "../agents/define/tool.ts";
import { KitError } from "../base/kit-error.ts";
import type { KitEvent } from "../protocol/event.ts";
import type { TurnReceipt } from "../protocol/receipt.ts";
import { createScriptedModel, type Script } from "../testing/scripted-model.ts";
import { createTestAgent } from "../testing/test-runtime.ts";
import { createOpenTelemetryObserver, replayEvents } from "./create-observer.ts";
import type { OpenTelemetryOptions } from "./event-spans.ts";
import { ask, price, usage } from "./testing/price.ts";
import { recordSpans, shapeOf } from "./testing/recorded-spans.ts";

interface Setting {
  readonly profile?: AgentProfile;
  readonly options?: Omit<OpenTelemetryOptions, "tracer" | "meter">;
  readonly sameIds?: boolean;
}

function begin(script: Script, { profile, options, sameIds = false }: Setting = {}) {
  const recorded = recordSpans({ sameIds });
  const observer = createOpenTelemetryObserver({ tracer: recorded.tracer, meter: false, ...options });
  const events: KitEvent[] = [];
  const model = createScriptedModel(script);
  const agent = createTestAgent(
    model,
    { tools: [price], ...profile },
    {
      observers: { all: new Set([observer, (event) => events.push(event)]), tracing: observer.tracing },
      retry,
      approvals: createApprovals(),
    },
  );
  const replayed = (): ReturnType<typeof recordSpans> => {
    const again = recordSpans({ sameIds });
    replayEvents(JSON.parse(JSON.stringify(events)) as KitEvent[], { tracer: again.tracer, ...options });
    return again;
  };
  return { ...recorded, observer, events, agent, model, session: agent.session(), replayed };
}

const retry = { attempts: 2, baseDelayMs: 1, maxDelayMs: 1 };

test("an operation is a tree: its turns, calls, tasks and what these do", async () => {
  const { session, paths, observer } = begin([
    { toolCalls: [ask, { name: "task", input: { prompt: "look deeper" } }] },
    { toolCalls: [ask] },
    { text: "sub answer" },
    { text: "12.99 euros" },
  ]);
  await session.prompt("What is the lamp?");
  const above = "invoke_agent tester";
  const task = `${above} > execute_tool task > kit.task > ${above}`;
  expect(paths()).toEqual([
    above,
    `${above} > chat test`,
    `${above} > chat test`,
    `${above} > execute_tool price`,
    `${above} > execute_tool task`,
    `${above} > execute_tool task > kit.task`,
    task,
    `${task} > chat test`,
    `${task} > chat test`,
    `${task} > execute_tool price`,
  ]);
  expect(observer.open).toBe(0);
});

test("a turn says who was asked, what it cost and how it ended, in the names of the conventions", async () => {
  const response = { id: "resp_1", modelId: "test-2026" };
  const { session, withName } = begin([{ text: "hi", usage, response }]);
  await session.prompt("x");
  expect(withName("chat test").attributes).toMatchObject({
    "kit.kind": "kit.generation",
    "gen_ai.operation.name": "chat",
    "gen_ai.provider.name": "scripted",
    "gen_ai.request.model": "test",
    "gen_ai.response.id": "resp_1",
    "gen_ai.response.model": "test-2026",
    "gen_ai.response.finish_reasons": ["stop"],
    "gen_ai.response.time_to_first_chunk": expect.any(Number),
    "gen_ai.usage.input_tokens": 120,
    "gen_ai.usage.output_tokens": 10,
    "gen_ai.usage.cache_read.input_tokens": 100,
    "gen_ai.usage.cache_write.input_tokens": 5,
    "gen_ai.agent.name": "tester",
    "gen_ai.conversation.id": "tester/1/default",
    "session.id": "tester/1/default",
  });
  expect(withName("invoke_agent tester").attributes).toMatchObject({
    "kit.kind": "kit.operation",
    "kit.operation.kind": "prompt",
    "gen_ai.usage.input_tokens": 120,
  });
});

test("a turn's span names what was in the model's context, up to 50 items, without its text", () => {
  const recorded = recordSpans();
  const observer = createOpenTelemetryObserver({ tracer: recorded.tracer, meter: false });
  const at = { index: 1, timestamp: "2026-11-22T10:00:00.000Z", agent: "a", instance_id: "1", session: "s" };
  const added = Array.from({ length: 70 }, (_, item) => ({
    kind: "guideline" as const,
    id: item === 0 ? "x".repeat(10_000) : `rules/${item}.md`,
    why: "applies to a private path",
    tokens: item,
  }));
  const receipts: readonly TurnReceipt[] = [
    { digest: "d1", items: 80, tokens: 2_415, added, omitted: 10 },
    { digest: "d1", items: 80, tokens: 2_415, before: "t0" },
  ];
  for (const [turn, receipt] of receipts.entries()) {
    const place = { ...at, operation_id: "op", turn_id: `t${turn}` };
    observer({ ...place, type: "turn_request", model: "m", purpose: "agent", attempt: 1, receipt });
    observer({ ...place, type: "turn_end", tool_calls: 0, is_error: true });
  }
  const [first, second] = recorded.spans().map(({ attributes }) => attributes);
  expect(first).toMatchObject({
    "kit.receipt.digest": "d1",
    "kit.receipt.items": 80,
    "kit.receipt.tokens": 2_415,
    "kit.receipt.omitted": 30,
  });
  const withName = first?.["kit.receipt.added"] as readonly string[];
  expect(withName).toHaveLength(50);
  expect(withName[0]?.length).toBeLessThan(200);
  expect(withName[1]).toBe("guideline rules/1.md (1)");
  expect(JSON.stringify(first)).not.toContain("private path");
  expect(second).toMatchObject({ "kit.receipt.items": 80, "kit.receipt.before": "t0" });
  expect(second).not.toHaveProperty("kit.receipt.added");
});

const stopped = new KitError({ code: "aborted", message: "Stopped." });
const failing: readonly (readonly [string, Script, Setting, readonly string[]])[] = [
  [
    "a retry that works",
    [{ error: new Error("busy") }, { text: "ok" }],
    {},
    ["chat test model_error", "chat test", "invoke_agent tester"],
  ],
  [
    "a model that fails for good",
    [{ error: new Error("no") }, { deltas: ["half"], error: new Error("no"), failAfter: 2 }],
    {},
    ["chat test model_error", "chat test model_error", "invoke_agent tester model_error"],
  ],
  [
    "a tool that throws",
    [{ toolCalls: [{ name: "breaks" }] }, { text: "ok" }],
    {
      profile: {
        tools: [
          defineTool({
            name: "breaks",
            description: "Breaks.",
            input: {},
            execute: () => {
              throw new Error("broken");
            },
          }),
        ],
      },
    },
    ["chat test", "execute_tool breaks tool_error", "chat test", "invoke_agent tester"],
  ],
  [
    "an unknown tool",
    [{ toolCalls: [{ name: "missing" }] }, { text: "ok" }],
    {},
    ["chat test", "execute_tool missing tool_error", "chat test", "invoke_agent tester"],
  ],
  [
    "a call that is denied",
    [{ toolCalls: [ask] }, { text: "ok" }],
    { profile: { tools: [{ ...price, needsApproval: true }] } },
    ["chat test", "execute_tool price tool_error", "chat test", "invoke_agent tester"],
  ],
  [
    "a budget that is used up",
    [{ toolCalls: [ask] }],
    { profile: { budget: { maxTurns: 1 } } },
    ["chat test", "execute_tool price", "invoke_agent tester budget_exceeded"],
  ],
  [
    "a task that fails",
    [
      { toolCalls: [{ name: "task", input: { prompt: "x" } }] },
      { error: new Error("no") },
      { error: new Error("no") },
      { text: "ok" },
    ],
    {},
    [
      "chat test",
      "chat test model_error",
      "chat test model_error",
      "invoke_agent tester model_error",
      "kit.task error",
      "execute_tool task tool_error",
      "chat test",
      "invoke_agent tester",
    ],
  ],
];

test.each(failing)(
  "nothing is left open after %s, and a replay gives the same",
  async (...[, script, setting, ends]) => {
    const run = begin(script, setting);
    run.agent.onEvent((event) => {
      if (event.type === "approval_request")
        void run.agent.approvals.decide(event.approval_id, { approved: false });
    });
    await run.session.prompt("x").catch(() => undefined);
    expect(run.observer.open).toBe(0);
    expect(
      run.spans().map(({ name, attributes }) => [name, attributes["error.type"]].filter(Boolean).join(" ")),
    ).toEqual(ends);
    expect(shapeOf(run.replayed().spans())).toEqual(shapeOf(run.spans()));
  },
);

test.each(["in an answer", "in a tool", "while it waits for approval"])(
  "nothing is left open after an abort %s",
  async (where) => {
    const stopping = new AbortController();
    const stop = (): void => stopping.abort(stopped);
    const slow = defineTool({
      name: "price",
      description: "Takes long.",
      input: {},
      execute: () => new Promise<string>(() => stop()),
    });
    const script: Script = () => {
      if (where !== "in an answer") return { toolCalls: [ask] };
      queueMicrotask(stop);
      return { text: "late", delayMs: 500 };
    };
    const needsApproval = where === "while it waits for approval";
    const run = begin(script, { profile: { tools: [{ ...slow, needsApproval }] } });
    run.agent.onEvent((event) => {
      if (event.type === "approval_request") stop();
    });
    await run.session.prompt("x", { signal: stopping.signal }).catch(() => undefined);
    expect(run.observer.open).toBe(0);
    expect(run.withName("invoke_agent tester").attributes["error.type"]).toBe("aborted");
    expect(shapeOf(run.replayed().spans())).toEqual(shapeOf(run.spans()));
  },
);

test("an approval decision is recorded on the call's span", async () => {
  const run = begin([{ toolCalls: [ask] }, { text: "ok" }], {
    profile: { tools: [{ ...price, needsApproval: true }] },
  });
  run.agent.onEvent((event) => {
    if (event.type === "approval_request")
      void run.agent.approvals.decide(event.approval_id, { approved: true });
  });
  await run.session.prompt("x");
  const reported = run.withName("execute_tool price").events;
  expect(reported.map(({ name, attributes }) => [name, attributes?.["kit.approval.approved"]])).toEqual([
    ["kit.approval.request", undefined],
    ["kit.approval", true],
  ]);
});

test("a model is handed the span of its turn, a tool that of its call", async () => {
  const seen: unknown[] = [];
  const tool = defineTool({
    name: "price",
    description: "Sees its trace.",
    input: {},
    execute(_input, { trace }) {
      seen.push(trace?.traceparent);
      return "1299";
    },
  });
  const run = begin([{ toolCalls: [ask] }, { text: "ok" }], { profile: { tools: [tool] } });
  await run.session.prompt("x");
  const parentOf = (name: string): string => {
    const { traceId, spanId } = run.withName(name).spanContext();
    return `00-${traceId}-${spanId}-01`;
  };
  expect(run.model.calls[0]?.headers).toEqual({ traceparent: parentOf("chat test") });
  expect(seen).toEqual([parentOf("execute_tool price")]);
});

test("with ids of kit's own, a replay gives the very same spans", async () => {
  const run = begin([{ toolCalls: [ask] }, { text: "ok" }], { sameIds: true });
  await run.session.prompt("x");
  expect(shapeOf(run.replayed().spans(), true)).toEqual(shapeOf(run.spans(), true));
});

test("spans hold no content, unless it is asked for", async () => {
  const canary = "canary-4711";
  const script: Script = [
    { toolCalls: [{ name: "price", input: { article: canary } }], text: canary },
    { text: canary },
  ];
  const profile: AgentProfile = { instructions: canary, tools: [{ ...price, execute: () => canary }] };
  const plain = begin(script, { profile });
  await plain.session.prompt(canary);
  const recordedText = (run: typeof plain): string => JSON.stringify(shapeOf(run.spans()));
  expect(recordedText(plain)).not.toContain(canary);
  const complete = begin(script, { profile, options: { captureContent: true } });
  await complete.session.prompt(canary);
  const attributes = complete.spans().map((span) => span.attributes);
  const chat = attributes.filter((each) => each["gen_ai.operation.name"] === "chat")[1];
  expect(JSON.parse(String(chat?.["gen_ai.input.messages"]))).toEqual([
    { role: "user", parts: [{ type: "text", content: canary }] },
    {
      role: "assistant",
      parts: [
        { type: "text", content: canary },
        { type: "tool_call", id: expect.any(String), name: "price", arguments: { article: canary } },
      ],
    },
    { role: "tool", parts: [{ type: "tool_call_response", id: expect.any(String), response: canary }] },
  ]);
  expect(JSON.parse(String(chat?.["gen_ai.output.messages"]))).toEqual([
    { role: "assistant", parts: [{ type: "text", content: canary }], finish_reason: "stop" },
  ]);
  expect(chat?.["gen_ai.system_instructions"]).toContain(canary);
  const tool = complete.withName("execute_tool price").attributes;
  expect(tool).toMatchObject({
    "gen_ai.tool.call.arguments": JSON.stringify({ article: canary }),
    "gen_ai.tool.call.result": canary,
  });
});

test("content that is too long is cut, and stays JSON", async () => {
  const long = "a".repeat(200_000);
  const run = begin([{ toolCalls: [{ name: "price", input: { article: long } }] }, { text: long }], {
    options: { captureContent: true },
  });
  await run.session.prompt(long);
  for (const { attributes } of run.spans()) {
    for (const value of Object.values(attributes)) expect(String(value).length).toBeLessThan(200_000);
    for (const name of ["gen_ai.input.messages", "gen_ai.output.messages"]) {
      const text = attributes[name];
      if (text !== undefined) expect(JSON.parse(String(text))).toBeInstanceOf(Array);
    }
  }
});

test("OpenInference's kinds stand on every span, on request", async () => {
  const run = begin(
    [{ toolCalls: [ask, { name: "task", input: { prompt: "x" } }] }, { text: "sub" }, { text: "ok" }],
    {
      options: { openInference: true, attributes: { "deployment.environment.name": "test" } },
    },
  );
  await run.session.prompt("x");
  const kinds = run
    .spans()
    .map(({ name, attributes }) => `${name.split(" ")[0]} ${attributes["openinference.span.kind"]}`);
  expect([...new Set(kinds)].sort()).toEqual([
    "chat LLM",
    "execute_tool TOOL",
    "invoke_agent AGENT",
    "kit.task CHAIN",
  ]);
  for (const { attributes } of run.spans()) expect(attributes["deployment.environment.name"]).toBe("test");
  expect(run.withName("chat test").attributes).toMatchObject({
    "llm.model_name": "test",
    "llm.provider": "scripted",
  });
});

test("a model that makes up long names makes no long spans", async () => {
  const run = begin([{ toolCalls: [{ name: "x".repeat(100_000) }] }, { text: "ok" }]);
  await run.session.prompt("x");
  for (const { name, attributes } of run.spans()) {
    expect(name.length).toBeLessThan(200);
    expect(String(attributes["gen_ai.tool.name"] ?? "").length).toBeLessThan(200);
  }
});

test("without an SDK all works, and nothing is handed on", async () => {
  const observer = createOpenTelemetryObserver();
  const model = createScriptedModel([{ toolCalls: [ask] }, { text: "ok" }]);
  const agent = createTestAgent(model, { tools: [price], onEvent: observer });
  expect((await agent.session().prompt("x")).text).toBe("ok");
  expect(model.calls[0]?.headers).toBeUndefined();
  expect(observer.open).toBe(0);
});

import { expect, test } from "vitest";
import { systemClock } from "../base/clock.ts";
import { KitError } from "../base/kit-error.ts";
import type { EventBody, EventType, KitEvent } from "../protocol/event.ts";
import { createScriptedModel, type Script } from "../testing/scripted-model.ts";
import { createTestAgent } from "../testing/test-runtime.ts";
import { defineTool } from "./define/tool.ts";
import { createDeltas, createEventHub } from "./events.ts";
import { createSecretMask } from "./secrets.ts";

const retry = { attempts: 2, baseDelayMs: 1, maxDelayMs: 1 };

function begin(script: Script) {
  const events: KitEvent[] = [];
  const agent = createTestAgent(
    createScriptedModel(script),
    { tools: [clock], onEvent: (event) => events.push(event) },
    { retry },
  );
  const of = <Type extends EventType>(type: Type) =>
    events.filter((event): event is Extract<KitEvent, { type: Type }> => event.type === type);
  return { session: agent.session(), events, of };
}

const clock = defineTool({ name: "clock", description: "Tells the time.", input: {}, execute: () => "noon" });

test("a turn names its provider, and what the provider says of the answer", async () => {
  const said = { id: "resp_1", modelId: "test-2026-11-01" };
  const { session, of } = begin([{ text: "hi", response: said }, { text: "bye" }]);
  await session.prompt("x");
  await session.prompt("y");
  expect(of("turn_request").map(({ provider }) => provider)).toEqual(["scripted", "scripted"]);
  const [first, second] = of("turn");
  expect(first).toMatchObject({ response_id: "resp_1", response_model: "test-2026-11-01" });
  expect(first?.first_chunk_ms).toBeTypeOf("number");
  expect(second).not.toHaveProperty("response_id");
});

test("a provider's name for its answer makes no event large", async () => {
  const { session, of } = begin([{ text: "hi", response: { id: "x".repeat(1_000_000), modelId: "m" } }]);
  await session.prompt("x");
  expect(of("turn")[0]?.response_id).toHaveLength(256);
});

test("each turn has an end: one that worked, one that failed, one that was stopped", async () => {
  const worked = begin([{ toolCalls: [{ name: "clock" }] }, { text: "noon" }]);
  await worked.session.prompt("x");
  const failed = begin([{ error: new Error("no") }, { error: new Error("no") }]);
  await failed.session.prompt("x").catch(() => undefined);
  const stopping = new AbortController();
  const stopped = begin(() => {
    stopping.abort(new KitError({ code: "aborted", message: "Stopped." }));
    return { text: "late", delayMs: 1_000 };
  });
  await stopped.session.prompt("x", { signal: stopping.signal }).catch(() => undefined);
  const ends = [worked, failed, stopped].map(({ of }) =>
    of("turn_end").map(({ tool_calls, is_error, is_aborted }) => ({ tool_calls, is_error, is_aborted })),
  );
  expect(ends).toEqual([
    [{ tool_calls: 1 }, { tool_calls: 0 }],
    [{ tool_calls: 0, is_error: true }],
    [{ tool_calls: 0, is_error: true, is_aborted: true }],
  ]);
  for (const { of } of [worked, failed, stopped]) {
    const turns = new Set(of("turn_request").map(({ turn_id }) => turn_id));
    expect(new Set(of("turn_end").map(({ turn_id }) => turn_id))).toEqual(turns);
  }
});

test("a turn that writes a summary has an end, too", async () => {
  const { session, of } = begin([{ text: "one" }, { text: "two" }, { text: "a summary" }]);
  await session.prompt("x ".repeat(50_000));
  await session.prompt("y");
  await session.compact();
  const [request] = of("turn_request").filter(({ purpose }) => purpose === "compaction");
  expect(request).toMatchObject({ provider: "scripted" });
  expect(of("turn_end").map(({ turn_id }) => turn_id)).toContain(request?.turn_id);
});

test("a task that a model asks for names the call, one that a caller asks for has none", async () => {
  const { session, of } = begin([
    { toolCalls: [{ name: "task", input: { prompt: "look" } }] },
    { text: "looked" },
    { text: "done" },
    { text: "asked" },
  ]);
  await session.prompt("x");
  await session.task("y");
  const [byModel, byCaller] = of("task_start");
  const [call] = of("tool_start");
  expect(byModel).toMatchObject({ tool_call_id: call?.tool_call_id, turn_id: call?.turn_id });
  expect(of("task_end")[0]?.turn_id).toBe(call?.turn_id);
  expect(byCaller).not.toHaveProperty("tool_call_id");
  expect(byCaller).not.toHaveProperty("turn_id");
});

test("a hub has the tracing of the first listener that has one, while it listens", () => {
  const hub = createEventHub({ clock: systemClock });
  const tracer = () => Object.assign(() => undefined, { tracing: {} });
  const [first, second] = [tracer(), tracer()];
  hub.subscribe(() => undefined);
  const ends = [first, second].map((listener) => hub.subscribe(listener));
  expect(hub.tracing).toBe(first.tracing);
  ends[0]?.();
  expect(hub.tracing).toBe(second.tracing);
  ends[1]?.();
  expect(hub.tracing).toBeUndefined();
});

test("a secret in streamed arguments is masked when calls and text are written in turns", () => {
  const secret = "sk-canary-0123456789";
  const bodies: EventBody[] = [];
  const emit = (body: EventBody): void => void bodies.push(body);
  const deltas = createDeltas({ emit, mask: createSecretMask([secret]), partial: undefined });
  const calls = ["1", "2"].map((tool_call_id) => ({ tool_call_id, tool: "clock" }));
  const text = `{"key":"${secret}"} sk-`;
  for (let at = 0; at < text.length; at += 5) {
    for (const call of calls) deltas.onDelta("tool_args_delta", text.slice(at, at + 5), call);
    deltas.onDelta("text_delta", text.slice(at, at + 5));
  }
  deltas.end();
  const written = new Map<string, string>();
  for (const body of bodies) {
    if (body.type !== "tool_args_delta" && body.type !== "text_delta") continue;
    const of = body.type === "text_delta" ? "text" : body.tool_call_id;
    if (body.type === "tool_args_delta") expect(body.offset).toBe(written.get(of)?.length ?? 0);
    written.set(of, (written.get(of) ?? "") + body.text);
  }
  expect([...written.values()]).toEqual(Array(3).fill('{"key":"[secret]"} sk-'));
});

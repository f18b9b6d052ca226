import { expect, test } from "vitest";
import type { KitEvent } from "../../protocol/event.ts";
import { noUsage } from "../../protocol/read-records.ts";
import { type ChatDelta, ChatFold } from "./chat-fold.ts";
import { newResponse, positionOf, ResponseFold } from "./response-fold.ts";

const operationId = "op_01HZZZZZZZZZZZZZZZZZZZZZZZ";
let index = 0;
const event = (type: string, fields: object = {}): KitEvent =>
  ({
    type,
    index: ++index,
    timestamp: "2026-11-30T12:00:00.000Z",
    agent: "echo",
    instance_id: "default",
    session: "s",
    operation_id: operationId,
    ...fields,
  }) as KitEvent;
const request = (turn_id: string, attempt = 1) =>
  event("turn_request", { turn_id, attempt, purpose: "agent" });
const text = (turn_id: string, said: string) => event("text_delta", { turn_id, text: said });
const turn = (turn_id: string, finish_reason = "stop") =>
  event("turn", {
    turn_id,
    finish_reason,
    purpose: "agent",
    usage: { ...noUsage, input: 3, total_tokens: 3 },
  });
const end = (fields: object = {}) => event("operation", { is_error: false, duration_ms: 1, ...fields });

const chatFold = () => new ChatFold({ operationId, model: "echo", created: 1 });
const responseFold = () =>
  new ResponseFold({ operationId }, newResponse({ id: "resp_x", model: "echo", createdAt: 1 }));

test("the texts of several turns are one message of a chat, and several items of a response", () => {
  const events = [
    event("operation_start"),
    request("t1"),
    event("reasoning_delta", { turn_id: "t1", text: "Hm." }),
    text("t1", "I search."),
    turn("t1", "tool-calls"),
    event("tool_start", { tool_call_id: "c", tool: "find", args: {} }),
    event("turn_request", { operation_id: "op_task", parent_operation_id: operationId, turn_id: "t9" }),
    event("text_delta", { operation_id: "op_task", turn_id: "t9", text: "a task's" }),
    event("turn", {
      operation_id: "op_task",
      turn_id: "t9",
      usage: { ...noUsage, output: 4, total_tokens: 4 },
    }),
    event("tool_end", { tool_call_id: "c", tool: "find", result: "x", is_error: false }),
    request("t2"),
    text("t2", "Found"),
    text("t2", " it."),
    turn("t2", "length"),
    end(),
  ];
  const chat = chatFold();
  for (const each of events) chat.push(each);
  expect(chat.toCompletion()).toMatchObject({
    choices: [
      { message: { content: "I search.\n\nFound it.", reasoning_content: "Hm." }, finish_reason: "length" },
    ],
    usage: { prompt_tokens: 6, completion_tokens: 4, total_tokens: 10 },
  });
  const fold = responseFold();
  const numbers = events.flatMap((each) => fold.push(each)).map(({ sequence_number }) => sequence_number);
  expect(numbers).toEqual([...new Set(numbers)].sort((a, b) => a - b));
  expect(fold.response).toMatchObject({
    status: "incomplete",
    incomplete_details: { reason: "max_output_tokens" },
    usage: { input_tokens: 6, output_tokens: 4, total_tokens: 10 },
    output: [
      { type: "reasoning", content: [{ text: "Hm." }] },
      { type: "message", content: [{ text: "I search." }] },
      { type: "message", content: [{ text: "Found it." }] },
    ],
  });
});

test("the words of a killed process are void: a stream of a chat cannot go on, a response closes the item", () => {
  const events = [
    event("operation_start"),
    request("t1"),
    event("reasoning_delta", { turn_id: "t1", text: "Hm." }),
    text("t1", "Half an"),
    event("operation_start", { resumed: true }),
    request("t2"),
    text("t2", "A whole answer."),
    turn("t2"),
    end(),
  ];
  const chat = chatFold();
  const torn = events.map((each) => {
    chat.push(each);
    return chat.isTorn;
  });
  expect(torn.indexOf(true)).toBe(4);
  expect(chat.toCompletion().choices[0]).toMatchObject({ message: { content: "A whole answer." } });
  const fold = responseFold();
  const done = events.flatMap((each) => fold.push(each)).filter(({ type }) => type.endsWith("item.done"));
  expect(done.map(({ item }) => (item as { status: string }).status)).toEqual([
    "completed",
    "incomplete",
    "completed",
  ]);
  expect(fold.response.output).toMatchObject([{ content: [{ text: "A whole answer." }] }]);
});

test("a failed and a stopped operation end a response, and are an error of a chat", () => {
  for (const [fields, status, type] of [
    [{ is_error: true }, "failed", "model_error"],
    [{ is_error: true, is_aborted: true }, "cancelled", "aborted"],
  ] as const) {
    const error = { type: "model_error", message: "It is down." };
    const events = [event("operation_start"), event("error", { error, will_retry: false }), end(fields)];
    const [chat, fold] = [chatFold(), responseFold()];
    for (const each of events) {
      chat.push(each);
      fold.push(each);
    }
    expect([chat.error?.type, fold.response.status, fold.response.usage !== null]).toEqual([
      type,
      status,
      true,
    ]);
  }
});

test("the position of a reader is that of the event that its last number comes from", () => {
  const fold = responseFold();
  index = 40;
  const events = [
    event("operation_start"),
    request("t1"),
    text("t1", "a"),
    text("t1", "b"),
    turn("t1"),
    end(),
  ];
  for (const each of events)
    for (const { sequence_number } of fold.push(each))
      expect(positionOf(sequence_number, 41)).toBe(each.index);
  expect(positionOf(1, 41)).toBe(0);
});

const written = (text: string, offset: number, tool_call_id = "c1") =>
  event("tool_args_delta", { turn_id: "t1", tool_call_id, tool: "weather", text, offset, kind: "caller" });
const start = (tool_call_id = "c1", args: unknown = { place: "Rome" }) =>
  event("tool_start", { turn_id: "t1", tool_call_id, tool: "weather", args, kind: "caller" });
const wait = (tool_call_id = "c1", args: unknown = { place: "Rome" }) =>
  event("approval_request", {
    turn_id: "t1",
    approval_id: `caller_${tool_call_id}`,
    tool_call_id,
    tool: "weather",
    args,
    kind: "caller",
  });
const foldAll = (events: readonly KitEvent[]) => {
  const [chat, fold] = [chatFold(), responseFold()];
  const deltas = events.flatMap((each) => chat.push(each));
  const streamed = events.flatMap((each) => fold.push(each));
  const argsOf = (type: string) =>
    streamed.flatMap((each) =>
      each.type === `response.function_call_arguments.${type}` ? [each.delta ?? each.arguments] : [],
    );
  return { chat, fold, deltas, streamed, argsOf };
};
const isArgs = ({ type }: KitEvent) => type === "tool_args_delta";
const callsOf = (deltas: readonly ChatDelta[]) => deltas.flatMap(({ tool_calls }) => tool_calls ?? []);

test("parallel calls come whole in the order of their waits, and a replay without the written arguments is the same stream", () => {
  const ids = ["c1", "c2", "c3", "c4", "c5", "c6"];
  const events = [
    event("operation_start"),
    request("t1"),
    text("t1", "I look. "),
    written('{ "place"', 0, "c2"),
    written('{ "place": "Rome" }', 0),
    event("reasoning_delta", { turn_id: "t1", text: "Hm." }),
    written(': "Rome" }', 9, "c2"),
    turn("t1", "tool-calls"),
    ...ids.map((id) => start(id)),
    ...ids.map((id) => wait(id)),
  ];
  const { chat, fold, deltas, streamed, argsOf } = foldAll(events);
  const args = ids.map(() => '{"place":"Rome"}');
  expect([argsOf("delta"), argsOf("done")]).toEqual([args, args]);
  expect(fold.response.output.map(({ type, call_id }) => [type, call_id])).toEqual([
    ["message", undefined],
    ["reasoning", undefined],
    ...ids.map((id) => ["function_call", expect.stringMatching(new RegExp(`^call_.*-${id}$`))]),
  ]);
  expect(callsOf(deltas)).toEqual(
    ids.map((id, at) => ({
      index: at,
      id: expect.stringMatching(new RegExp(`^call_.*-${id}$`)),
      type: "function",
      function: { name: "weather", arguments: '{"place":"Rome"}' },
    })),
  );
  expect(chat.isOver).toBe(true);
  const numbers = streamed.map(({ sequence_number }) => sequence_number);
  expect(numbers).toEqual([...new Set(numbers)].sort((a, b) => a - b));
  expect(foldAll(events.filter((each) => !isArgs(each))).streamed).toEqual(streamed);
  // A slow reader has lost pieces.
  expect(foldAll(events.toSpliced(3, 1)).streamed).toEqual(streamed);
});

test.each([
  [
    "does not fit",
    [
      turn("t1", "tool-calls"),
      start("c1", { place: 1 }),
      event("tool_end", { tool_call_id: "c1", tool: "weather", result: "No.", is_error: true }),
    ],
  ],
  ["broke off", [event("error", { error: { type: "unavailable", message: "Gone." }, will_retry: true })]],
  ["was of a killed process", [event("operation_start", { resumed: true })]],
  [
    "was answered elsewhere while the agent's own call went on",
    [
      turn("t1", "tool-calls"),
      event("tool_start", { turn_id: "t1", tool_call_id: "own", tool: "find", args: {} }),
      start(),
      wait(),
      event("approval", { tool_call_id: "c1", tool: "weather", approval_id: "caller_c1", approved: false }),
      event("tool_end", { tool_call_id: "c1", tool: "weather", result: "No.", is_error: true }),
      event("tool_end", { tool_call_id: "own", tool: "find", result: "x", is_error: false }),
    ],
  ],
])("a client gets nothing of a call that %s, and the answer goes on", (_, ends) => {
  index = 0;
  const events = [
    event("operation_start"),
    request("t1"),
    written('{"place":', 0),
    ...ends.map((each) => ({ ...each, index: ++index })),
    request("t2"),
    text("t2", "Rome."),
    turn("t2"),
    end(),
  ];
  const { chat, fold, deltas, streamed } = foldAll(events);
  expect(JSON.stringify(streamed)).not.toMatch(/function_call|incomplete"/);
  expect(fold.response.output).toMatchObject([{ type: "message", status: "completed" }]);
  expect([callsOf(deltas), chat.isTorn, chat.error]).toEqual([[], false, undefined]);
  expect(chat.toCompletion().choices[0]).toMatchObject({ message: { content: "Rome." } });
});

test("a client gets the arguments that a hook has changed, and no others", () => {
  const { deltas, argsOf } = foldAll([
    event("operation_start"),
    request("t1"),
    written('{"place":"Rome"}', 0),
    turn("t1", "tool-calls"),
    start(),
    wait("c1", { place: "Oslo" }),
  ]);
  expect([argsOf("delta"), argsOf("done")]).toEqual([['{"place":"Oslo"}'], ['{"place":"Oslo"}']]);
  expect(callsOf(deltas)).toMatchObject([{ index: 0, function: { arguments: '{"place":"Oslo"}' } }]);
});

test("sources are annotations of the text around them, and pictures are items", () => {
  const source = (url: string) => event("source", { turn_id: "t1", source_id: url, url });
  const { chat, fold, deltas, streamed } = foldAll([
    event("operation_start"),
    request("t1"),
    source("https://example.org/a"),
    text("t1", "So. "),
    source("https://example.org/b"),
    event("source", { turn_id: "t1", source_id: "d", title: "Notes" }),
    event("file", { turn_id: "t1", media_type: "image/png", data: "AQID" }),
    text("t1", "See."),
    turn("t1"),
    end(),
  ]);
  const citation = (url: string, at: number) => ({ url, title: url, start_index: at, end_index: at });
  const [a, b] = [citation("https://example.org/a", 0), citation("https://example.org/b", 4)];
  const annotations = [a, b].map((of) => ({ type: "url_citation", ...of }));
  expect(fold.response.output).toMatchObject([
    { type: "message", content: [{ text: "So. ", annotations }] },
    { type: "image_generation_call", result: "AQID", status: "completed" },
    { type: "message", content: [{ text: "See.", annotations: [] }] },
  ]);
  expect(
    streamed.flatMap(({ annotation, annotation_index: at }) => (annotation ? [[at, annotation]] : [])),
  ).toEqual(annotations.map((each, at) => [at, each]));
  const cited = [a, b].map((url_citation) => ({ type: "url_citation", url_citation }));
  expect(deltas.flatMap((delta) => delta.annotations ?? [])).toEqual(cited);
  expect(chat.toCompletion().choices[0]).toMatchObject({
    message: { content: "So. See.", annotations: cited },
  });
});

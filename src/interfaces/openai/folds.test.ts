import { expect, test } from "vitest";
import type { KitEvent } from "../../protocol/event.ts";
import { noUsage } from "../../protocol/read-records.ts";
import { ChatFold } from "./chat-fold.ts";
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
  expect(torn.indexOf(true)).toBe(3);
  expect(chat.toCompletion().choices[0]).toMatchObject({ message: { content: "A whole answer." } });
  const fold = responseFold();
  const done = events.flatMap((each) => fold.push(each)).filter(({ type }) => type.endsWith("item.done"));
  expect(done.map(({ item }) => (item as { status: string }).status)).toEqual(["incomplete", "completed"]);
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

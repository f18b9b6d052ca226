import { expect, test } from "vitest";
import {
  emptyTranscript,
  foldEvents,
  type HistoryMessage,
  type KitEvent,
} from "../../../../src/client/index.ts";
import { type Entry, joinEntries, picturesIn, readHistory, readTranscript } from "./conversation.ts";

const at = "2026-11-22T10:00:00.000Z";
const later = "2026-11-22T10:00:03.900Z";
const context = { instance_id: "1", session: "default", timestamp: at };
const text = (words: string) => [{ type: "text", text: words }];
const toLine = (entry: Entry): string => ("text" in entry ? `${entry.kind}: ${entry.text}` : entry.kind);

function fold(...bodies: readonly Record<string, unknown>[]) {
  const events = bodies.map(
    (body, index) => ({ ...context, operation_id: "op-1", index: index + 1, ...body }) as unknown as KitEvent,
  );
  return foldEvents(emptyTranscript, events);
}

const usage = {
  input: 10,
  output: 5,
  cache_read: 0,
  cache_write: 0,
  total_tokens: 15,
  cost: { input: 0.1, output: 0.1, cache_read: 0, cache_write: 0, total: 0.2 },
};

const history: readonly HistoryMessage[] = [
  {
    role: "user",
    content: [...text("Read"), { type: "image", data: "AA==", media_type: "image/png" }],
    timestamp: at,
    position: 1,
    operation_id: "op-1",
  },
  {
    role: "user",
    content: text("rules"),
    timestamp: at,
    position: 2,
    source: "guidelines",
    operation_id: "op-1",
  },
  {
    role: "assistant",
    content: [
      { type: "reasoning", text: "Hm" },
      { type: "tool_call", tool_call_id: "c1", tool: "read", args: {} },
    ],
    timestamp: at,
    position: 3,
    operation_id: "op-1",
    usage,
    finish_reason: "tool-calls",
  },
  {
    role: "tool",
    content: [
      { type: "tool_result", tool_call_id: "c1", tool: "read", is_error: false, content: text("content") },
    ],
    timestamp: at,
    position: 4,
    operation_id: "op-1",
  },
  {
    role: "assistant",
    content: text("Done"),
    timestamp: later,
    position: 5,
    operation_id: "op-1",
    usage,
    finish_reason: "stop",
  },
];

test("messages of a history become entries with results next to their calls, and the end that they show", () => {
  const entries = readHistory(history);
  expect(entries.map(toLine)).toEqual([
    "user: Read",
    "kit: rules",
    "thinking: Hm",
    "call",
    "text: Done",
    "end",
  ]);
  expect(entries[0]).toMatchObject({ pictures: [{ media_type: "image/png" }] });
  expect(entries[3]).toMatchObject({ state: "done", result: "content" });
  expect(entries[5]).toMatchObject({ state: "done", duration_ms: 3_900, tokens: 30, cost: 0.4 });
});

test("a failed and a stopped message are still failed and stopped after a reload", () => {
  const question = { role: "user", content: text("Why?"), timestamp: at } as const;
  const half = { role: "assistant", content: text("Bec"), timestamp: at, finish_reason: "error" } as const;
  const error = { type: "model_error", message: "The model failed." } as const;
  const entries = readHistory(
    [
      { ...question, operation_id: "op-1", position: 1 },
      { ...question, operation_id: "op-2", position: 2 },
      { ...half, operation_id: "op-2", position: 3 },
    ],
    [
      { operation_id: "op-1", status: "failed", error, attempts: 3, duration_ms: 50 },
      { operation_id: "op-2", status: "aborted", duration_ms: 2_600 },
    ],
  );
  expect(entries.map(toLine)).toEqual(["user: Why?", "end", "user: Why?", "text: Bec", "end"]);
  expect(entries[1]).toMatchObject({ state: "failed", attempts: 3, error, duration_ms: 50 });
  expect(entries[4]).toMatchObject({ state: "stopped", duration_ms: 2_600 });
});

test("a message without an answer and without an end in the history has no end", () => {
  expect(readHistory(history.slice(0, 1)).map(toLine)).toEqual(["user: Read"]);
});

test("a live conversation leaves out turns and the work of tasks, but not a task's call that waits for a person", () => {
  const task = { operation_id: "op-2", parent_operation_id: "op-1", task_id: "k1" };
  const call = { ...task, tool_call_id: "c1", tool: "refund" };
  const transcript = fold(
    { type: "operation_start", operation_kind: "prompt", message: "hello" },
    { type: "turn_request", turn_id: "t1", attempt: 1, model: "m", purpose: "agent" },
    { type: "task_start", task_id: "k1", role: "reader", prompt: "Read it." },
    { type: "operation_start", operation_kind: "task", message: "Read it.", ...task },
    { type: "tool_start", args: {}, ...call },
  );
  expect(readTranscript(transcript, new Map()).map(toLine)).toEqual(["user: hello", "task"]);
  const waiting = foldEvents(transcript, [
    { ...context, index: 6, type: "approval_request", approval_id: "a1", args: {}, ...call } as KitEvent,
  ]);
  expect(readTranscript(waiting, new Map()).map(toLine)).toEqual(["user: hello", "task", "call"]);
});

test("an entry stays the same object until it changes, such as by pictures that arrive", () => {
  const transcript = fold({ type: "operation_start", operation_kind: "prompt", message: "hello", images: 1 });
  const [first] = readTranscript(transcript, new Map());
  expect(readTranscript(transcript, new Map())[0]).toBe(first);
  const pictures = picturesIn(history, "op-1");
  const [withPictures] = readTranscript(transcript, new Map([["op-1", pictures]]));
  expect(withPictures).toMatchObject({
    kind: "user",
    text: "hello",
    pictures: [{ media_type: "image/png" }],
  });
});

test("work that goes on after a restart shows its message once, and its call as it is now", () => {
  const live = fold(
    { type: "operation_start", operation_kind: "prompt", message: "Read", resumed: true },
    { type: "tool_start", tool_call_id: "c1", tool: "read", args: {} },
    { type: "approval_request", approval_id: "a1", tool_call_id: "c1", tool: "read", args: {} },
  );
  const entries = joinEntries(readHistory(history.slice(0, 3)), readTranscript(live, new Map()));
  expect(entries.map(toLine)).toEqual(["user: Read", "kit: rules", "thinking: Hm", "call"]);
  expect(entries[3]).toMatchObject({ state: "waiting", approval_id: "a1" });
});

test("a failed message that a person tries again loses its failure, and another message keeps its own", () => {
  const question = { role: "user", content: text("Why?"), timestamp: at } as const;
  const failed = { status: "failed", duration_ms: 50 } as const;
  const past = readHistory(
    [
      { ...question, operation_id: "op-0", position: 1 },
      { ...question, operation_id: "op-1", position: 2 },
    ],
    [
      { operation_id: "op-0", ...failed },
      { operation_id: "op-1", ...failed },
    ],
  );
  const live = fold({
    type: "operation_start",
    operation_kind: "prompt",
    message: "Why?",
    resumed: true,
    attempt: 2,
  });
  const joinPast = (transcript: typeof live) => joinEntries(past, readTranscript(transcript, new Map()));
  expect(joinPast(live).map(toLine)).toEqual(["user: Why?", "end", "user: Why?"]);
  expect(joinPast(emptyTranscript)).toEqual(past);
});

test("a message that joins is shown where the agent reads it, and once if the history has it", () => {
  const joined = { type: "joined", message: "Also this", joined_from: "op-7", dispatch_id: "d" };
  const live = fold(
    { type: "operation_start", operation_kind: "prompt", message: "Read", resumed: true },
    { type: "tool_start", tool_call_id: "c1", tool: "read", args: {} },
    { type: "tool_end", tool_call_id: "c1", tool: "read", result: "", is_error: false, duration_ms: 1 },
    joined,
  );
  const entries = readTranscript(live, new Map());
  expect(entries.map(toLine)).toEqual(["user: Read", "call", "user: Also this"]);
  const past = { role: "user", content: text("Also this"), timestamp: at, position: 9 } as const;
  const before = history.slice(0, 3);
  const lines = (messages: typeof history): readonly string[] =>
    joinEntries(readHistory(messages), entries).map(toLine);
  expect(lines(before)).toContain("user: Also this");
  const whole = [...before, { ...past, operation_id: "op-1", joined_from: "op-7" }];
  expect(lines(whole).filter((line) => line === "user: Also this")).toHaveLength(1);
});

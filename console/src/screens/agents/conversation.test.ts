import { describe, expect, test } from "vitest";
import type { KitEvent } from "../../../../src/client/index.ts";
import {
  type Conversation,
  type Entry,
  emptyConversation,
  entriesOf,
  withEvents,
  withPictures,
} from "./conversation.ts";

const context = { instance_id: "1", session: "default", timestamp: "2026-11-22T10:00:00.000Z" };

/** Events with rising indexes, of one operation unless they name another. */
function toEvents(bodies: readonly Record<string, unknown>[], from = 1): readonly KitEvent[] {
  return bodies.map(
    (body, at) => ({ ...context, operation_id: "op-1", index: from + at, ...body }) as unknown as KitEvent,
  );
}

const after = (...bodies: readonly Record<string, unknown>[]): Conversation =>
  withEvents(emptyConversation, toEvents(bodies));
const toLine = (entry: Entry): string => ("text" in entry ? `${entry.kind}: ${entry.text}` : entry.kind);
const started = { type: "operation_start", operation_kind: "prompt", message: "hello" };
const asked = { type: "turn_request", turn_id: "t1", attempt: 1 };
const delta = (text: string, turn_id = "t1") => ({ type: "text_delta", text, turn_id });

describe("a conversation", () => {
  test("joins the deltas of a turn, and shows each delta once when a stream resumes", () => {
    const before = after(started, asked, delta("one "), delta("two "));
    const again = withEvents(before, toEvents([delta("two "), delta("three")], 4));
    expect(again.entries.map(toLine)).toEqual(["user: hello", "text: one two three"]);
    expect([again.index, again.working]).toEqual([5, "op-1"]);
  });

  test("shows another client's images with its text, once the history has them", () => {
    const before = after({ ...started, images: 1 }, asked);
    const content = [
      { type: "text", text: "hello" },
      { type: "image", media_type: "image/png", data: "iVBORw0KGgo=" },
    ];
    const message = { role: "user", operation_id: "op-1", timestamp: context.timestamp, content };
    const { entries } = withPictures(before, "op-1", [message] as Parameters<typeof withPictures>[2]);
    expect(entries).toMatchObject([{ kind: "user", text: "hello", pictures: [expect.anything()] }]);
    expect(withPictures(before, "op-2", [message] as Parameters<typeof withPictures>[2])).toBe(before);
  });

  test("drops the text of an attempt that is retried", () => {
    const { entries } = after(
      started,
      asked,
      delta("half an ans"),
      { ...asked, attempt: 2 },
      delta("answer"),
    );
    expect(entries.map(toLine)).toEqual(["user: hello", "text: answer"]);
  });

  test("drops the turn that a crash interrupted, and keeps the text before it", () => {
    const { entries } = after(
      started,
      asked,
      delta("done."),
      { type: "turn_end", turn_id: "t1", tool_calls: 0 },
      { ...asked, turn_id: "t2" },
      delta("half", "t2"),
      { ...started, resumed: true },
      { ...asked, turn_id: "t3" },
      delta("whole", "t3"),
    );
    expect(entries.map(toLine)).toEqual(["user: hello", "text: done.", "text: whole"]);
  });

  test("shows a waiting call, its decision and its result in one entry", () => {
    const call = { tool_call_id: "c1", tool: "refund" };
    const waiting = after(
      started,
      { type: "tool_start", ...call, args: { order: 1 } },
      { type: "approval_request", ...call, approval_id: "a1" },
    );
    expect(waiting.entries.at(-1)).toMatchObject({ kind: "tool", state: "waiting", approval_id: "a1" });
    const done = withEvents(
      waiting,
      toEvents(
        [
          { type: "approval", ...call, approval_id: "a1", approved: false, reason: "too much" },
          { type: "tool_end", ...call, result: "denied", is_error: true, duration_ms: 4 },
          { type: "operation", operation_kind: "prompt", duration_ms: 9, is_error: false },
        ],
        4,
      ),
    );
    expect(done.entries).toHaveLength(3);
    expect(done.entries[1]).toMatchObject({
      state: "failed",
      result: "denied",
      decision: "Denied: too much",
      approval_id: undefined,
    });
    expect([done.working, done.entries[2]?.kind]).toEqual([undefined, "end"]);
  });

  test("shows a call that is repeated after a crash in the same entry", () => {
    const call = { type: "tool_start", tool_call_id: "c1", tool: "read", args: {} };
    const { entries } = after(started, call, { ...started, resumed: true }, call);
    expect(entries.map(({ kind }) => kind)).toEqual(["user", "tool"]);
  });

  test("leaves out the text of a task, and shows the task", () => {
    const { entries } = after(
      started,
      { type: "task_start", task_id: "k1", role: "reader", prompt: "Read it." },
      { ...delta("of the task"), task_id: "k1", operation_id: "op-2" },
      { type: "task_end", task_id: "k1", is_error: false, duration_ms: 3 },
    );
    expect(entries.map(({ kind }) => kind)).toEqual(["user", "task"]);
    expect(entries[1]).toMatchObject({ state: "done", label: "reader" });
  });

  test("with 10,000 events is built within a few frames", () => {
    const events = toEvents(Array.from({ length: 10_000 }, (_, at) => delta(`${at} `)));
    let conversation = after(started, asked);
    for (let at = 0; at < events.length; at += 100)
      conversation = withEvents(conversation, events.slice(at, at + 100));
    expect(conversation.entries).toHaveLength(2);
  });
});

test("messages of a history become entries with results next to their calls", () => {
  const at = context.timestamp;
  const entries = entriesOf([
    {
      role: "user",
      content: [
        { type: "text", text: "Read" },
        { type: "image", data: "AA==", media_type: "image/png" },
      ],
      timestamp: at,
      position: 1,
    },
    {
      role: "user",
      content: [{ type: "text", text: "rules" }],
      timestamp: at,
      position: 2,
      source: "guidelines",
    },
    {
      role: "assistant",
      content: [
        { type: "reasoning", text: "Hm" },
        { type: "tool_call", tool_call_id: "c1", tool: "read", args: {} },
      ],
      timestamp: at,
      position: 3,
    },
    {
      role: "tool",
      content: [
        {
          type: "tool_result",
          tool_call_id: "c1",
          tool: "read",
          is_error: false,
          content: [{ type: "text", text: "content" }],
        },
      ],
      timestamp: at,
      position: 4,
    },
    { role: "assistant", content: [{ type: "text", text: "Done" }], timestamp: at, position: 5 },
  ]);
  expect(entries.map(toLine)).toEqual(["user: Read", "kit: rules", "thinking: Hm", "tool", "text: Done"]);
  expect(entries[0]).toMatchObject({ pictures: [{ media_type: "image/png" }] });
  expect(entries[3]).toMatchObject({ state: "done", result: "content" });
});

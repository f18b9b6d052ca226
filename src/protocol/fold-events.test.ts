import { describe, expect, test } from "vitest";
import type { KitEvent } from "./event.ts";
import { emptyTranscript, foldEvents } from "./fold-events.ts";
import type { Transcript, TranscriptItem } from "./transcript.ts";

const context = { instance_id: "1", session: "default", timestamp: "2026-11-22T10:00:00.000Z" };

/** Events with rising indexes, of one operation unless they name another. */
function toEvents(bodies: readonly Record<string, unknown>[], from = 1): readonly KitEvent[] {
  return bodies.map(
    (body, at) => ({ ...context, operation_id: "op-1", index: from + at, ...body }) as unknown as KitEvent,
  );
}

const fold = (...bodies: readonly Record<string, unknown>[]): Transcript =>
  foldEvents(emptyTranscript, toEvents(bodies));
const more = (before: Transcript, ...bodies: readonly Record<string, unknown>[]): Transcript =>
  foldEvents(before, toEvents(bodies, before.index + 1));
const toLine = (item: TranscriptItem): string => ("text" in item ? `${item.kind}: ${item.text}` : item.kind);
const started = { type: "operation_start", operation_kind: "prompt", message: "hello" };
const asked = { type: "turn_request", turn_id: "t1", attempt: 1, model: "m", purpose: "agent" };
const delta = (text: string, turn_id = "t1") => ({ type: "text_delta", text, turn_id });
const ended = { type: "operation", operation_kind: "prompt", duration_ms: 9, is_error: false };
const provider = { name: "ProviderError", message: "Rate limit reached", status: 429 };
const failure = { type: "model_error", message: "The model failed.", cause: provider };
const retried = { type: "error", turn_id: "t1", error: failure, will_retry: true, retry_in_ms: 4_000 };

describe("a transcript", () => {
  test("joins the deltas of a turn, and shows each delta once when a stream resumes", () => {
    const before = fold(started, asked, delta("one "), delta("two "));
    const again = foldEvents(before, toEvents([delta("two "), delta("three")], 4));
    expect(again.items.map(toLine)).toEqual(["operation", "turn", "text: one two three"]);
    expect([again.index, again.operation, again.state]).toEqual([5, "op-1", "working"]);
  });

  test("keeps the objects of items that have not changed", () => {
    const before = fold(started, asked, delta("one"));
    const next = more(before, { type: "turn_end", turn_id: "t1", tool_calls: 0 }, ended);
    expect(next.items[0]).not.toBe(before.items[0]);
    expect(more(next, { ...started, operation_id: "op-2" }).items[1]).toBe(next.items[1]);
    expect(before.items).toHaveLength(3);
  });

  test("drops the text of an attempt that is retried, and keeps both turns", () => {
    const { items } = fold(started, asked, delta("half an ans"), { ...asked, attempt: 2 }, delta("answer"));
    expect(items.map(toLine)).toEqual(["operation", "turn", "turn", "text: answer"]);
    expect(items[1]).toMatchObject({ state: "failed", attempt: 1 });
  });

  test("drops the turn that a crash interrupted, and keeps the text before it", () => {
    const { items } = fold(
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
    expect(items.map(toLine).filter((line) => line !== "turn")).toEqual([
      "operation",
      "text: done.",
      "text: whole",
    ]);
  });

  test("has one item for a waiting call, its decision and its result", () => {
    const call = { tool_call_id: "c1", tool: "refund" };
    const waiting = fold(
      started,
      { type: "tool_start", ...call, args: { order: 1 } },
      { type: "approval_request", ...call, approval_id: "a1" },
    );
    expect(waiting.state).toBe("waiting");
    expect(waiting.items.at(-1)).toMatchObject({ kind: "call", state: "waiting", approval_id: "a1" });
    const later = "2026-11-22T10:00:07.000Z";
    const done = more(
      waiting,
      { type: "approval", ...call, approval_id: "a1", approved: false, reason: "too much", timestamp: later },
      { type: "tool_end", ...call, result: "denied", is_error: true, duration_ms: 7_004 },
      ended,
    );
    expect(done.items.map(({ kind }) => kind)).toEqual(["operation", "call", "end"]);
    expect(done.items[1]).toMatchObject({
      state: "failed",
      result: "denied",
      decision: { approved: false, reason: "too much" },
      approval_id: undefined,
      duration_ms: 4,
      waited_ms: 7_000,
    });
    expect(done.state).toBe("idle");
  });

  test("has one item for a call that is repeated after a crash", () => {
    const call = { type: "tool_start", tool_call_id: "c1", tool: "read", args: {} };
    const { items } = fold(started, call, { ...started, resumed: true }, call);
    expect(items.map(({ kind }) => kind)).toEqual(["operation", "call"]);
  });

  test("leaves out the text of a task, and has its turns one level deeper", () => {
    const task = { operation_id: "op-2", parent_operation_id: "op-1", task_id: "k1" };
    const { items, operation } = fold(
      started,
      { type: "task_start", task_id: "k1", role: "reader", prompt: "Read it." },
      { ...started, ...task },
      { ...asked, ...task },
      { ...delta("of the task"), ...task },
      { ...ended, ...task },
      { type: "task_end", task_id: "k1", is_error: false, duration_ms: 3 },
    );
    expect(items.map(({ kind, depth }) => [kind, depth])).toEqual([
      ["operation", 0],
      ["task", 0],
      ["operation", 1],
      ["turn", 1],
      ["end", 1],
    ]);
    expect(items[1]).toMatchObject({ state: "done", label: "reader" });
    expect(operation).toBe("op-1");
  });

  test("has one item for all failed attempts, which is gone once the model answers", () => {
    const first = fold(started, asked, retried);
    expect(first.state).toBe("retrying");
    expect(first.items.at(-1)).toMatchObject({
      kind: "retry",
      attempt: 2,
      has_begun: false,
      retry_in_ms: 4_000,
    });
    const second = more(first, { ...asked, attempt: 2 });
    expect(second.items.findLast(({ kind }) => kind === "retry")).toMatchObject({ has_begun: true });
    const third = more(second, retried);
    expect(third.items.filter(({ kind }) => kind === "retry")).toMatchObject([{ attempt: 3 }]);
    const answered = more(third, { ...asked, attempt: 3 }, delta("Yes"));
    expect(answered.items.some(({ kind }) => kind === "retry")).toBe(false);
    expect(answered.state).toBe("working");
  });

  test("ends a failed operation once, with its last error and the number of attempts", () => {
    const { items } = fold(
      started,
      asked,
      retried,
      { ...started, resumed: true },
      { ...asked, turn_id: "t2" },
      { ...retried, turn_id: "t2", will_retry: false },
      { type: "turn_end", turn_id: "t2", tool_calls: 0, is_error: true },
      { ...ended, is_error: true },
    );
    expect(items.filter(({ kind }) => kind === "end" || kind === "retry")).toMatchObject([
      { kind: "end", state: "failed", attempts: 2, error: { cause: { message: "Rate limit reached" } } },
    ]);
  });

  test("of an older log, in which an answer follows a failed end, has one end", () => {
    const { items } = fold(
      started,
      asked,
      { ...retried, will_retry: false },
      { ...ended, is_error: true },
      { ...started, resumed: true },
      { ...asked, turn_id: "t2" },
      delta("Yes", "t2"),
      ended,
    );
    expect(items.filter(({ kind }) => kind === "end")).toMatchObject([{ state: "done", error: undefined }]);
  });

  test("ends what an aborted operation left open", () => {
    const call = { type: "tool_start", tool_call_id: "c1", tool: "read", args: {} };
    const { items } = fold(started, asked, delta("ha"), call, {
      ...ended,
      is_error: true,
      is_aborted: true,
    });
    expect(items.map((item) => ("state" in item ? item.state : item.kind))).toEqual([
      "stopped",
      "stopped",
      "text",
      "stopped",
      "stopped",
    ]);
  });

  test("of 10,000 events is built within a few frames", () => {
    const events = toEvents(
      Array.from({ length: 10_000 }, (_, at) => delta(`${at} `)),
      3,
    );
    let transcript = fold(started, asked);
    for (let at = 0; at < events.length; at += 100)
      transcript = foldEvents(transcript, events.slice(at, at + 100));
    expect(transcript.items).toHaveLength(3);
  });
});

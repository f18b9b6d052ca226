import { expect, test } from "vitest";
import { emptyTranscript, foldEvents, type KitEvent } from "../../../../src/client/index.ts";
import { readSpans } from "./trace.ts";

const second = (at: number): string => new Date(Date.UTC(2026, 10, 22) + at * 1_000).toISOString();
const context = { instance_id: "1", session: "default", operation_id: "op-1" };
const fold = (...bodies: readonly Record<string, unknown>[]) =>
  foldEvents(
    emptyTranscript,
    bodies.map(
      (body, at) => ({ ...context, index: at + 1, timestamp: second(at), ...body }) as unknown as KitEvent,
    ),
  );
const call = { tool_call_id: "c1", tool: "refund" };
const started = { type: "operation_start", operation_kind: "prompt", message: "Pay it back" };
const waits = [
  started,
  { type: "turn_request", turn_id: "t1", attempt: 1, model: "m", purpose: "agent" },
  { type: "tool_start", ...call, args: {} },
  { type: "approval_request", ...call, approval_id: "a1", args: {} },
];

test("a call that waits for a person is no finished work", () => {
  expect(readSpans(fold(...waits), "op-1").map(({ kind, state, end }) => [kind, state, end])).toEqual([
    ["operation", "running", undefined],
    ["turn", "running", undefined],
    ["call", "waiting", undefined],
  ]);
});

test("a decided call has the time that the tool worked and the time that it waited, each alone", () => {
  const transcript = fold(
    ...waits,
    { type: "approval", ...call, approval_id: "a1", approved: true },
    { type: "tool_end", ...call, result: "Paid", is_error: false, duration_ms: 87 },
  );
  const span = readSpans(transcript, "op-1").find(({ kind }) => kind === "call");
  expect(span).toMatchObject({ state: "done", duration_ms: 87, output: "Paid" });
  expect((span?.wait?.end ?? 0) - (span?.wait?.start ?? 0)).toBe(1_000);
});

test("the spans of an operation contain its tasks, and no other operation", () => {
  const transcript = fold(
    started,
    { ...started, operation_id: "op-2", parent_operation_id: "op-1", message: "A task" },
    { ...started, operation_id: "op-3", message: "Another" },
  );
  const titles = readSpans(transcript, "op-1").map(({ title, depth }) => [title, depth]);
  expect(titles).toEqual([
    ["Pay it back", 0],
    ["A task", 2],
  ]);
});

test("a failed turn has its error, and a retried one is another span", () => {
  const error = { type: "model_error", message: "The model failed." };
  const transcript = fold(
    started,
    { type: "turn_request", turn_id: "t1", attempt: 1, model: "m", purpose: "agent" },
    { type: "error", turn_id: "t1", error, will_retry: true, retry_in_ms: 1 },
    { type: "turn_request", turn_id: "t1", attempt: 2, model: "m", purpose: "agent" },
  );
  expect(
    readSpans(transcript, "op-1").map(({ title, state, error }) => [title, state, error?.message]),
  ).toEqual([
    ["Pay it back", "running", undefined],
    ["m", "failed", "The model failed."],
    ["m, attempt 2", "running", undefined],
  ]);
});

import { PassThrough } from "node:stream";
import { stripVTControlCharacters } from "node:util";
import { expect, test } from "vitest";
import type { KitEvent } from "../../protocol/event.ts";
import { displayWidth } from "../text/safe-text.ts";
import { createOutput } from "./output.ts";
import { createEventPrinter, type EventPrinter } from "./print-events.ts";

const problem = {
  path: "src/agents/desk.ts",
  message: "Cannot find module 'src/tools/prices'; imports name the file with its extension",
};
const common = {
  index: 1,
  timestamp: "2026-11-21T09:00:00.000Z",
  agent: "desk",
  instance_id: "1",
  session: "default",
  operation_id: "op_1",
} as const;
const failure = {
  type: "model_error",
  message: "The model could not be reached, or its answer could not be read.",
} as const;
const retry: KitEvent = {
  ...common,
  type: "error",
  error: failure,
  will_retry: true,
  retry_in_ms: 1_000,
};
const call: KitEvent = {
  ...common,
  type: "tool_start",
  tool_call_id: "call_1",
  tool: "grep",
  args: { pattern: "a pattern that is longer than the terminal of this test is wide" },
};

/** The text that a terminal of a width shows, or a pipe without one. */
function print(columns: number | undefined, respond: (printer: EventPrinter) => void): readonly string[] {
  const terminal = columns === undefined ? {} : { isTTY: true, columns };
  const stdout = Object.assign(new PassThrough(), terminal);
  const stderr = new PassThrough();
  const output = createOutput(stdout, stderr);
  respond(createEventPrinter({ output, json: false }, { stream: true, answers: true }));
  return stripVTControlCharacters(String(stderr.read() ?? ""))
    .trimEnd()
    .split("\n");
}

test("an error is printed in full, on as many lines as it needs", () => {
  const lines = print(60, (printer) => {
    printer.problem(problem);
    printer.onEvent(retry);
  });
  for (const line of lines) expect(displayWidth(line)).toBeLessThanOrEqual(60);
  expect(lines.join(" ")).toBe(
    `warning: ${problem.path}: ${problem.message} ${failure.message} Trying again in 1.0 s.`,
  );
});

test("each activity is one line, cut to the terminal", () => {
  const [line = "", ...more] = print(60, (printer) => printer.onEvent(call));
  expect(line).toMatch(/^→ grep a pattern .*…$/);
  expect(displayWidth(line)).toBeLessThanOrEqual(60);
  expect(more).toEqual([]);
});

test("in a pipe a note is one line, however long", () => {
  expect(print(undefined, (printer) => printer.problem(problem))).toHaveLength(1);
});

test("the text of an agent that took over by a handoff is the answer; that of a task is not", () => {
  const stdout = Object.assign(new PassThrough(), { isTTY: true, columns: 80 });
  const output = createOutput(stdout, new PassThrough());
  const { onEvent } = createEventPrinter({ output, json: false }, { stream: true, answers: true });
  const hasOutput = (text: string): KitEvent => ({ ...common, type: "text_delta", task_id: "task_1", text });
  onEvent(hasOutput("Billed."));
  onEvent({ ...hasOutput("Read."), operation_id: "op_task_1", parent_operation_id: "op_1" });
  expect(stripVTControlCharacters(String(stdout.read() ?? "")).trim()).toBe("Billed.");
});

import { expect, test } from "vitest";
import type { SessionEntry } from "../../protocol/session-entry.ts";
import { countDoneTurns } from "./past-operation.ts";

const entry = (message: unknown, operation_id = "op_1"): SessionEntry =>
  ({ version: 1, type: "message", message, operation_id }) as SessionEntry;
const answer = (...ids: string[]) =>
  entry({
    role: "assistant",
    content: ids.map((tool_call_id) => ({ type: "tool_call", tool_call_id, tool: "note" })),
  });
const result = (tool_call_id: string, outcome?: "unknown") =>
  entry({
    role: "tool",
    content: [{ type: "tool_result", tool_call_id, tool: "note", content: [], is_error: false, outcome }],
  });

test("a turn is done once all its calls have a result; a call that was interrupted has none", () => {
  const question = entry({ role: "user", content: [] });
  expect(countDoneTurns([question], "op_1")).toBe(0);
  expect(countDoneTurns([question, answer("a", "b"), result("a")], "op_1")).toBe(0);
  expect(countDoneTurns([question, answer("a", "b"), result("a"), result("b")], "op_1")).toBe(1);
  const crash = [answer("c", "d"), result("c"), result("d", "unknown")];
  expect(countDoneTurns([question, ...crash, ...crash, ...crash], "op_1")).toBe(0);
  expect(countDoneTurns([question, ...crash, answer()], "op_1")).toBe(1);
  expect(countDoneTurns([question, answer()], "op_2")).toBe(0);
});

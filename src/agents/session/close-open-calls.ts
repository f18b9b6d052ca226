import { type Clock, isoTime } from "../../base/clock.ts";
import type { ToolResultPart } from "../../protocol/message.ts";
import type { MaybePromise } from "../../stores/contract.ts";
import type { Operation } from "../agent-runtime.ts";

/**
 * Gives every tool call without a result one that says so. A process that was killed leaves such
 * calls behind, and providers refuse a history that has them.
 */
export function closeOpenCalls(operation: Operation, clock: Clock): MaybePromise<void> {
  const last = operation.state.messages.at(-1);
  if (last?.role !== "assistant") return;
  const content: ToolResultPart[] = [];
  for (const part of last.content) {
    if (part.type !== "tool_call") continue;
    content.push({
      type: "tool_result",
      tool_call_id: part.tool_call_id,
      tool: part.tool,
      content: [
        {
          type: "text",
          text: "The process ended while this call was running: its outcome is unknown. Check what it did before you repeat it.",
        },
      ],
      is_error: true,
      outcome: "unknown",
    });
  }
  if (content.length === 0) return;
  return operation.commit([
    {
      version: 1,
      type: "message",
      operation_id: operation.id,
      message: { role: "tool", content, timestamp: isoTime(clock.now()) },
    },
  ]);
}

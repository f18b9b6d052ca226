import { isoTime } from "../../base/clock.ts";
import type { ToolResultPart } from "../../protocol/message.ts";
import type { SessionEntry } from "../../protocol/session-entry.ts";
import type { SessionState } from "./session-state.ts";

/**
 * The entry that gives every tool call without a result one that says so; undefined where all have
 * theirs. A process that was killed leaves such calls behind, and providers refuse a history that has
 * them.
 */
export function closingEntry(
  state: SessionState,
  operation: { readonly id: string; readonly now: () => number },
): SessionEntry | undefined {
  const last = state.messages.at(-1);
  if (last?.role !== "assistant") return undefined;
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
  if (content.length === 0) return undefined;
  const message = { role: "tool", content, timestamp: isoTime(operation.now()) } as const;
  return { version: 1, type: "message", operation_id: operation.id, message };
}

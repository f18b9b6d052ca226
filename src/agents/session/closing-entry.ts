import { isoTime } from "../../base/clock.ts";
import type { SessionEntry } from "../../protocol/session-entry.ts";
import { outcomeUnknown } from "../turn/tool-result.ts";
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
  const content = last.content.flatMap((part) => (part.type === "tool_call" ? [outcomeUnknown(part)] : []));
  if (content.length === 0) return undefined;
  const message = { role: "tool", content, timestamp: isoTime(operation.now()) } as const;
  return { version: 1, type: "message", operation_id: operation.id, message };
}
